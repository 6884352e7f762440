"""The index of an instance on disk: its end is read, a torn tail set aside, a record appended.

All of this happens under the store lock, and reads O(1) however long the index is; all of it only
where its last line is damaged, or the trusted head has not come to the last two records.
"""

from __future__ import annotations

import os

from savepoint.core import chain, limits, record, spelling
from savepoint.core.chain import Gap
from savepoint.core.digest import sha256
from savepoint.core.errors import (
    DiskError,
    KeyFileError,
    MalformedError,
    SavepointError,
    UnsupportedFormatError,
)
from savepoint.core.named import NamedTuple
from savepoint.store import durable
from savepoint.store.files import open_regular, read_at, read_bounded
from savepoint.store.lines import line_at, session_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths
    from savepoint.store.trusted import TrustedHead


_RETIRED = "its next number goes on; if there is none yet, `savepoint keys retire` again"


class Tail(NamedTuple):
    """The end of an index, ready for the next record."""

    size: int  # bytes of the file, its last line whole
    last: Record | None  # None: empty, or its last line does not parse
    damaged: bool  # the last line does not parse


class Position(NamedTuple):
    """Where the next record goes."""

    seq: int
    prev: str
    gap: Gap | None  # sequences that the trusted head knows and the index has not


def settle(paths: InstancePaths) -> Tail:
    """Read the end of the index; finish or set aside a torn tail.

    Raises DiskError, UnsupportedFormatError (a newer version wrote the end).
    """
    tail, size = _read_end(paths.index_file)
    line, torn = chain.last_line(tail)
    _refuse_newer(line)
    _refuse_newer(torn)
    last = _parse(line)
    if torn and chain.continuation(torn, last) is not None:
        durable.append(paths.index_file, b"\n", size=size)
        return Tail(size + 1, _parse(torn), damaged=False)
    if torn:
        aside = f"{paths.index_file}.torn-{sha256(torn).hexdigest()[:16]}"
        durable.create_exclusive(aside, torn)
        durable.truncate(paths.index_file, size - len(torn))
    return Tail(size - len(torn), last, damaged=bool(line) and last is None)


def _refuse_newer(line: bytes) -> None:
    """A chain's version may not go down, so nothing of ours may follow a newer record."""
    try:
        record.parse(line)
    except UnsupportedFormatError:
        raise
    except SavepointError:
        return


def next_position(paths: InstancePaths, tail: Tail, trusted: TrustedHead | None) -> Position:
    """The next sequence number and link. No number is ever used twice: where the trusted head
    knows more than the index, the chain goes on from there and the gap is named. Raises
    KeyFileError: a retired key signs nothing more.
    """
    check_open(paths, tail.last)
    seq, prev = (tail.last.seq, tail.last.hash) if tail.last else (0, spelling.ZERO_DIGEST)
    if tail.damaged:
        seq, prev = _after_damage(paths)
    if trusted is not None and trusted.seq > seq:
        return Position(trusted.seq + 1, trusted.record, Gap(seq + 1, trusted.seq))
    return Position(seq + 1, prev, None)


def check_open(paths: InstancePaths, last: Record | None) -> None:
    """May a record follow `last`? Raises KeyFileError: a retired key signs nothing more."""
    if last is not None and last.kind == "retire":
        raise KeyFileError(f"{paths.slug} is retired by its record {last.seq}", hint=_RETIRED)


def believed(
    paths: InstancePaths, end: Record | None, head: TrustedHead | None
) -> TrustedHead | None:
    """The trusted head as far as it can be right: it is unsigned, and a number of its that is made
    up would be gone on from, signed, for good. Where the record that it names stands in the index
    under another number, that one counts, as of a head that was made anew; None: no index can have
    come as far. end: the last record. Raises DiskError.
    """
    if head is None or (end is not None and head.seq <= end.seq):
        return head
    for line in read(paths).split(b"\n"):
        if sha256(line).hexdigest() == head.record and (one := _parse(line)) is not None:
            return head if one.seq == head.seq else head._replace(seq=one.seq, recreated=True)
    return head if head.seq <= limits.INDEX_BYTES else None


def holds(paths: InstancePaths, end: Record | None, seq: int, record_hash: str) -> bool:
    """Does the index have that record with that hash, or at least follow it? The last two are
    looked at without reading more: what was seen lags further only after a crash, or behind work
    that waits. end: the last record. Raises DiskError.
    """
    if end is not None and end.seq == seq:
        return sha256(end.line).hexdigest() == record_hash
    if end is not None and end.seq == seq + 1:
        return end.prev == record_hash
    return record_hash in hashes(paths)


