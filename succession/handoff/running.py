"""What runs in a session: as its last Stop told it, and the processes that it registered."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_lines
from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded
from succession.handoff import is_there, log, turn
from succession.handoff.turn import Reason

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

_SHAPE = schema.members(
    {"v": schema.one_of(1), "tasks": schema.array(schema.text), "crons": schema.array(schema.text)}
)
_STAT_BEGUN = 19  # field of /proc/<pid>/stat behind the program's name: when it began, in ticks


def keep(store: Store, key: str, payload: bytes) -> None:
    """Keep what a Stop's payload says of background tasks and session crons. Nothing is kept in a
    store without threads. key: of the session. Raises DiskError.
    """
    if not is_there(store):
        return
    try:
        value = json.loads(payload.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        value = None
    told = value if isinstance(value, dict) else {}
    if "background_tasks" not in told and "session_crons" not in told:
        return  # a client before 2.1.145: nothing is known
    document: dict[str, Json] = {
        "v": 1,
        "tasks": _told(told.get("background_tasks")),
        "crons": _told(told.get("session_crons")),
    }
    folder = os.path.dirname(_path(store, key))
    durable.make_directories(folder)
    durable.replace(_path(store, key), dump(document) + b"\n", durable_name=False)


def kept(store: Store, key: str) -> tuple[list[str], list[str]] | None:
    """Background tasks and session crons, a line each; None: no Stop told. Raises DiskError."""
    try:
        data = read_bounded(_path(store, key), limits.SMALL_DOCUMENT_BYTES)
        if data is None:
            return None
        value = parse(data)
        _SHAPE(value, "running")
    except MalformedError:
        return None
    match value:
        case {"tasks": [*tasks], "crons": [*crons]}:
            return [str(one) for one in tasks], [str(one) for one in crons]
    return None


def reasons(store: Store, key: str) -> list[Reason]:
    """Why a session is not idle; also where nobody can know."""
    found = kept(store, key)
    if found is None:
        hook = "at the end of a turn it is told, where `savepoint install claude-code` set the hook"
        why = f"no Stop of session {key} has told what runs yet ({hook})"
        return [Reason("not known", why)]
    tasks, crons = found
    return [
        *(Reason("running", f"background task {one}") for one in tasks),
        *(Reason("running", f"session cron {one}") for one in crons),
    ]


def begun(pid: int) -> int | None:
    """When a process began, as this machine counts; 0 where it does not tell; None: it is gone."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has a number that high
        return None
    except PermissionError:
        pass
    data = _stat(pid)
    fields = data.rpartition(b")")[2].split()
    if fields[:1] == [b"Z"]:
        return None
    return int(fields[_STAT_BEGUN]) if len(fields) > _STAT_BEGUN else 0


def is_alive(process: Json) -> bool:
    """Does the process of an action run still? Its number may be another's by now."""
    match process:
        case {"pid": int(pid), "begun": int(then)}:
            return begun(pid) == then
    return False


def _stat(pid: int) -> bytes:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limits.HANDOFF_ANSWER_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _told(listed: object) -> list[Json]:
    """Each of a list in one line; what has ended is left out."""
    found: list[Json] = []
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):
            if turn.is_ended(one.get("status")):
                continue
            named = (one.get(name) for name in _NAMES)
            text = " ".join(str(name) for name in named if isinstance(name, str | int))
        else:
            text = str(one)
        found.append(turn.shown(claude_lines.clean(text) or "without a name"))
    return found[: limits.HANDOFF_CANDIDATES]


def _path(store: Store, key: str) -> str:
    return os.path.join(log.folder_of(store), "running", key + ".json")


_NAMES = ("id", "task_id", "type", "schedule", "cron", "status", "description", "command", "prompt")
