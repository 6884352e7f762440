"""Packs: the bytes of a file of zstd frames. `zstd -d` opens one whole; an offset names a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError, TamperedError

if TYPE_CHECKING:
    from collections.abc import Iterator

SKIPPABLE_MAGIC = 0x184D2A50.to_bytes(4, "little")


def header(salt: bytes) -> bytes:
    """The skippable frame that starts a pack. The salt keeps its public name from confirming a
    guess of the content. salt: PACK_SALT_BYTES random bytes.
    """
    return SKIPPABLE_MAGIC + len(salt).to_bytes(4, "little") + salt


def check_header(data: bytes) -> None:
    """Raises MalformedError unless `data` starts as a pack must."""
    salt = data[8 : limits.PACK_HEADER_BYTES]
    if len(salt) < limits.PACK_SALT_BYTES or not data.startswith(header(salt)):
        raise MalformedError("not a pack: no skippable frame of 16 bytes at its start")


def compress(raw: bytes) -> bytes:
    """One zstd frame with its content size stated."""
    from savepoint.core.zstd import zstd

    frame: bytes = zstd.compress(raw, limits.ZSTD_LEVEL)
    return frame


def decompress(frame: bytes, size: int) -> bytes:
    """The `size` raw bytes of exactly one frame. Raises TamperedError."""
    return b"".join(pieces(frame, size, size + 1))


def pieces(frame: bytes | memoryview, size: int, most: int = limits.PIECE_BYTES) -> Iterator[bytes]:
    """As `decompress`, in pieces of `most` bytes or less; PIECE_BYTES stay in a processor's cache.

    Raises TamperedError, at the end: until then nothing is known of them. Never produces more than
    one byte too many (a zip bomb states a small size and goes on), and takes nothing behind the
    frame.
    """
    from savepoint.core.zstd import zstd

    opener = zstd.ZstdDecompressor()
    left = size + 1
    try:
        piece: bytes = opener.decompress(frame, min(most, left))
        while piece:
            left -= len(piece)
            yield piece
            if opener.eof or not left:
                break
            piece = opener.decompress(b"", min(most, left))
    except zstd.ZstdError as failure:
        raise TamperedError(f"a segment's frame does not open: {failure}") from failure
    if left != 1 or not opener.eof or opener.unused_data:
        raise TamperedError("a segment's frame has another length than stated")
