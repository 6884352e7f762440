"""Segments: content cut so that equal content has equal cuts, and the root over them."""

from __future__ import annotations

from savepoint.core import keys, limits
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


class Segment(NamedTuple):
    """A content-addressed piece and where it lies: a zstd frame in a pack."""

    sha256: str  # of the raw bytes, hex
    bytes: int  # raw
    lines: int  # LF bytes in it
    pack: str  # SHA-256 of the pack file, hex
    offset: int  # of the frame in the pack, bytes
    length: int  # of the frame, bytes

    def to_json(self) -> Json:
        """Members in the order of docs/format.md."""
        return dict(self._asdict())

    @classmethod
    def from_json(cls, value: Json) -> Segment:
        """Raises MalformedError unless it is exactly what `to_json` gives."""
        if not isinstance(value, dict) or tuple(value) != cls._fields:
            raise MalformedError("a segment has other members than " + ", ".join(cls._fields))
        sha256, size, lines, pack, offset, length = value.values()
        if not (_is_digest(sha256) and _is_digest(pack)):
            raise MalformedError("a segment's hash or pack is not a SHA-256")
        _bounded(size, 1, limits.SEGMENT_HARD_BYTES, "bytes")
        _bounded(lines, 0, limits.SEGMENT_HARD_BYTES, "lines")
        _bounded(offset, limits.PACK_HEADER_BYTES, limits.JSON_INTEGER_MOST, "offset")
        _bounded(length, 1, limits.FRAME_BYTES, "length")
        return cls(*value.values())  # type: ignore[arg-type]  # each was checked just above


def _bounded(value: Json, least: int, most: int, name: str) -> None:
    if type(value) is not int or not least <= value <= most:
        raise MalformedError(f"a segment's {name} is not a number from {least} to {most}")


def _is_digest(value: Json) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")


def cut(data: bytes | bytearray, start: int, *, final: bool) -> int | None:
    """Where the segment that begins at `start` of `data` ends, or None if more bytes must come.

    `final` says that no more bytes will come; then the rest is a segment, unless it is empty.
    """
    soft = start + limits.SEGMENT_SOFT_BYTES - 1  # an LF from here on ends the segment
    hard = start + limits.SEGMENT_HARD_BYTES
    newline = data.find(b"\n", soft, hard)
    if newline >= 0:
        return newline + 1
    if len(data) >= hard:
        return hard
    return len(data) if final and len(data) > start else None


def root(total_bytes: int, digests: list[str]) -> str:
    """The root hash of a file: its length and the hashes of its segments, in order."""
    import hashlib  # not for a fire that finds nothing new

    hasher = hashlib.sha256(keys.domain("root"))
    hasher.update(total_bytes.to_bytes(8, "little"))
    for one in digests:
        hasher.update(bytes.fromhex(one))
    return hasher.hexdigest()


def root_of(segments: list[Segment] | tuple[Segment, ...]) -> str:
    """The root hash of the file that these segments make."""
    return root(sum(s.bytes for s in segments), [s.sha256 for s in segments])
