"""What a resurrection does not bring back: messages after the savepoint, if the transcript that it
was made of is still there, and a savepoint before it that holds more.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude
from savepoint.core import snapshot
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.store import savepoints
from savepoint.store.files import open_regular
from savepoint.store.session import sessions

if TYPE_CHECKING:
    from typing import BinaryIO

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.strict_json import Json
    from savepoint.resurrect.successor import Parent
    from savepoint.store.layout import InstancePaths

_BLOCK = 1 << 20  # bytes read at once
_HISTORY = "conversation_history"


def after(
    parent: Parent, document: dict[str, Json], config_dir: str, saved: tuple[Segment, ...]
) -> int | None:
    """How many messages the live transcript has that the savepoint has not; None where it is gone,
    or cannot be read. saved: the segments of the savepoint's transcript.
    """
    path = snapshot.member_at(document, (_HISTORY, "transcript", "path"))
    session = str(snapshot.member_at(document, (_HISTORY, "session_id")))
    if not isinstance(path, str) or not os.path.isfile(path):
        path = claude.transcript_path(config_dir, os.curdir, session)
    if not path:
        return None
    if _is_as_saved(parent, path, sum(one.bytes for one in saved)):
        return 0
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if _passes(file, saved):  # it mostly has grown, or not even that
                return _messages(file)
            file.seek(0)
            return max(0, _messages(file) - _count(document, "message_count"))
    except (OSError, MalformedError):
        return None


def fuller(paths: InstancePaths, one: Record, document: dict[str, Json]) -> Record | None:
    """The savepoint before it of the same session, if that holds more of the conversation although
    no compaction came in between; None where there is none, or it cannot be read.
    """
    origin = one.body["from"]
    if not isinstance(origin, dict):
        return None
    try:
        before = savepoints.find(paths, str(origin["snapshot_hash"]))
        older = savepoints.open_snapshot(paths, before).document
    except SavepointError:
        return None
    shrank = _count(document, "message_count") < _count(older, "message_count")
    compacted = _count(document, "compactions") > _count(older, "compactions")
    return before if shrank and not compacted else None


def _count(document: dict[str, Json], name: str) -> int:
    return int(str(snapshot.member_at(document, (_HISTORY, name))))


def _is_as_saved(parent: Parent, path: str, size: int) -> bool:
    """Did nobody write to a transcript since that savepoint, as far as a clock tick tells? A save
    knows it so as well.
    """
    last = sessions.load(parent.paths.store, str(parent.savepoint.body["session_id"]))
    file = last.files.get(path) if last and last.record == parent.savepoint.hash else None
    if file is None:
        return False
    try:
        seen = os.stat(path)
    except OSError:
        return False
    return seen.st_size == size and sessions.Stamp.of(seen) == file.stamp


def _passes(file: BinaryIO, saved: tuple[Segment, ...]) -> bool:
    """Does a file begin with these segments, and end a line there? It is read that far, or less."""
    data = b""
    for one in saved:
        data = file.read(one.bytes)
        if hashlib.sha256(data).hexdigest() != one.sha256:
            return False
    return data.endswith(b"\n")


def _messages(file: BinaryIO) -> int:
    """Of what is left of a transcript."""
    scan = claude.Scan.empty()
    while data := file.read(_BLOCK):
        scan.feed(data)
    return scan.end().messages
