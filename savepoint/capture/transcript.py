"""Reading a file of the session in segments, while its writer may go on writing."""

from __future__ import annotations

import json
import os
import time

from savepoint.capture.exclusion import is_our_key, key_reason, name_reason
from savepoint.capture.stillness import AT_ONCE
from savepoint.core import limits, segments
from savepoint.core.errors import MalformedError, TranscriptError
from savepoint.core.named import NamedTuple
from savepoint.store.files import open_regular, read_at
from savepoint.store.session.sessions import CachedFile, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from savepoint.capture.stillness import Stillness
    from savepoint.core.segments import Segment
    from savepoint.store.packs import PackWriter

    class StartFeed(Protocol):
        """Told whether what was saved still begins the file; gives what new segments are fed to."""

        def __call__(self, *, stands: bool) -> Callable[[bytes], None]:
            """Called once, before the first segment."""


_LIKELY_BYTES = limits.SEGMENT_SOFT_BYTES + 64 * limits.KIB  # most lines end sooner
_KEY_BYTES = 4 * limits.KIB  # of a file: enough to tell a key by its beginning
_HASH_BYTES = 256 * limits.KIB


class Stored(NamedTuple):
    """A file after it was stored. Its segments have stand-ins for packs until the save settles."""

    stamp: Stamp  # of what was stored: its size is the bytes read
    segments: tuple[Segment, ...]
    prefix_check: str  # full | tail
    rewritten: bool  # what was saved before is no longer its beginning
    unsteady: bool  # it changed while it was read


def open_file(path: str) -> int:
    """A descriptor of a regular file. Raises TranscriptError in words a person understands."""
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise TranscriptError(f"{path} does not exist") from None
    except MalformedError as failure:
        raise TranscriptError(failure.message) from None
    except OSError as failure:
        raise TranscriptError(f"{path}: {failure.strerror}") from failure


def open_transcript(path: str, home: str) -> int:
    """As `open_file`, but nothing of our own, and no key: a payload that names root.seed or an SSH
    key as its transcript would have it stored as a conversation, and pushed. home: $SAVEPOINT_HOME.
    """
    fd = open_file(path)
    real, ours = os.path.realpath(path), os.path.realpath(home)
    if real.startswith(ours.rstrip("/") + "/") or is_our_key(os.fstat(fd), home):
        os.close(fd)
        raise TranscriptError(f"{path} belongs to savepoint and is no session")
    try:
        why = _secret(fd, path)
    except OSError as failure:
        os.close(fd)
        raise TranscriptError(f"{path}: {failure.strerror}") from failure
    if why:
        os.close(fd)
        raise TranscriptError(f"{path} {why} and holds no record")
    return fd


def _secret(fd: int, path: str) -> str | None:
    """Why the file is one of those that are never captured, by name or content. What holds a record
    is a session, whatever it is called or begins with.
    """
    why = name_reason(os.path.basename(path)) or key_reason(read_at(fd, _KEY_BYTES, 0))
    if why is None:
        return None
    lines = read_at(fd, limits.SEGMENT_SOFT_BYTES, 0).split(b"\n")
    return None if any(map(_is_record, lines)) else why


def _is_record(line: bytes) -> bool:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "type" in found


def store_file(
    fd: int,
    packs: PackWriter,
    before: CachedFile | None,
    start: StartFeed,
    still: Stillness = AT_ONCE,
) -> Stored:
    """Put the file into packs, segment by segment: only what is new is compressed and written.

    before: the file as the session's last savepoint stored it. start: called once with whether the
    saved beginning still stands; gives what every further segment is fed to.
    Raises TranscriptError (unreadable), DiskError.
    """
    try:
        return _store(fd, packs, before, start, still)
    except OSError as failure:
        raise TranscriptError(f"the file cannot be read: {failure.strerror}") from failure


