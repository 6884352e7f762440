"""Writing new segments into packs, and reading segments back."""

from __future__ import annotations

import _thread
import hashlib
import os
from typing import TYPE_CHECKING, Self

from savepoint.core import limits, packs
from savepoint.core.errors import DiskError, TamperedError
from savepoint.core.segments import Segment
from savepoint.store import durable
from savepoint.store.files import open_regular, read_at

if TYPE_CHECKING:
    from savepoint.store.layout import Store

_STAND_IN = "@"  # for the pack of a segment that is in none yet
_LONG_BYTES = 128 * limits.KIB  # from here on a segment is worth a thread
_JOBS = 2  # segments being compressed at once: they and their frames are held in memory


class PackWriter:
    """Takes the segments of one save. What is known already is not written again; the rest goes as
    frames into packs, named when they are full or `finish` is called. Long segments are compressed
    beside the caller's own work.

    Until then a segment has a stand-in for its place; `settled` gives the segment with it.
    """

    def __init__(self, store: Store, known: dict[str, Segment]) -> None:
        self._store = store
        self._known = known
        self._present: dict[str, bool] = {}  # packs of known segments that were looked at
        self._jobs: list[tuple[Segment, _Job]] = []  # compressed meanwhile, oldest first
        self._entered: list[Segment] = []  # in the open pack, with everything but its name
        self._settled: dict[str, Segment] = {}  # in packs of this save, by SHA-256
        self._open: _OpenPack | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._open is not None:
            self._open.file.__exit__(None, None, None)

    def add(self, raw: bytes) -> Segment:
        """The segment of these bytes. Raises DiskError."""
        return self.add_hashed(raw, hashlib.sha256(raw).hexdigest())

    def add_hashed(self, raw: bytes, sha256: str) -> Segment:
        """As `add`, for bytes whose SHA-256 was taken already."""
        known = self._known.get(sha256)
        if known is not None and self._is_present(known.pack):
            return known
        segment = Segment(sha256, len(raw), raw.count(b"\n"), _STAND_IN, 0, 0)
        self._known[sha256] = segment
        if len(raw) < _LONG_BYTES:
            self._enter(segment, packs.compress(raw))
        else:
            self._take_jobs(_JOBS - 1)
            self._jobs.append((segment, _Job(raw)))
        return segment

    def finish(self) -> None:
        """Every pack of this save is durable under its name when this returns. Raises DiskError."""
        self._take_jobs(0)
        if self._open is not None:
            self._close(self._open)

    @property
    def written(self) -> frozenset[str]:
        """Names of the packs of this save; after `finish`."""
        return frozenset(one.pack for one in self._settled.values())

    def settled(self, segment: Segment) -> Segment:
        """The segment with its place; after `finish`."""
        return self._settled[segment.sha256] if segment.pack == _STAND_IN else segment

    def _is_present(self, pack: str) -> bool:
        """A pack that went missing is not built on: its content is stored again."""
        if pack == _STAND_IN:
            return True
        if pack not in self._present:
            self._present[pack] = os.path.isfile(self._store.pack(pack))
        return self._present[pack]

    def _take_jobs(self, left: int) -> None:
        """Wait for the oldest jobs and write what they give, until so many are left."""
        while len(self._jobs) > left:
            segment, job = self._jobs.pop(0)
            self._enter(segment, job.frame())

    def _enter(self, segment: Segment, frame: bytes) -> None:
        pack = self._open or self._begin()
        self._entered.append(segment._replace(offset=pack.size, length=len(frame)))
        pack.write(frame)
        if pack.size >= limits.PACK_BYTES:
            self._close(pack)

    def _begin(self) -> _OpenPack:
        self._open = _OpenPack(self._store)
        return self._open

    def _close(self, pack: _OpenPack) -> None:
        name = pack.hash.hexdigest()
        target = self._store.pack(name)
        durable.make_directories(os.path.dirname(target))
        with pack.file:
            pack.file.create(os.path.join(name[:2], name + ".pack"))
        durable.sync_directory(os.path.dirname(target))
        self._settled |= {one.sha256: one._replace(pack=name) for one in self._entered}
        self._entered = []
        self._open = None


class _Job:
    """One segment being compressed in a thread of its own, which touches nothing else: zstd works
    without the interpreter's lock. (`threading` would cost a fire 2 ms to import.)
    """

    def __init__(self, raw: bytes) -> None:
        self._frame = b""
        self._failure: BaseException | None = None
        self._done = _thread.allocate_lock()
        self._done.acquire()
        try:
            _thread.start_new_thread(self._run, (raw,))
        except RuntimeError:  # no more threads here
            self._run(raw)

    def frame(self) -> bytes:
        """What came of it, when it is done."""
        with self._done:
            if self._failure is not None:
                raise self._failure
            return self._frame

    def _run(self, raw: bytes) -> None:
        try:
            self._frame = packs.compress(raw)
        except BaseException as failure:  # noqa: BLE001  # raised where the frame is asked for
            self._failure = failure
        finally:
            self._done.release()


class _OpenPack:
    """A pack that takes frames. Its salt makes its name unique, so the name is always free."""

    def __init__(self, store: Store) -> None:
        self.file = durable.NewFile(store.objects)
        self.hash = hashlib.sha256()
        self.size = 0
        self.write(packs.header(os.urandom(limits.PACK_SALT_BYTES)))

    def write(self, data: bytes) -> None:
        self.file.write(data)
        self.hash.update(data)
        self.size += len(data)


def read_segment(store: Store, segment: Segment) -> bytes:
    """The raw bytes of a segment, checked against its hash.

    Raises TamperedError (missing, other bytes), DiskError (cannot be read).
    """
    path = store.pack(segment.pack)
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        raise TamperedError(f"pack {path} is missing") from None
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        frame = read_at(fd, segment.length, segment.offset)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)
    raw = packs.decompress(frame, segment.bytes)
    if hashlib.sha256(raw).hexdigest() != segment.sha256:
        raise TamperedError(f"a segment in pack {path} has other bytes than it was saved with")
    return raw
