"""savepoint-hook EVENT: what the agent runs. Reads its JSON on stdin, saves, always exits 0.

An exit code of 2, or text on stdout, would block or poison the agent's compaction, so nothing that
goes wrong here is shown to it: one line in a log says it, or on stderr where no log can be written.
Only what a fire needs is imported, and what only a save needs is imported when there is one.
"""

from __future__ import annotations

import gc
import os
import sys
import time

_STARTED = time.monotonic()
gc.disable()  # a process of a moment: what looking for garbage costs it, it never gets back

from savepoint.capture import payload, surroundings  # noqa: E402  # the clock first
from savepoint.capture.payload import Payload  # noqa: E402
from savepoint.capture.request import Request  # noqa: E402
from savepoint.capture.stillness import AT_ONCE, Stillness  # noqa: E402
from savepoint.core import limits  # noqa: E402
from savepoint.core.errors import NoStoreError, SavepointError, UsageError  # noqa: E402
from savepoint.events.serve import Fire, serve, tell  # noqa: E402
from savepoint.store import journal  # noqa: E402
from savepoint.store.layout import DYNASTY, THREADS, Home, session_key  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from savepoint.events.serve import Served
    from savepoint.store.layout import Store
else:
    import _signal as signal  # `signal` makes enums of its numbers, which takes a fire 0.9 ms

SECONDS = {
    "PreCompact": limits.PRECOMPACT_SECONDS,
    "SessionStart": limits.SESSION_SECONDS,
    "UserPromptSubmit": limits.SESSION_SECONDS,
    "Stop": limits.SESSION_SECONDS,
    "SessionEnd": limits.SESSION_END_SECONDS,
}
TRIGGERS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SessionEnd": "session_end",
}
# Of the agent's events that people may well name. The summary that PostCompact brings is in the
# transcript of the next savepoint; SubagentStop comes for summarisers that never had a transcript
# (claude-code#91910), and what real subagents wrote is saved with their session.
IGNORED = {"PostCompact", "SubagentStop"}
_HELP = {"-h", "--help"}
_USAGE = b"""Usage: savepoint-hook EVENT

What an agent runs at its events: PreCompact, SessionStart, UserPromptSubmit,
Stop, SessionEnd. It reads the agent's JSON on stdin, saves, and exits with 0.
`savepoint install claude-code` makes the agent run it; a person saves with
`savepoint create`.
"""


def main(begun: bytes = b"") -> NoReturn:
    """Serve one fire and exit with 0, whatever happens. begun: what was read of stdin already.

    At once: to take the interpreter down piece by piece would cost 4 ms, and nothing is buffered
    that an orderly exit would still write.
    """
    try:
        event = sys.argv[1] if len(sys.argv) > 1 else ""
        if event in _HELP:
            _write(1, _USAGE)
        elif not begun and os.isatty(0):  # a person; an agent has a pipe
            _write(2, _USAGE)
        elif event not in IGNORED:
            _fire(event, begun)
    finally:
        _end_gits()
        os._exit(0)


def _end_gits() -> None:
    """The alarm may have come when a git was started and nobody had hold of it yet."""
    gitcmd = sys.modules.get("savepoint.gitcmd")  # most fires need no git, nor its import
    if gitcmd is not None:
        gitcmd.end_all()


