"""`savepoint install` and `uninstall`: our hooks and status line in the agent's settings."""

from __future__ import annotations

import difflib
import os
import subprocess  # only to try the program that the settings are about to name
import sys
import time
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.capture import surroundings
from savepoint.capture.agents import claude_settings
from savepoint.capture.agents.claude_places import NAME as AGENT
from savepoint.cli import options, place, terminal
from savepoint.cli.agent import agent_settings
from savepoint.cli.agent.agent_settings import Program
from savepoint.cli.agent.settings_file import SettingsFile
from savepoint.core import limits, spelling
from savepoint.core.errors import BusyError, NoStoreError, SettingsError, UsageError
from savepoint.store import installed, registry, worktree
from savepoint.store.installed import Installed
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store


class Scope(StrEnum):
    """Whose settings: the user's, for all projects; or those of one project and this user."""

    USER = "user"
    LOCAL = "local"


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help=f"{AGENT}.")]
InScope = Annotated[
    Scope,
    typer.Option(help="The user's settings, for all projects, or this project's local ones."),
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]


def install(
    agent: AgentName,
    scope: InScope = Scope.USER,
    dry_run: Dry = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Let the agent save by itself.

    Our hooks and status line go into its settings; the user's own status line goes on inside ours.
    Nothing else in the file changes; a copy is kept, in installed.json beside the stores, until
    `uninstall`. The first event in a project makes a store for it. The status line runs `savepoint
    statusline`, which says how it is used with --help.
    """
    where = _of(agent, project)
    file = SettingsFile.read(settings_paths(where)[scope])
    program = own_program()
    with _naming(file.target):
        base, known = _base(file)
    own = _own_status_line(base, where, scope)
    with _naming(file.target):
        after = agent_settings.added(agent_settings.EMPTY if base is None else base, program, own)
    if not dry_run:
        _write(file, base, after, known)
    _tell(file, after, "installed", dry_run=dry_run, as_json=as_json)
    if not dry_run and not as_json:
        terminal.say(f"the hook is {program.hook}; `savepoint doctor` looks at all of it")
        terminal.say("sessions from before: `savepoint init`, then `savepoint sweep` in a project")
    _warn(where, scope, file)


def uninstall(
    agent: AgentName,
    scope: InScope = Scope.USER,
    dry_run: Dry = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Take out what `install` put in. Savepoints and keys stay."""
    where = _of(agent, project)
    file = SettingsFile.read(settings_paths(where)[scope])
    with _naming(file.target):
        base, known = _base(file)
    if base != file.text and not dry_run:
        if base is None:
            file.remove(known.folder if known else None)
        else:
            file.write(base)
    if not dry_run:
        if known is not None:
            installed.keep(place.home(), file.target, None)
        for store in _stores(where, scope):
            _stop_worker(store)
    _tell(file, base, "uninstalled", dry_run=dry_run, as_json=as_json)
    if not as_json:
        home = place.home()
        terminal.say(f"savepoints stay in {home.stores}, keys in {os.path.join(home.path, 'keys')}")


def settings_paths(project: str) -> dict[Scope, str]:
    """The settings files that we may change, for the project's folder."""
    return {
        Scope.USER: os.path.join(surroundings.config_dir(os.environ), "settings.json"),
        Scope.LOCAL: os.path.join(project, ".claude", "settings.local.json"),
    }


def own_program() -> Program:
    """The programs of the environment that runs us. Raises SettingsError if they do not start: the
    agent would complain at each event, and nothing be saved.
    """
    folder = os.path.dirname(sys.executable)
    names = (agent_settings.HOOK, agent_settings.COMMAND)
    program = Program(sys.executable, *(os.path.join(folder, name) for name in names))
    hint = "install savepoint in a virtual environment, and run its own `savepoint install`"
    for path in program[1:]:
        if not os.path.isfile(path):
            raise SettingsError(f"{path} is not there", hint=hint)
    trial = [program.python, "-I", program.hook, "PostCompact"]  # at which it does nothing
    try:
        done = subprocess.run(  # noqa: S603  # our own program
            trial, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise SettingsError(f"{program.hook} does not run: {failure}", hint=hint) from None
    if done.returncode != 0:
        raise SettingsError(f"{program.hook} does not run under `python -I`", hint=hint)
    return program


def _of(agent: str, project: str) -> str:
    if agent != AGENT:
        raise UsageError(f"there is no agent {agent!r} to install for", hint=f"say {AGENT}")
    return place.folder(project)


def _base(file: SettingsFile) -> tuple[str | None, Installed | None]:
    """The text without anything of ours, None for no file; and what we know of it from before."""
    known = installed.load(place.home()).get(file.target)
    if file.text is None:
        return None, known
    if known is not None and known.left(file.text):
        return known.before, known
    before = (known.before or agent_settings.EMPTY) if known else None
    base = agent_settings.removed(file.text, before)
    is_left = base != file.text and base.strip() == agent_settings.EMPTY.strip()
    return (None if is_left and known and known.before is None else base), known


def _write(file: SettingsFile, base: str | None, after: str, known: Installed | None) -> None:
    """The backup first: without it nobody could say what was there."""
    now = spelling.time_text(int(time.time()))
    one = Installed(base, installed.digest(after), known.folder if known else None, now)
    installed.keep(place.home(), file.target, one)
    made = file.write(after) if after != file.text else None
    if made is not None:
        installed.keep(place.home(), file.target, one._replace(folder=made))


def _own_status_line(base: str | None, where: str, scope: Scope) -> str | None:
    """The user's command that ours is put around; empty: there is none. None: leave it alone, since
    it is of a kind that we do not know, or has ours inside already.
    """
    local, shared, user = _that_count(where)
    texts = {local if scope is Scope.LOCAL else user: base}
    if scope is Scope.LOCAL:
        texts |= {path: SettingsFile.read(path).text for path in (shared, user)}
    for path, text in texts.items():
        with _naming(path):
            if text is not None and agent_settings.has_status_line(text):
                line = agent_settings.status_line(text)
                return None if line is None or line.is_ours else line.command
    return ""


def _that_count(where: str) -> tuple[str, str, str]:
    """The settings files that count in a project: the first one that says something."""
    paths = settings_paths(where)
    return paths[Scope.LOCAL], os.path.join(where, ".claude", "settings.json"), paths[Scope.USER]


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """What is wrong with a text is wrong with this file."""
    try:
        yield
    except SettingsError as failure:
        raise SettingsError(f"{path} {failure.message}", hint=failure.hint) from None


def _warn(where: str, scope: Scope, file: SettingsFile) -> None:
    """What keeps the hooks from running, and what the user's git will see."""
    for path in _that_count(where):
        if claude_settings.read(path).get("disableAllHooks"):
            terminal.note(f"{path} says disableAllHooks: no hook runs until that is gone")
    if scope is Scope.LOCAL and worktree.find_worktree(where) is not None:
        terminal.note(
            f"{file.path} holds paths of this machine: unless git ignores it already, add "
            ".claude/settings.local.json to .git/info/exclude"
        )


def _stores(where: str, scope: Scope) -> list[Store]:
    """The stores whose hooks are gone."""
    home = place.home()
    if scope is Scope.USER:
        return registry.stores(home) if os.path.isdir(home.stores) else []
    try:
        return [registry.find(home, where)]
    except NoStoreError:
        return []


def _stop_worker(store: Store) -> None:
    """A worker ends as soon as somebody waits for it (work/worker.py); what it owes is kept."""
    until = time.monotonic() + limits.LOCK_WAIT_SECONDS
    try:
        with Lock(store.worker_queue, until), Lock(store.worker_lock, until):
            return
    except BusyError:
        terminal.note(f"a worker of store {store.id} is still busy; it ends by itself")


def _tell(
    file: SettingsFile, after: str | None, what: str, *, dry_run: bool, as_json: bool
) -> None:
    diff = _diff(file, after)
    if as_json:
        value: dict[str, Json] = {
            "file": file.path,
            "target": file.target,
            "result": what if diff else "unchanged",
            "dry_run": dry_run,
            "diff": list(diff),
        }
        terminal.document(value)
        return
    for line in diff:
        terminal.say(line, _COLOURS.get(line[:1]))
    if not diff:
        terminal.say(f"nothing to change in {file.path}")
    elif dry_run:
        terminal.say(f"{file.target} would be changed like this")
    else:
        link = f" (through the link {file.path})" if file.target != file.path else ""
        terminal.say(f"{what} in {file.target}{link}")


def _diff(file: SettingsFile, after: str | None) -> list[str]:
    before = (file.text or "").splitlines()
    lines = difflib.unified_diff(
        before, (after or "").splitlines(), file.target, file.target, lineterm=""
    )
    return list(lines)


_COLOURS = {"+": "green", "-": "red"}
