"""Where a handoff command works: its threads, who signs, and what needs git or processes."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from savepoint import gitcmd
from savepoint.capture import surroundings
from savepoint.capture.agents import claude
from savepoint.capture.session import newest
from savepoint.cli import options, place
from savepoint.core import limits
from savepoint.core.errors import (
    HandoffError,
    RolledBackError,
    SelectorError,
    TamperedError,
    UsageError,
)
from savepoint.core.handoff_log import Author
from savepoint.core.strict_json import dump
from savepoint.store import index
from savepoint.store.keys import keyring
from savepoint.store.layout import session_key
from succession.handoff import drivers, log, owner, saved, whose
from succession.handoff.ledger import AWAITED, OPEN, SETTLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Never

    from savepoint.store.layout import InstancePaths
    from succession.handoff.drivers import Driver
    from succession.handoff.ledger import Ledger, Thread
    from succession.handoff.log import Log
    from succession.handoff.owner import Pair

SETTINGS = {"help_option_names": ["-h", "--help"]}
ThreadName: TypeAlias = Annotated[
    str,
    options.written(
        "--thread", "ID", "A thread: its id or its row.", "the session's, or the project's only one"
    ),
]
Text: TypeAlias = Annotated[
    str, typer.Argument(metavar="TEXT", help="What it is, in words.", callback=options.text)
]
_TOLD = "CLAUDE_CODE_SESSION_ID"  # the agent tells its commands which session runs them
_SHOWN = 80  # characters of a session's id that is none
_OPENS = "`savepoint handoff thread TITLE` opens one"
_HARDENED = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Desk(NamedTuple):
    """The log of a project's threads, held, and who writes in it."""

    at: place.Place
    held: Log
    author: Author
    now: int  # Unix seconds

    def thread(self, name: str) -> Thread:
        """The thread that is meant. Raises HandoffError, UsageError."""
        return chosen(self.at, self.held.ledger, name)


@contextmanager
def desk(project: str, *, make_it: bool = False) -> Iterator[Desk]:
    """Raises NoStoreError, KeyFileError, HandoffError, TamperedError, BusyError, DiskError."""
    at = place.find(project)
    author = author_of(at.paths)
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    with ExitStack() as stack:
        with _way_back(at):
            held = stack.enter_context(log.opened(at.store, deadline, make_it=make_it))
        yield Desk(at, held, author, int(time.time()))


def author_of(paths: InstancePaths) -> Author:
    """Who signs for an instance. Raises KeyFileError."""
    return Author(index.instance(paths), keyring.authority(paths))


def ledger(at: place.Place) -> Ledger:
    """What the log says, to be looked at. Raises HandoffError where there is none."""
    found = known(at)
    if found is None:
        raise HandoffError("this project has no threads", hint=_OPENS)
    return found


def known(at: place.Place) -> Ledger | None:
    """As `ledger`; None where there is none."""
    with _way_back(at):
        return log.read(at.store)


@contextmanager
def _way_back(at: place.Place) -> Iterator[None]:
    """Who finds the log damaged is told how it comes back, and from which savepoint."""
    try:
        yield
    except (TamperedError, RolledBackError) as failure:
        found = saved.newest(at.store)
        if found is None:
            raise type(failure)(failure.message, hint="no savepoint has it whole") from failure
        other = "" if found.paths == at.paths else f" --instance {found.paths.slug}"
        force = " --force" if saved.is_older(at.store, found.memory) else ""
        hint = (
            f"`savepoint resurrect {found.record.seq} --only memory -o back{other}`, then "
            f"`savepoint handoff import back/memory/handoff{force}`"
        )
        raise type(failure)(failure.message, hint=hint) from failure


def chosen(at: place.Place, ledger: Ledger, name: str) -> Thread:
    """The thread of that id or row. Without a name that of the session that runs this, or of the
    nearest session that it was brought back from, which it goes on with: `session` is then the
    one that goes on. Where no session does, the project's only open one. Never by title: two
    threads may have the same. Raises HandoffError, UsageError.
    """
    if name:
        return named(ledger, name)
    threads = of_project(at, ledger)
    if told := os.environ.get(_TOLD):
        key = session_key(told)
        return whose.of_session(at.store, threads, key) or _refuse_foreign(threads, key)
    found = only([one for one in threads if one.state == OPEN] or _settled(threads)[-1:])
    newest = session_key(current_session(at) or "")
    if newest != found.session and found.session in whose.before(at.store, newest):
        return found._replace(session=newest)
    return found


def named(ledger: Ledger, name: str) -> Thread:
    """The thread of that id or row. Raises HandoffError."""
    found = [one for one in ledger.threads.values() if name in (one.id, str(one.row))]
    if len(found) != 1:
        raise HandoffError(f"there is no thread {name}: `savepoint handoff status` lists them")
    return found[0]


def of_project(at: place.Place, ledger: Ledger) -> list[Thread]:
    """The threads of the project, oldest first."""
    folders = [one.path for one in at.config.projects]
    return [one for one in ledger.threads.values() if whose.is_of(one, at.project, folders)]


def only(found: list[Thread]) -> Thread:
    """The one that could be meant. Raises HandoffError, UsageError."""
    if not found:
        hint = f"`savepoint handoff status` lists them; {_OPENS}"
        raise HandoffError("no thread of this project is meant", hint=hint)
    if len(found) > 1:
        listed = ", ".join(f"{one.id} ({one.title})" for one in found)
        raise UsageError(
            f"{len(found)} threads could be meant: {listed}", hint="name one: --thread"
        )
    return found[0]


def _settled(threads: list[Thread]) -> list[Thread]:
    return [one for one in threads if one.state == SETTLED]