def _fire(event: str, begun: bytes) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a window is closed; its session is to be saved
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _deadline_passed)
    signal.setitimer(signal.ITIMER_REAL, SECONDS.get(event, limits.SESSION_SECONDS))
    home = Home("")
    told = Payload()
    try:
        home = Home(surroundings.home(os.environ))
        given = _read_stdin(event, begun)
        told = payload.parse(given)
        request = _request(event, told, home)
        fire = Fire(event, told.source, told.session_id, told.transcript, _STARTED)
        served = serve(fire, request, os.path.expanduser("~"))
        if served.failure is not None:  # a busy store took the agent's greeting and handoffs away
            _tell(home, event, told, served.failure.message)
        _greet(event, told, served.store, request)
        _warn(event, told, given, served.store, request)
        _remember(fire, told, served, request)
    except _AlarmError:
        _tell(home, event, told, "the hook's time has passed; the rest is pending")
    except SavepointError as failure:
        _tell(home, event, told, failure.message)
    except Exception as failure:  # noqa: BLE001  # the agent must never see a traceback or an exit code
        _tell(home, event, told, f"internal error: {type(failure).__name__}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _greet(event: str, told: Payload, store: Store, request: Request) -> None:
    """Tell the agent what is saved, once: of a plugin and the settings, the settings do. What a
    subagent's compaction fires is not for the session.
    """
    if event != "SessionStart" or told.agent_id or _is_second(request):
        return
    from savepoint.events import greeting

    command = os.path.join(os.path.dirname(sys.executable), "savepoint")
    known = command if os.path.isfile(command) else "savepoint"
    lost = os.path.lexists(store.instance(THREADS).trusted)  # if only that is left
    owed = _owed(store, request) if lost or _has(store, THREADS) else ""
    learned = _learned(request, told.source) if _has(store, DYNASTY) else ""
    _write(1, greeting.output(store, request, told.source, known, owed, learned))


def _owed(store: Store, request: Request) -> str:
    """A handoff that waits to be accepted. What cannot be read takes nothing else away."""
    from succession import handoff

    try:
        project = os.path.realpath(request.project)
        return handoff.at_start(store, session_key(request.session_id), project)
    except SavepointError as failure:
        return f"What threads owe cannot be read: {failure.message}. {failure.hint}"


def _warn(event: str, told: Payload, given: bytes, store: Store, request: Request) -> None:
    """Keep what runs in the session; tell the user what stands in the way of a handoff that was
    asked for.
    """
    if event != "Stop" or told.agent_id or not _has(store, THREADS):
        return
    from succession import handoff

    key = session_key(request.session_id)
    text = handoff.at_stop(store, key, given, request.transcript)
    if text and not _is_second(request):
        import json

        _write(1, json.dumps({"systemMessage": text}).encode())


def _learned(request: Request, source: str) -> str:
    from savepoint.events import memory

    return memory.briefing(request, source)


def _remember(fire: Fire, told: Payload, served: Served, request: Request) -> None:
    """What the turn adds to what is remembered; a subagent's turn is part of its session's. Last:
    it may take the rest of the hook's time, and what cannot be read must keep nothing else away.
    """
    if fire.event == "Stop" and not told.agent_id and _has(served.store, DYNASTY):
        from savepoint.events import memory

        memory.after_turn(served.store, request, served.saved)


def _has(store: Store, folder: str) -> bool:
    """Most stores have neither, and pay one look for each."""
    return os.path.isdir(os.path.join(store.path, folder))


def _is_second(request: Request) -> bool:
    """Are we a plugin's hook, and the settings name one as well?"""
    if not os.environ.get("CLAUDE_PLUGIN_ROOT"):
        return False
    own = os.path.join(request.project, ".claude")
    for path in (
        os.path.join(request.config_dir, "settings.json"),
        os.path.join(own, "settings.json"),
        os.path.join(own, "settings.local.json"),
    ):
        try:
            with open(path, "rb") as settings:
                if b"savepoint-hook" in settings.read(limits.SMALL_DOCUMENT_BYTES):
                    return True
        except OSError:
            continue
    return False


def _write(fd: int, data: bytes) -> None:
    """Nowhere, if nobody takes it."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return


def _request(event: str, told: Payload, home: Home) -> Request:
    if event not in SECONDS:  # misspelt in the settings: it would never save, and nobody know
        raise UsageError(f"{journal.NO_EVENT}{event!r} to save at")
    project = _project(told)
    if not project:
        raise NoStoreError("no folder is named, and the current one is gone")
    by_agent = bool(os.environ.get("CLAUDE_PROJECT_DIR"))
    if not (by_agent or told.session_id or told.transcript or told.cwd):
        # Tried by hand, it made a store, and a session out of nothing that became `latest`.
        raise UsageError(journal.NOTHING_NAMED)
    trigger = TRIGGERS.get(event) or told.trigger or "auto"
    scope = "unknown" if trigger == "auto" else "main"
    notes = () if told.intact else ("the payload was no JSON; its fields were found in its text",)
    return Request(
        home=home.path,
        project=project,
        cwd=told.cwd or _current() or project,
        config_dir=surroundings.config_dir(os.environ),
        session_id=told.session_id,
        transcript=told.transcript,
        trigger=trigger,
        now=int(time.time()),
        deadline=_STARTED + SECONDS[event] - limits.ALARM_MARGIN_SECONDS,
        environment=surroundings.for_children(os.environ),
        scope="subagent" if told.agent_id else scope,
        still=_stillness(event, trigger),
        window=surroundings.window(os.environ),
        notes=notes,
    )


def _stillness(event: str, trigger: str) -> Stillness:
    """The client flushes some 100 ms late (claude-code#15812): an automatic compaction is watched
    from the start, a manual one only if the file is younger than that.
    """
    if event != "PreCompact":
        return AT_ONCE
    watched_since = None if trigger == "manual" else _STARTED
    return Stillness(watched_since, _STARTED + limits.STILL_WAIT_SECONDS)


def _read_stdin(event: str, begun: bytes) -> bytes:
    """What the agent wrote, within bounds of bytes and time. It may never close the pipe: what is
    a whole object is not waited for any longer, and most of the event's time is left to save.
    """
    import select

    data = begun
    share = SECONDS.get(event, limits.SESSION_SECONDS) * limits.HOOK_PAYLOAD_SHARE
    end = time.monotonic() + min(limits.HOOK_PAYLOAD_SECONDS, share)
    try:
        while len(data) < limits.HOOK_PAYLOAD_BYTES and (left := end - time.monotonic()) > 0:
            if data[-64:].rstrip().endswith(b"}") and payload.is_whole(data):
                break
            if not select.select([0], [], [], left)[0]:
                break
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            data += chunk
    except OSError:  # stdin is closed: an empty payload, whose session is then unknown
        return data
    return data


def _project(told: Payload) -> str:
    """The folder that a fire is for; empty if that is gone."""
    return os.environ.get("CLAUDE_PROJECT_DIR") or told.cwd or _current()


def _current() -> str:
    """The folder that we were started in; empty if that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _deadline_passed(_signal: int, _frame: object) -> None:
    raise _AlarmError


class _AlarmError(BaseException):
    """The hook's time has passed. No SavepointError: much of what fails is told and worked around,
    and an alarm comes only once.
    """


def _tell(home: Home, event: str, told: Payload, reason: str) -> None:
    """One line: in hook.log, where `init` and `doctor` find it, else on stderr."""
    fire = Fire(event, told.source, told.session_id, told.transcript, _STARTED)
    try:
        if not home.path:
            raise SavepointError("there is no home to log it in")  # noqa: TRY301  # told below
        tell(home, fire, _project(told), int(time.time()), reason)
    except SavepointError as failure:
        line = f"savepoint-hook: {journal.printable(reason)}; {failure.message}\n"
        _write(2, line.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
