"""Verification of what an index names, as numbered rules: bytes and values in, findings out.

VERIFY-5  The snapshot file has the size and the SHA-256 that its record signed.
          Stops a changed, cut, emptied or removed snapshot.
VERIFY-6  The snapshot is one document in its one spelling, its integrity member holds, and it says
          of itself what the record says of it.
          Stops a genuine snapshot under another savepoint's record.
VERIFY-7  Each pack that the snapshot names is there, starts as a pack does, and has its name as its
          SHA-256.
          Stops a changed, cut or removed pack, also in bytes that no frame covers.
VERIFY-8  Each segment's frame opens to exactly its bytes, hash and lines; roots and whole-file
          hashes fit the segments.
          Stops frames that open to other content than was saved, segments put in another order, and
          frames that open without end.

Rules 5 and 6 are `snapshot_file` and `snapshot_document`, 7 `pack`, 8 `check_segment`,
`open_segment` and `stored_file`. Those of the index itself are in verify_index.py, which says what
is TAMPERED and what UNVERIFIABLE.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import packs, snapshot, spelling
from savepoint.core.errors import SavepointError, TamperedError, UnsupportedFormatError
from savepoint.core.verdicts import Finding, Lack, absent, passed, tampered, unchecked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import Snapshot, StoredFile

STORED_RULES = tuple(f"VERIFY-{number}" for number in range(5, 9))


def snapshot_file(one: Record, data: bytes | Lack, where: str) -> Finding:
    """VERIFY-5: the file is the one whose size and hash were signed."""
    if isinstance(data, Lack):
        return absent("VERIFY-5", where, data)
    size = one.body["snapshot_size_bytes"]
    if len(data) != size:
        return tampered("VERIFY-5", f"{where} has {len(data)} bytes; {size} were signed")
    if hashlib.sha256(data).hexdigest() != one.snapshot_hash:
        return tampered("VERIFY-5", f"{where} has another SHA-256 than was signed")
    return passed("VERIFY-5", f"{where}: {size} bytes, SHA-256 as signed")


def snapshot_document(one: Record, data: bytes, where: str) -> tuple[Snapshot | None, Finding]:
    """VERIFY-6, for bytes that passed VERIFY-5. The snapshot is None unless the rule holds."""
    try:
        found = snapshot.parse(data)
    except UnsupportedFormatError as newer:
        return None, unchecked("VERIFY-6", f"{where}: {newer.message}", unsupported=True)
    except SavepointError as failure:
        return None, tampered("VERIFY-6", f"{where}: {failure.message}")
    differing = _disagreements(one, found)
    if differing:
        detail = f"{where} and record {one.seq} differ in {', '.join(differing)}"
        return None, tampered("VERIFY-6", detail)
    return found, passed("VERIFY-6", f"{where}: one document, as its record says")


def _disagreements(one: Record, found: Snapshot) -> list[str]:
    """VERIFY-6: what the snapshot says of itself, against the record."""
    document, body = found.document, one.body
    session_id = str(snapshot.member_at(document, ("conversation_history", "session_id")))
    key = session_id
    if not spelling.is_session_key(session_id):  # no file may have such a name
        key = hashlib.sha256(session_id.encode("utf-8")).hexdigest()
    agreements = {
        "instance": document["instance_id"] == one.instance,
        "timestamp": document["timestamp_iso8601"] == spelling.time_text(one.timestamp),
        "session_id": body["session_id"] == key,
    }
    for member in _TOKENS:
        agreements[member] = document[member] == body[member]
    return [name for name, agrees in agreements.items() if not agrees]


_TOKENS = ("tokens_used_this_session", "tokens_remaining", "context_utilization_percent")


def pack(name: str, data: bytes | Lack, where: str) -> Finding:
    """VERIFY-7: the pack is there, is a pack, and is the one of that name."""
    if isinstance(data, Lack):
        return absent("VERIFY-7", where, data)
    try:
        packs.check_header(data)
    except SavepointError as failure:
        return tampered("VERIFY-7", f"{where}: {failure.message}")
    if hashlib.sha256(data).hexdigest() != name:
        return tampered("VERIFY-7", f"{where} has another SHA-256 than its name")
    return passed("VERIFY-7", f"{where}: SHA-256 is its name")


def open_segment(one: Segment, data: bytes, where: str) -> bytes:
    """VERIFY-8: the raw bytes of a segment of the pack `data`. Raises TamperedError."""
    return b"".join(_opened(one, data, where))


def check_segment(one: Segment, data: bytes, where: str) -> None:
    """As `open_segment`, with nothing kept. Raises TamperedError."""
    for _ in _opened(one, data, where):
        pass


def _opened(one: Segment, data: bytes, where: str) -> Iterator[bytes]:
    """The raw bytes in pieces. Raises TamperedError, at the end.

    A frame of some KB can open to terabytes: it is opened no further than the segment's size, and
    a Segment is bounded.
    """
    at = f"{where}, frame at {one.offset}"
    digest, lines = hashlib.sha256(), 0
    frame = memoryview(data)[one.offset : one.offset + one.length]
    try:
        for piece in packs.pieces(frame, one.bytes):
            digest.update(piece)
            lines += piece.count(b"\n")
            yield piece
    except TamperedError as failure:
        raise TamperedError(f"{at}: {failure.message}") from failure
    if digest.hexdigest() != one.sha256:
        raise TamperedError(f"{at}: opens to other bytes than were saved")
    if lines != one.lines:
        raise TamperedError(f"{at}: has another number of lines than stated")


def stored_file(one: StoredFile, where: str) -> Finding | None:
    """VERIFY-8: the arithmetic of a file: its size, its root, and its hash if it is one segment.

    None if it fits. The hash of a file of several segments is `whole_file`.
    """
    fault = snapshot.check_file(one)
    if not fault and one.sha256 is not None and len(one.segments) < _SEVERAL:
        only = one.segments[0].sha256 if one.segments else hashlib.sha256().hexdigest()
        fault = "" if only == one.sha256 else f"the SHA-256 of {one.path!r} is not its content's"
    return tampered("VERIFY-8", f"{where}: {fault}") if fault else None


_SEVERAL = 2  # segments: the hash of a file of fewer is that of its segment


def has_hash_of_its_own(one: StoredFile) -> bool:
    """Must the file be hashed as a whole to know whether its SHA-256 fits?"""
    return one.sha256 is not None and len(one.segments) >= _SEVERAL


def whole_file(expected: str, actual: str, where: str) -> Finding | None:
    """VERIFY-8: the hash over all segments of a file, in order."""
    if expected == actual:
        return None
    return tampered("VERIFY-8", f"{where}: segments make no file of SHA-256 {expected}")