def _store(
    fd: int,
    packs: PackWriter,
    before: CachedFile | None,
    start: StartFeed,
    still: Stillness,
) -> Stored:
    opened = os.fstat(fd)
    saved = before.segments if before else ()
    check = "full" if opened.st_size <= limits.FULL_CHECK_BYTES else "tail"
    stands = before is not None and bool(saved) and _prefix_stands(fd, before, opened, check)
    kept = saved[:-1] if stands else ()  # the last one may be open: more bytes can change it
    feed = start(stands=stands)
    reader = _Reader(fd, sum(one.bytes for one in kept), still)
    found = list(kept)
    for raw in reader.segments():
        feed(raw)
        found.append(packs.add(raw))
    after = os.fstat(fd)
    return Stored(
        stamp=Stamp(opened.st_dev, opened.st_ino, reader.position, after.st_mtime_ns),
        segments=tuple(found),
        prefix_check=check if stands else "full",
        rewritten=bool(saved) and not stands,
        unsteady=after.st_size < reader.position,
    )


def _prefix_stands(fd: int, before: CachedFile, opened: os.stat_result, check: str) -> bool:
    """Does what was saved still begin the file? A long file is believed from its identity and its
    last segments; a same-length edit further up is found by the full check later, and the snapshot
    says which check it had.
    """
    checked = before.segments
    total = sum(one.bytes for one in checked)
    if opened.st_size < total:
        return False
    if check == "tail":
        if (opened.st_dev, opened.st_ino) != (before.stamp.device, before.stamp.inode):
            return False
        checked = checked[-1 - limits.TAIL_CHECK_SEGMENTS :]
    position = total - sum(one.bytes for one in checked)
    for one in checked:
        if _sha256_at(fd, one.bytes, position) != one.sha256:
            return False
        position += one.bytes
    return True


def _sha256_at(fd: int, size: int, position: int) -> str:
    """Of `size` bytes from `position` on, or of what the file has of them. One small buffer serves:
    fresh memory for each read costs more than the hashing.
    """
    import hashlib  # not for a turn that only reads what it touched

    digest = hashlib.sha256()
    buffer = memoryview(bytearray(min(size, _HASH_BYTES)))
    while size > 0 and (got := os.preadv(fd, [buffer[:size]], position)):
        digest.update(buffer[:got])
        size -= got
        position += got
    return digest.hexdigest()


class _Reader:
    """Reads on from `position`, cutting segments, until the file has come to rest."""

    def __init__(self, fd: int, position: int, still: Stillness) -> None:
        self._fd = fd
        self._still = still
        self.position = position  # bytes of the file that were read

    def segments(self) -> Iterator[bytes]:
        """The raw bytes of each segment; only the last may be open."""
        start = self.position
        end = os.fstat(self._fd).st_size
        while True:
            data, is_closed = self._read(start, end)
            self.position = start + len(data)
            if is_closed:
                yield data
                start = self.position
                continue
            grown = self._wait(end)
            if grown == end:
                break
            end = grown
        if data:
            yield data

    def _read(self, start: int, end: int) -> tuple[bytes, bool]:
        """The segment at `start`, or, if it is not closed before `end`, all that there is of it."""
        most = _LIKELY_BYTES
        while True:
            data = read_at(self._fd, min(most, end - start), start)
            stop = segments.cut(data, 0, final=False)
            if stop is not None:
                return data[:stop], True
            if len(data) < most:
                return data, False
            most = min(2 * most, limits.SEGMENT_HARD_BYTES)

    def _wait(self, end: int) -> int:
        """The size to read to: more than `end` if the file grew before it had come to rest."""
        while True:
            seen = os.fstat(self._fd)
            if seen.st_size > end and time.monotonic() < self._still.give_up:
                if self._still.watched_since is not None:
                    self._still = self._still._replace(watched_since=time.monotonic())
                return seen.st_size
            pause = self._still.pause(seen)
            if pause <= 0:
                return end
            time.sleep(pause)