def lost(paths: InstancePaths, end: Record | None) -> str:
    """What the trusted head has seen and the index has not, for people; empty where that is
    nothing, or the owner accepted it. end: the last record. Reads one small file, and the index
    only after a rollback. Raises DiskError, UnsupportedFormatError.
    """
    from savepoint.store import trusted

    head = trusted.load(paths)
    if head is None:
        return ""
    if head != believed(paths, end, head):
        return f"{paths.trusted} is damaged: it names a record {head.seq}"
    if end is None or end.seq < head.seq:
        ending = f"ends at record {end.seq}" if end else "has no record"
        return f"the index {ending}; record {head.seq} was seen"
    if not holds(paths, end, head.seq, head.record):
        return f"the index lacks the record {head.seq} that was seen"
    left = [gap for gap in head.gaps if not _is_over(paths, gap)]
    return f"the index lacks the records {left[0].first} to {left[0].last}" if left else ""


def _is_over(paths: InstancePaths, gap: Gap) -> bool:
    """Was it closed again, or accepted by a record?"""
    needles = f'"seq":{gap.last},'.encode(), b'"reason":"gap"'
    lines = (one for one in read(paths).split(b"\n") if any(part in one for part in needles))
    return any(
        one.seq == gap.last
        or (one.body.get("first"), one.body.get("last")) == (gap.first, gap.last)
        for one in map(_parse, lines)
        if one is not None
    )


def hashes(paths: InstancePaths) -> set[str]:
    """Of all lines of the index. Raises DiskError."""
    return {sha256(line).hexdigest() for line in read(paths).split(b"\n")}


def append(paths: InstancePaths, tail: Tail, line: bytes) -> int:
    """Make a record's line durable; returns the offset it starts at. Raises DiskError."""
    durable.append(paths.index_file, line + b"\n", size=tail.size)
    return tail.size


def birth(paths: InstancePaths) -> Record | None:
    """The first record, or None where there is none that parses."""
    return _parse(line_at(paths, 0))


def origin(paths: InstancePaths) -> Record | None:
    """The record of a successor that names the savepoint which it was restored from, the second;
    None: the instance is the first of its line. Raises DiskError.
    """
    second = _parse(line_at(paths, len(line_at(paths, 0)) + 1))
    return second if second is not None and second.kind == "restore" else None


def instance(paths: InstancePaths) -> str:
    """`NAME #N` of the instance; from another record where the first is damaged."""
    known = birth(paths) or next(filter(None, map(_parse, read(paths).split(b"\n"))), None)
    if known is None:
        raise MalformedError(f"{paths.index_file} has no record that can be read")
    return known.instance


def last(paths: InstancePaths) -> Record | None:
    """The last record, where the end of the index can be read as one. Raises DiskError."""
    tail, _ = _read_end(paths.index_file)
    return _parse(chain.last_line(tail)[0])


def is_retired(paths: InstancePaths) -> bool:
    """Is the last record that the key signs nothing more? Raises DiskError."""
    found = last(paths)
    return found is not None and found.kind == "retire"


def last_of_session(paths: InstancePaths, key: str) -> tuple[Record, int] | None:
    """The newest savepoint of a session and its offset, for a session whose cache is gone."""
    data = read(paths)
    needle = session_member(key)
    found = data.rfind(needle)
    while found >= 0:
        start = data.rfind(b"\n", 0, found) + 1
        one = _parse(data[start : start + limits.RECORD_BYTES + 1].partition(b"\n")[0])
        if one is not None and one.kind == "save" and one.body["session_id"] == key:
            return one, start
        found = data.rfind(needle, 0, start)
    return None


def read(paths: InstancePaths) -> bytes:
    """The whole index; empty where there is none. Raises DiskError."""
    return read_bounded(paths.index_file, limits.INDEX_BYTES) or b""


def _read_end(path: str) -> tuple[bytes, int]:
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return b"", 0
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        size = os.fstat(fd).st_size
        length = chain.TAIL_BYTES
        while True:
            tail = read_at(fd, length, max(0, size - length))
            if length >= size or chain.is_enough(tail):
                return tail, size
            length *= 2
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)


def _parse(line: bytes) -> Record | None:
    try:
        return record.parse(line) if line else None
    except SavepointError:
        return None


def _after_damage(paths: InstancePaths) -> tuple[int, str]:
    """Beyond the highest number that any line of a damaged index could have had."""
    lines = read(paths).split(b"\n")[:-1]
    known = [(number, one) for number, line in enumerate(lines) if (one := _parse(line))]
    if not known:
        return len(lines), spelling.ZERO_DIGEST
    number, one = max(known, key=lambda pair: pair[1].seq)
    return one.seq + len(lines) - 1 - number, sha256(lines[-1]).hexdigest()
