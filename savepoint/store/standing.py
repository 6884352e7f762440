"""How far a savepoint has come, as the log for people tells: for what must be quick and is no
evidence, a status line, a line for the agent.
"""

from __future__ import annotations

import os

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.core.strict_json import parse
from savepoint.store.files import open_regular, read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


def events(paths: InstancePaths, seq: int) -> dict[str, str]:
    """What became of that savepoint, or of a later one, which covers it: the log's words, oldest
    first, and the error with which each came last, empty without one. What the log told before the
    savepoint was made is of another of that number: the index was cut, and gone on from.
    """
    found: dict[str, str] = {}
    for line in _end_of(paths.status_log).split(b"\n"):
        try:
            told = parse(line)
        except SavepointError:
            continue
        match told:
            case {"seq": int(of), "event": "SAVED_LOCALLY"} if of == seq:
                found.clear()
            case {"seq": int(of), "event": str(event), **more} if of >= seq:
                found.pop(event, None)
                found[event] = str(more.get("error", ""))
    return found


def _end_of(path: str) -> bytes:
    try:
        fd = open_regular(path)
    except (OSError, SavepointError):
        return b""
    try:
        size = os.fstat(fd).st_size
        start = max(0, size - limits.STATUS_TAIL_BYTES)
        return read_at(fd, size - start, start)
    finally:
        os.close(fd)
