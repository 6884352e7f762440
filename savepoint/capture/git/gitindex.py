"""Git's index, read by hand (gitformat-index(5), versions 2 to 4, split or not).

`diff-files` compares each tracked file's stat with the index, but says nothing of the entries that
are found here: those as young as the index, where equal stats prove nothing; those that the user
told git not to look at (assume-unchanged, skip-worktree); and submodules, which it is told to skip.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

GITLINK = 0o160000  # mode of a submodule: its id is a commit
SPARSE_TREE = 0o040000  # mode of a whole folder that a sparse checkout leaves out

_COMPRESSED = 4  # the version whose names leave out what they share with the one before
_EXTENDED = 0x4000  # two more bytes of flags follow
_ASSUME_VALID = 0x8000
_SKIP_WORKTREE = 0x4000  # of the further flags
_NAME_LENGTH = 0x0FFF  # and longer

_HEADER = struct.Struct(">4sII")  # signature, version, entries
_STAT = struct.Struct(">10I")  # ctime s, ns, mtime s, ns, dev, ino, mode, uid, gid, size
_U16 = struct.Struct(">H")
_EXTENSION = struct.Struct(">4sI")  # name, size


class Entry(NamedTuple):
    """One entry of the index that `diff-files` cannot vouch for."""

    path: bytes  # from the worktree's top
    mode: int
    oid: str
    stat: tuple[int, ...]  # ctime s, ns, mtime s, ns, inode, size: each modulo 2**32
    hidden: bool  # git was told not to look at the file

    @property
    def written(self) -> tuple[int, int]:
        """The file's mtime when git looked: seconds, nanoseconds."""
        return self.stat[2], self.stat[3]


class Reading(NamedTuple):
    """What an index was read for."""

    suspects: list[Entry]
    tracked: set[bytes]  # of the paths that were asked for, files that are certainly in it


def read(
    data: bytes,
    id_bytes: int,
    since: int,
    shared: Callable[[str], bytes | None],
    asked: Collection[bytes] = frozenset(),
) -> Reading:
    """The entries of an index file that are hidden, submodules, or not older than `since` (Unix
    seconds), and which of the paths `asked` it has as files that are not hidden; none of a split
    index. `shared` gives the bytes of the shared index of that id. Raises MalformedError.
    """
    tracked: set[bytes] = set()
    try:
        front, end = _entries(data, id_bytes, since, asked, tracked)
        link = _link(data, end, id_bytes)
        if not any(link[:id_bytes]):
            return Reading([entry for entry in front if entry], tracked)
        base = shared(link[:id_bytes].hex())
        if base is None:
            raise MalformedError("the shared index of a split index is missing")
        merged = _merged(front, _entries(base, id_bytes, 0, (), set())[0], link[id_bytes:])
        return Reading([entry for entry in merged if _is_suspect(entry, since)], set())
    except (struct.error, LookupError, ValueError) as failure:
        raise MalformedError(f"the index is damaged: {failure}") from failure


def _is_suspect(entry: Entry, since: int) -> bool:
    return entry.hidden or entry.mode == GITLINK or entry.written[0] >= since


def _entries(
    data: bytes, id_bytes: int, since: int, asked: Collection[bytes], tracked: set[bytes]
) -> tuple[list[Entry | None], int]:
    """Every entry, None for one that is no suspect, and the offset behind them; files that were
    asked for are put into `tracked`. This loop is all that an index of a large repository costs,
    so it makes no object that nobody asked for.
    """
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in {2, 3, _COMPRESSED}:
        raise MalformedError(f"not an index that is known: {data[:8]!r}")
    entries: list[Entry | None] = []
    at = _HEADER.size
    path = b""
    expanded = 0
    for _ in range(count):
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size = _STAT.unpack_from(data, at)
        name = at + 42 + id_bytes
        flags = _U16.unpack_from(data, name - 2)[0]
        hidden = flags & _ASSUME_VALID
        if flags & _EXTENDED:
            hidden |= _U16.unpack_from(data, name)[0] & _SKIP_WORKTREE
            name += 2
        if version == _COMPRESSED:
            strip, name = _varint(data, name)
            end = data.index(b"\0", name)
            path = path[: len(path) - strip] + data[name:end]
            following = end + 1
            expanded += len(path)
        else:
            length = flags & _NAME_LENGTH
            end = name + length if length < _NAME_LENGTH else data.index(b"\0", name)
            following = at + (end - at + 8) // 8 * 8
        own = path if version == _COMPRESSED else data[name:end]
        if own in asked and not hidden and mode not in {GITLINK, SPARSE_TREE}:
            tracked.add(own)
        if hidden or mtime >= since or mode == GITLINK:
            stat = (ctime, ctime_ns, mtime, mtime_ns, inode, size)
            oid = data[at + 40 : at + 40 + id_bytes].hex()
            entries.append(Entry(own, mode, oid, stat, bool(hidden)))
        else:
            entries.append(None)
        if expanded > limits.GIT_INDEX_BYTES:
            raise MalformedError("the index has names too long to expand")
        at = following
    return entries, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset and the offset behind it. Each continuation adds one (the offset
    encoding of git's packs), so that no number has two forms.
    """
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _link(data: bytes, at: int, id_bytes: int) -> bytes:
    """The extension of a split index, if it stands behind the entries: the id of the shared index,
    then two bitmaps of the positions in it that are deleted and replaced.
    """
    while at + _EXTENSION.size + id_bytes <= len(data):
        name, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        if name == b"link":
            return data[at : at + size]
        at += size
    return b""


def _merged(front: list[Entry | None], base: list[Entry | None], bitmaps: bytes) -> list[Entry]:
    """The base without what is deleted, and with the first entries of `front`, which have no names
    of their own, in the place of what is replaced; then the rest of `front`.
    """
    deleted: list[int] = []
    replaced: list[int] = []
    if bitmaps:
        deleted, behind = _bitmap(bitmaps, 0, len(base))
        replaced, _ = _bitmap(bitmaps, behind, len(base))
    merged = dict(enumerate(base))
    for position, entry in zip(replaced, front, strict=False):
        old = base[position]
        merged[position] = entry and old and entry._replace(path=old.path)
    for position in deleted:
        del merged[position]
    return [entry for entry in [*merged.values(), *front[len(replaced) :]] if entry]


def _bitmap(data: bytes, at: int, most: int) -> tuple[list[int], int]:
    """The set positions of an EWAH bitmap with `most` bits, and the offset behind it.

    gitformat-bitmap(5), appendix A: marker words (a bit, how many words are filled with it, how
    many literal words follow), the lowest bit first. One word can claim 2**38 positions.
    """
    (count,) = struct.unpack_from(">I", data, at + 4)
    words = struct.unpack_from(f">{count}Q", data, at + 8)
    found: list[int] = []
    position = 0
    cursor = 0
    while cursor < count:
        marker = words[cursor]
        filled = position + (marker >> 1 & 0xFFFFFFFF) * 64
        if marker & 1:
            found.extend(range(position, min(filled, most)))
        position = filled
        for word in words[cursor + 1 : cursor + 1 + (marker >> 33)]:
            found.extend(position + bit for bit in range(64) if word >> bit & 1)
            position += 64
        cursor += 1 + (marker >> 33)
    return found, at + 12 + 8 * count
