"""Which commits are to be made: the records that git lacks, in order, with what each needs."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import limits, record, snapshot
from savepoint.core.errors import (
    CommitError,
    DiskError,
    MalformedError,
    TamperedError,
    UnsupportedFormatError,
)
from savepoint.core.named import NamedTuple
from savepoint.store.files import open_regular
from savepoint.store.packs import read_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import Snapshot, StoredFile
    from savepoint.gitlayer.cursor import Base, OpenChunk
    from savepoint.store.layout import InstancePaths, Store


_NOT_TO_BE_READ = (MalformedError, UnsupportedFormatError)  # damaged; of a newer version


class New(NamedTuple):
    """The savepoint that was just made, with what its maker knows of it."""

    record: Record
    snapshot: Snapshot
    written: frozenset[str]  # packs of this save: surely in no commit yet
    blobs: Mapping[str, str]  # pack → blob, from the cache of its session


class Content(NamedTuple):
    """What the commit of a savepoint holds beside the index."""

    snapshot: Snapshot
    files: list[StoredFile]
    packs: list[str]  # names, sorted


class Step(NamedTuple):
    """One commit."""

    record: Record  # the one it is the commit of; others before it may ride along
    content: Content | None  # None: it is no savepoint's
    closed: dict[str, bytes]  # path → chunk of the index
    chunk: OpenChunk


class Plan(NamedTuple):
    """The commits of one run."""

    steps: list[Step]
    skipped: tuple[tuple[int, str], ...]  # savepoints that cannot be read any more, and why
    left: int  # records after the last step


def plan(paths: InstancePaths, base: Base, lines: bytes, newest: New | None) -> Plan:
    """The commits for `lines`, the end of the index that git lacks; as many as one run may make.

    A savepoint that is damaged on disk, or of a newer version, gets none, and keeps no later one
    from it: its record rides along, and verification names it. An accept record rides with what
    comes after it; that of a gap, at the end, has a commit of its own: who fetches must not see the
    gap and not that it is accepted.
    Raises CommitError (records are missing before it, or it is no continuation), MalformedError,
    DiskError.
    """
    steps, skipped = list[Step](), list[tuple[int, str]]()
    chunk, closed = base.chunk, dict(base.closed or {})
    waiting = [record.parse(line) for line in lines.split(b"\n")[:-1]]
    _check_links(base, waiting)
    done = size = 0
    for number, one in enumerate(waiting, 1):
        chunk, full = chunk.add(one.line)
        closed.update([full] if full else [])
        if not has_commit(paths, one):
            continue
        if len(steps) >= limits.COMMITS_AT_ONCE or size > limits.COMMIT_RUN_BYTES:
            break
        content = None
        if one.kind == "save":
            try:
                content = _content(paths, one, newest)
                size += _weight(paths.store, content)
            except _NOT_TO_BE_READ as failure:
                skipped.append((one.seq, failure.message))
                continue
        steps.append(Step(one, content, closed, chunk))
        closed, done = {}, number
    else:
        if _accepts_a_gap(waiting[done:]) and (steps or base.cursor):
            steps.append(Step(waiting[-1], None, closed, chunk))
            done = len(waiting)
    return Plan(steps, tuple(skipped), len(waiting) - done)


def has_commit(paths: InstancePaths, one: Record) -> bool:
    """Must it have one? A savepoint, a RETIRE, the birth of a successor; every other record rides
    with the next.
    """
    if one.kind == "birth":
        return os.path.exists(paths.bootstrap)
    return one.kind in ("save", "retire")


def _check_links(base: Base, waiting: list[Record]) -> None:
    """Each follows the one before it. Where records are missing, nothing above the gap goes into
    git until they are back, or a signed record accepts that they are not.
    """
    seq, last = (base.cursor.seq, base.cursor.record) if base.cursor else (0, None)
    for number, one in enumerate(waiting):
        if one.seq == seq + 1 and last is not None and one.prev != last:
            raise CommitError(
                f"record {one.seq} does not follow record {seq} as git has it",
                hint="run `savepoint fsck`",
            )
        if one.seq != seq + 1 and not _is_accepted(seq + 1, one.seq - 1, waiting[number:]):
            raise CommitError(
                f"the index lacks the records {seq + 1} to {one.seq - 1}",
                hint="run `savepoint fsck --repair`",
            )
        seq, last = one.seq, one.hash


def _accepts_a_gap(left: list[Record]) -> bool:
    only = all(one.kind == "accept" for one in left)
    return only and any(one.body["reason"] == "gap" for one in left)


def _is_accepted(first: int, last: int, later: list[Record]) -> bool:
    bodies = [one.body for one in later if one.kind == "accept"]
    return any((body["first"], body["last"]) == (first, last) for body in bodies)


def _content(paths: InstancePaths, one: Record, newest: New | None) -> Content:
    """What the commit of a savepoint holds. Raises MalformedError (damaged), DiskError."""
    if newest is not None and newest.record.hash == one.hash:
        return content_of(newest.snapshot, paths.store)
    from savepoint.store import savepoints

    content = content_of(savepoints.open_snapshot(paths, one), paths.store)
    for name in content.packs:
        _check_pack(paths.store, name)
    return content


def is_whole(paths: InstancePaths, one: Record) -> bool:
    """Can a savepoint be committed? Raises DiskError."""
    try:
        _content(paths, one, None)
    except _NOT_TO_BE_READ:
        return False
    return True


def content_of(found: Snapshot, store: Store) -> Content:
    """With its lists, wherever they are kept. Raises MalformedError, DiskError."""
    return content_with(found, lambda one: read_segment(store, one))


def content_with(found: Snapshot, read: Callable[[Segment], bytes]) -> Content:
    """As `content_of`; `read` gives the raw bytes of a segment that is part of a list."""
    files = list(snapshot.files(found.document, read))
    packs = {one.pack for file in files for one in file.segments}
    for listed in snapshot.spilled_lists(found.document):
        packs.update(one.pack for one in listed)
    return Content(found, files, sorted(packs))


def _check_pack(store: Store, name: str) -> None:
    """Bytes that are not those of its name must not be carried on."""
    path = store.pack(name)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise TamperedError(f"pack {path} is missing") from None
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    if digest != name:
        raise TamperedError(f"pack {path} has other content than its name says")


def _weight(store: Store, content: Content) -> int:
    """Bytes that a commit may hold in memory or on the wire. Raises TamperedError, DiskError."""
    sizes = [_size(store.pack(name)) for name in content.packs]
    return sum(sizes) + 8 * len(content.snapshot.data)  # parsed, a document takes that much


def _size(pack: str) -> int:
    """A pack can go missing at any moment, also between its save and the commit."""
    try:
        return os.stat(pack).st_size
    except FileNotFoundError:
        raise TamperedError(f"pack {pack} is missing") from None
    except OSError as failure:
        raise DiskError.of(failure, pack) from failure
