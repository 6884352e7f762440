"""Where a handoff command works: its threads, who signs, and what needs git or processes."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from savepoint import gitcmd
from savepoint.capture import surroundings
from savepoint.capture.agents import claude
from savepoint.cli import options, place
from savepoint.core import limits
from savepoint.core.errors import HandoffError, UsageError
from savepoint.core.handoff_log import Author
from savepoint.core.strict_json import dump
from savepoint.store import index, keyring
from savepoint.store.layout import session_key
from succession.handoff import drivers, log, owner
from succession.handoff.ledger import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from savepoint.store.layout import InstancePaths
    from succession.handoff.drivers import Driver
    from succession.handoff.ledger import Ledger, Thread
    from succession.handoff.log import Log
    from succession.handoff.owner import Pair

SETTINGS = {"help_option_names": ["-h", "--help"]}
ThreadName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--thread",
        metavar="ID",
        help="A thread: its id or its row.",
        show_default="the session's, or the project's only one",
        callback=options.text,
    ),
]
Text: TypeAlias = Annotated[
    str, typer.Argument(metavar="TEXT", help="What it is, in words.", callback=options.text)
]
_HARDENED = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Desk(NamedTuple):
    """The log of a project's threads, held, and who writes in it."""

    at: place.Place
    held: Log
    author: Author
    now: int  # Unix seconds

    def thread(self, name: str) -> Thread:
        """The open thread that is meant. Raises HandoffError, UsageError."""
        return chosen(self.held.ledger, self.at.project, name)


@contextmanager
def desk(project: str, *, make_it: bool = False) -> Iterator[Desk]:
    """Raises NoStoreError, KeyFileError, HandoffError, TamperedError, BusyError, DiskError."""
    at = place.find(project)
    author = author_of(at.paths)
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    with log.opened(at.store, deadline, make_it=make_it) as held:
        yield Desk(at, held, author, int(time.time()))


def author_of(paths: InstancePaths) -> Author:
    """Who signs for an instance. Raises KeyFileError."""
    return Author(index.instance(paths), keyring.authority(paths))


def ledger(at: place.Place) -> Ledger:
    """What the log says, to be looked at. Raises HandoffError where there is none."""
    found = log.read(at.store)
    if found is None:
        raise HandoffError(
            "this project has no threads", hint="`savepoint handoff thread TITLE` opens one"
        )
    return found


def chosen(
    known: Ledger,
    project: str,
    name: str,
    fits: Callable[[Thread], bool] = lambda one: one.state == OPEN,
) -> Thread:
    """The thread of that id or row; without a name the only one of the project that fits. Never by
    title: two threads may have the same. Raises HandoffError, UsageError.
    """
    if name:
        found = [one for one in known.threads.values() if name in (one.id, str(one.row))]
        if len(found) != 1:
            raise HandoffError(f"there is no thread {name}: `savepoint handoff status` lists them")
        return found[0]
    found = [one for one in known.threads.values() if one.project == project and fits(one)]
    if not found:
        hint = "`savepoint handoff status` lists them; `savepoint handoff thread TITLE` opens one"
        raise HandoffError("no thread of this project is meant", hint=hint)
    told = os.environ.get("CLAUDE_CODE_SESSION_ID")
    own = [one for one in found if told and one.session == session_key(told)]
    if len(own) == 1:
        return own[0]
    if len(found) > 1:
        listed = ", ".join(f"{one.id} ({one.title})" for one in found)
        raise UsageError(
            f"{len(found)} threads could be meant: {listed}", hint="name one: --thread"
        )
    return found[0]


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


def current_session(at: place.Place) -> str | None:
    """The id of the session that runs this command, as the agent tells its commands; else of the
    project's session that was written last.
    """
    told = os.environ.get("CLAUDE_CODE_SESSION_ID")
    if told:
        return told
    config_dir = surroundings.config_dir(os.environ)
    for folder in (at.folder, at.project):
        path = claude.newest_session(config_dir, folder)
        if path:
            return os.path.basename(path).removesuffix(".jsonl")
    return None


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