def _refuse_foreign(threads: list[Thread], key: str) -> Never:
    """What a session writes down must not land in the thread of another. Raises HandoffError."""
    rows = ", ".join(f"{one.row} ({one.title})" for one in threads if one.state == OPEN)
    ways = [f"--thread ROW names another's: {rows}"] if rows else []
    if any(one.state == AWAITED for one in threads):
        ways.append("`savepoint handoff accept` takes over what waits")
    raise HandoffError(f"session {key} has no thread", hint="; ".join([*ways, _OPENS]))


def short(*texts: str) -> None:
    """Refuse what does not fit in a line of the log. Raises UsageError."""
    if sum(len(dump(one)) for one in texts) > limits.HANDOFF_TEXT_BYTES:
        raise UsageError(f"more than {limits.HANDOFF_TEXT_BYTES} bytes of text", hint="shorten it")
    if any(not one.strip() for one in texts):
        raise UsageError("a text is blank")


def transcript(session: str | None, at: place.Place) -> str | None:
    """Where the agent keeps that session; None where there is none."""
    config_dir = surroundings.config_dir(os.environ)
    return claude.transcript_path(config_dir, at.project, session) if session else None


def session_named(at: place.Place, session: str) -> str | None:
    """The key of a session that the agent has, or of the one that runs this; without a name as
    `current_session` has it, None where there is none. What a typing error names would hold the
    thread for ever. Raises SelectorError.
    """
    told = session or current_session(at)
    if told and session not in ("", os.environ.get(_TOLD)) and not transcript(session, at):
        hint = "--session takes the id of one that the agent keeps a transcript of"
        raise SelectorError(f"there is no session {session[:_SHOWN]}", hint=hint)
    return session_key(told) if told else None


def current_session(at: place.Place) -> str | None:
    """The id of the session that runs this command, as the agent tells its commands; else of the
    project's session that was written last.
    """
    told = os.environ.get(_TOLD)
    if told:
        return told
    config_dir = surroundings.config_dir(os.environ)
    path = newest(at.store, config_dir, (at.folder, at.project), claude)
    return os.path.basename(path).removesuffix(".jsonl") if path else None


def known_drivers(at: place.Place) -> Mapping[str, Driver]:
    """All of them, for this project. Raises MalformedError, DiskError."""
    pairs = owner.load(at.store).commands
    return drivers.all_of(at.project, _Upstream(at.project), _Command(pairs))


class _Upstream:
    """What a branch of the project's repository tracks; place: the branch."""

    def __init__(self, project: str) -> None:
        self._project = project

    def read(self, place: str, key: str) -> str | None:
        name = f"refs/heads/{place}{key}"  # a pattern, of which only the very branch is meant
        rows = self._git("for-each-ref", "--format=%(refname) %(upstream:short)", name)
        found = dict(row.split(" ", 1) for row in rows.splitlines() if " " in row)
        return found.get(name) or None

    def write(self, place: str, key: str, value: str) -> None:
        self._git("branch", f"--set-upstream-to={value}", "--", f"{place}{key}")

    def _git(self, *arguments: str) -> str:
        env = surroundings.for_children(os.environ)
        running = gitcmd.start(("-C", self._project, *_HARDENED, *arguments), env=env)
        told = running.finish(time.monotonic() + limits.HANDOFF_COMMAND_SECONDS)
        if not told.ok:
            raise HandoffError(told.reason)
        return told.out.decode("utf-8", "replace").strip()


class _Command:
    """A pair of the owner's commands; place: its name."""

    def __init__(self, pairs: Mapping[str, Pair]) -> None:
        self._pairs = pairs

    def read(self, place: str, key: str) -> str | None:
        said = _output((*self._pair(place).read, key))
        return said.decode("utf-8", "replace").rstrip("\r\n") or None

    def write(self, place: str, key: str, value: str) -> None:
        _output((*self._pair(place).set, key, value))

    def _pair(self, name: str) -> Pair:
        if name not in self._pairs:
            hint = "`savepoint handoff config command` sets one"
            raise HandoffError(f"the owner's config has no pair of commands {name}", hint=hint)
        return self._pairs[name]


def _output(command: Sequence[str]) -> bytes:
    """What a command prints, within bounds of bytes and time. It sees no secret of the environment.

    Raises HandoffError: it cannot be run, failed, or its time is up; then all of its group is dead.
    """
    program = os.path.basename(command[0]) if command else ""
    try:
        running = subprocess.Popen(  # noqa: S603  # the owner's own choice, and no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=surroundings.for_children(os.environ),
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as failure:
        raise HandoffError(f"{program} cannot be run: {failure}") from None
    try:
        said = _read(running, time.monotonic() + limits.HANDOFF_COMMAND_SECONDS)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        code = running.wait()
        if running.stdout:
            running.stdout.close()
    if said is None:
        seconds = limits.HANDOFF_COMMAND_SECONDS
        raise HandoffError(f"{program} gave no answer within {seconds:g} seconds")
    if code != 0:
        hint = f"see for yourself what it says: {shlex.join(command)}"
        raise HandoffError(f"{program} failed with exit code {code}", hint=hint)
    return said


def _read(running: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Its output to its end; None where it does not end in time, or talks without an end."""
    assert running.stdout is not None  # noqa: S101  # it was asked for
    pipe, data = running.stdout.fileno(), b""
    while len(data) <= limits.HANDOFF_ANSWER_BYTES:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([pipe], [], [], left)[0]:
            return None
        chunk = os.read(pipe, limits.HANDOFF_ANSWER_BYTES)
        if not chunk:
            try:
                running.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return None
            return data
        data += chunk
    return None
