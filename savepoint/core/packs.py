"""Packs: the bytes of a file of zstd frames. `zstd -d` opens one whole; an offset names a frame."""

from __future__ import annotations

from savepoint.core import limits
from savepoint.core.errors import MalformedError, TamperedError

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
    """The `size` raw bytes of exactly one frame.

    Raises TamperedError. Never produces more than one byte too many (a zip bomb states a small
    size and goes on), and takes nothing behind the frame.
    """
    from savepoint.core.zstd import zstd

    opener = zstd.ZstdDecompressor()
    try:
        raw: bytes = opener.decompress(frame, size + 1)
    except zstd.ZstdError as failure:
        raise TamperedError(f"a segment's frame does not open: {failure}") from failure
    if len(raw) != size or not opener.eof or opener.unused_data:
        raise TamperedError("a segment's frame has another length than stated")
    return raw
