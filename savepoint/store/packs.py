"""Writing new segments into packs, and reading segments back."""

from __future__ import annotations

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


class PackWriter:
    """Takes the segments of one save. What is known already is not written again; the rest goes as
    frames into packs, named when they are full or `finish` is called.

    Until then a segment's `pack` is a stand-in; `settled` gives the segment with its name.
    """

    def __init__(self, store: Store, known: dict[str, Segment]) -> None:
        self._store = store
        self._known = known
        self._present: dict[str, bool] = {}  # packs of known segments that were looked at
        self._names: list[str] = []  # of the packs of this save, by number
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
        pack = self._open or self._begin()
        frame = packs.compress(raw)
        stand_in = f"@{len(self._names)}"
        segment = Segment(sha256, len(raw), raw.count(b"\n"), stand_in, pack.size, len(frame))
        pack.write(frame)
        self._known[sha256] = segment
        if pack.size >= limits.PACK_BYTES:
            self._close(pack)
        return segment

    def finish(self) -> None:
        """Every pack of this save is durable under its name when this returns. Raises DiskError."""
        if self._open is not None:
            self._close(self._open)

    @property
    def written(self) -> frozenset[str]:
        """Names of the packs of this save; after `finish`."""
        return frozenset(self._names)

    def settled(self, segment: Segment) -> Segment:
        """The segment with the name of its pack; after `finish`."""
        if not segment.pack.startswith("@"):
            return segment
        return segment._replace(pack=self._names[int(segment.pack[1:])])

    def _is_present(self, pack: str) -> bool:
        """A pack that went missing is not built on: its content is stored again."""
        if pack.startswith("@"):
            return True
        if pack not in self._present:
            self._present[pack] = os.path.isfile(self._store.pack(pack))
        return self._present[pack]

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
        self._names.append(name)
        self._open = None


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
