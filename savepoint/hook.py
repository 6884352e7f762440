"""savepoint-hook EVENT: what the agent runs. Reads its JSON on stdin, saves, always exits 0.

An exit code of 2, or text on stdout, would block or poison the agent's compaction, so nothing that
goes wrong here is shown to it: one line in a log says it, or on stderr where no log can be written.
Only what a fire needs is imported, and what only a save needs is imported when there is one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

_STARTED = time.monotonic()
gc.disable()  # a process of a moment: what looking for garbage costs it, it never gets back

from savepoint.capture import payload, surroundings, unchanged  # noqa: E402  # the clock first
from savepoint.capture.agents import claude  # noqa: E402
from savepoint.capture.payload import Payload  # noqa: E402
from savepoint.capture.request import Request  # noqa: E402
from savepoint.capture.stillness import AT_ONCE, Stillness  # noqa: E402
from savepoint.core import limits  # noqa: E402
from savepoint.core.errors import NoStoreError, SavepointError, UsageError  # noqa: E402
from savepoint.store.layout import Home  # noqa: E402

if TYPE_CHECKING:
    from savepoint.save import Saved

SECONDS = {
    "PreCompact": limits.PRECOMPACT_SECONDS,
    "SessionStart": limits.SESSION_SECONDS,
    "Stop": limits.SESSION_SECONDS,
    "SessionEnd": limits.SESSION_END_SECONDS,
}
TRIGGERS = {"SessionStart": "session_start", "Stop": "stop", "SessionEnd": "session_end"}


IGNORED = {"PostCompact"}  # of the agent's events that people may well name; nothing is to be saved


def main() -> NoReturn:
    """Serve one fire and exit with 0, whatever happens.

    At once: to take the interpreter down piece by piece would cost 4 ms, and nothing is buffered
    that an orderly exit would still write.
    """
    try:
        event = sys.argv[1] if len(sys.argv) > 1 else ""
        if event not in IGNORED:
            _fire(event)
    finally:
        _end_gits()
        os._exit(0)


def _end_gits() -> None:
    """The alarm may have come when a git was started and nobody had hold of it yet."""
    gitcmd = sys.modules.get("savepoint.gitcmd")  # most fires need no git, nor its import
    if gitcmd is not None:
        gitcmd.end_all()


def _fire(event: str) -> None:
    signal.signal(signal.SIGALRM, _deadline_passed)
    signal.setitimer(signal.ITIMER_REAL, SECONDS.get(event, limits.SESSION_SECONDS))
    home = Home("")
    told = Payload()
    try:
        home = Home(surroundings.home(os.environ))
        told = payload.parse(_read_stdin())
        request = _request(event, told, home)
        if event == "SessionStart" and told.source != "compact":
            _note_start(request)
        _serve(event, request)
    except _AlarmError:
        _tell(home, event, told, "the hook's time has passed; the rest is pending")
    except NoStoreError:
        _tell(home, event, told, "no store")
    except SavepointError as failure:
        _tell(home, event, told, failure.message)
    except Exception as failure:  # noqa: BLE001  # the agent must never see a traceback or an exit code
        _tell(home, event, told, f"internal error: {type(failure).__name__}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _serve(event: str, request: Request) -> None:
    if unchanged.has_nothing_to_do(request, claude):
        return
    from savepoint import save

    if event == "Stop" and not save.is_due(request):
        return
    saved = save.save_consciousness_state(request)
    save.finish_pending(request)
    if saved is not None:
        _follow(event, saved, request)


def _follow(event: str, saved: Saved, request: Request) -> None:
    """The push is waited for where an agent compacts: then the copy elsewhere is there first."""
    from savepoint.work import follow
    from savepoint.work.jobs import Surroundings

    around = Surroundings(request.environment, request.config_dir)
    follow.follow(saved, around, _STARTED, wait=event == "PreCompact")


def _note_start(request: Request) -> None:
    from savepoint.capture import session

    session.note_start(request)


def _request(event: str, told: Payload, home: Home) -> Request:
    if event not in SECONDS:  # misspelt in the settings: it would never save, and nobody know
        raise UsageError(f"there is no event {event!r} to save at")
    cwd = told.cwd or os.getcwd()
    trigger = TRIGGERS.get(event) or told.trigger or "auto"
    scope = "unknown" if trigger == "auto" else "main"
    notes = () if told.intact else ("the payload was no JSON; its fields were found in its text",)
    return Request(
        home=home.path,
        project=os.environ.get("CLAUDE_PROJECT_DIR") or cwd,
        cwd=cwd,
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


def _read_stdin() -> bytes:
    """What the agent wrote, within bounds of bytes and time. It may never close the pipe: what is
    a whole object is not waited for any longer.
    """
    import select

    data = b""
    end = time.monotonic() + limits.HOOK_PAYLOAD_SECONDS
    try:
        while len(data) < limits.HOOK_PAYLOAD_BYTES and (left := end - time.monotonic()) > 0:
            if not select.select([0], [], [], left)[0]:
                break
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            data += chunk
            if chunk.rstrip().endswith(b"}") and payload.is_whole(data):
                break
    except OSError:  # stdin is closed: an empty payload, whose session is then unknown
        return data
    return data


def _project(told: Payload) -> str:
    """The folder that a missed fire was for; empty if that is gone."""
    try:
        return os.environ.get("CLAUDE_PROJECT_DIR") or told.cwd or os.getcwd()
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
    from savepoint.store import journal

    try:
        if not home.path:
            raise SavepointError("there is no home to log it in")  # noqa: TRY301  # told below
        journal.hook(
            home,
            int(time.time()),
            {
                "event": journal.printable(event),
                "session_id": journal.printable(told.session_id),
                "transcript": journal.printable(told.transcript),
                "project": journal.printable(_project(told)),
                "reason": journal.printable(reason),
            },
        )
    except SavepointError as failure:
        line = f"savepoint-hook: {journal.printable(reason)}; {failure.message}\n"
        os.write(2, line.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
