"""`savepoint statusline [--then COMMAND]`: the user's own status line, and below it what is saved.

The agent runs it after each answer, with a JSON document on stdin, and ends it when
the next one comes: so little is imported, and no file is read whole that may be long. The figures
in it are the only ones that tell the size of the context window; they are kept for the hook, which
is called as soon as the threshold is passed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from savepoint.capture import surroundings
from savepoint.capture.agents import claude
from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits
from savepoint.core.errors import NoStoreError
from savepoint.store import config, registry, standing
from savepoint.store.layout import Home, Store, session_key
from savepoint.store.session import context, sessions
from savepoint.store.session.context import Figures

if TYPE_CHECKING:
    import subprocess

    from savepoint.store.config import Config
    from savepoint.store.session.sessions import Head

_THEN = "--then"
_HELP = """\
Usage: savepoint statusline [--then COMMAND]

What is saved of a session, in one line. The agent runs it after each answer, with JSON on
stdin; `savepoint install claude-code` puts it into the agent's settings. COMMAND is your own
status line, which is printed above it.
"""
_PUSHED, _REFUSED, _DIVERGED = "PUSHED_TO_GITHUB", "PUSH_REFUSED", "REMOTE_DIVERGED"
_VERIFIED, _FAILED = "BLOCKCHAIN_VERIFIED", "BLOCKCHAIN_FAILED"


def main(arguments: list[str]) -> NoReturn:
    """Print both lines; always exit 0: what fails here must not take the user's line away."""
    if {"-h", "--help"} & set(arguments[:1]) or (sys.stdin is not None and sys.stdin.isatty()):
        os.write(1, _HELP.encode())  # nobody at a terminal types what the agent tells
        os._exit(0)
    data = _read(sys.stdin)
    own = _start(arguments[1]) if arguments[:1] == [_THEN] and len(arguments) > 1 else None
    try:
        line = _line(data)
    except Exception as failure:  # noqa: BLE001  # it is said where the state would be
        line = f"savepoint: {getattr(failure, 'message', type(failure).__name__)}"
    shown = own.communicate(data)[0].rstrip(b"\n") if own else b""
    printable = "".join(c if c.isprintable() else "?" for c in line)
    out = (shown + b"\n" if shown else b"") + printable.encode("utf-8", "replace") + b"\n"
    try:
        os.write(1, out)
    except OSError:
        os._exit(0)  # nobody reads
    os._exit(0)


def _read(stream: Any) -> bytes:  # noqa: ANN401  # sys.stdin, or None where it is closed
    if stream is None:
        return b""
    data: bytes = stream.buffer.read(limits.HOOK_PAYLOAD_BYTES)
    return data


def _start(command: str) -> subprocess.Popen[bytes] | None:
    """The user's own command, as the agent would have run it."""
    import subprocess

    try:
        return subprocess.Popen(  # noqa: S602  # it is a line for a shell
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError:
        return None


class _Told(NamedTuple):
    """What the agent says."""

    session_id: str
    transcript: str
    project: str
    model: str
    figures: Figures | None


def _line(data: bytes) -> str:
    """The state of the session's savepoints in a few words."""
    told = _told(data)
    if told is None:
        return "savepoint: the agent told nothing of its session"
    home = Home(surroundings.home(os.environ))
    try:
        store = registry.find(home, told.project)
    except NoStoreError:
        return "savepoint: nothing saved yet"
    key = session_key(told.session_id)
    chosen = config.load(store)
    full = _watch(store, key, told, chosen) if told.figures else ""
    head = sessions.head(store, key)
    if head is None:
        return f"savepoint: session not saved yet{full}"
    return f"savepoint: {head.seq} saved {_when(head.saved_at)}{_since(store, head, chosen)}{full}"


def _told(data: bytes) -> _Told | None:
    """None where it is no object, or names no folder."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    workspace, window = _dict(value, "workspace"), _dict(value, "context_window")
    usage = _dict(window, "current_usage")
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    used = [usage[part] for part in parts if isinstance(usage.get(part), int)]
    size = window.get("context_window_size")
    figures = Figures(size, sum(used)) if isinstance(size, int) and size > 0 and used else None
    project = os.environ.get("CLAUDE_PROJECT_DIR") or workspace.get("project_dir")
    project = project or value.get("cwd")
    if not project:
        return None
    return _Told(
        session_id=str(value.get("session_id") or ""),
        transcript=str(value.get("transcript_path") or ""),
        project=str(project),
        model=str(_dict(value, "model").get("id") or ""),
        figures=figures,
    )


def _dict(value: object, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _watch(store: Store, key: str, told: _Told, chosen: Config) -> str:
    """Keep the figures; call the hook when they pass the threshold. How full the context is."""
    now, before = told.figures, context.figures(store, key)
    assert now is not None  # noqa: S101  # the caller looked
    if now != before:
        context.save_figures(store, key, now)
    percent = _percent(told, now)
    if percent is None:
        return ""
    was = _percent(told, before) if before else None
    limit = chosen.threshold
    if limit is not None and percent >= limit and (was is None or was < limit):
        _call_hook(told)
    return f" · {percent} % of the way to compaction"


def _percent(told: _Told, figures: Figures) -> int | None:
    """Of what the session can use until the agent compacts."""
    window = surroundings.window(os.environ)._replace(
        settings=claude.settings_window(surroundings.config_dir(os.environ), told.project),
        status_line=figures.window,
    )
    scan = Scan.empty()
    scan.model = told.model
    usage = {"input_tokens": figures.used}
    answer = {"type": "assistant", "message": {"role": "assistant", "usage": usage}}
    return claude.tokens(scan, json.dumps(answer).encode(), window).percent


def _call_hook(told: _Told) -> None:
    """As the agent does at the end of a turn, which in a long one may come too late. It judges by
    itself; nobody waits for it.
    """
    program = os.path.join(os.path.dirname(sys.executable), "savepoint-hook")
    payload = json.dumps(
        {"session_id": told.session_id, "transcript_path": told.transcript, "cwd": told.project}
    ).encode()
    read, write = os.pipe()
    os.write(write, payload)  # far below what a pipe holds
    os.close(write)
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    actions = [(os.POSIX_SPAWN_DUP2, read, 0), *silent]
    command = [sys.executable, "-I", program, "Stop"]
    os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
    os.close(read)


def _since(store: Store, head: Head, chosen: Config) -> str:
    """What became of the savepoint since, as the log for people has it."""
    events = standing.events(store.instance(head.instance), head.seq)
    told = ""
    if chosen.remote is not None:
        refused = next((one for one in (_REFUSED, _DIVERGED) if one in events), None)
        told += " · pushed" if _PUSHED in events else f" · {refused or 'push queued'}"
    if chosen.ledger is not None:
        waiting = "anchor failed" if _FAILED in events else "anchor queued"
        told += f" · {'anchored' if _VERIFIED in events else waiting}"
    return told


def _when(seconds: int) -> str:
    """The time of day here; with the date, if that is another. No age: the line stands until the
    next answer.
    """
    then, today = time.localtime(seconds), time.localtime()
    is_today = then[:3] == today[:3]
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)
