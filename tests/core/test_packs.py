"""Packs: a frame opens to exactly what was put in, or not at all, and never to more."""

from __future__ import annotations

import subprocess
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits, packs
from savepoint.core.errors import MalformedError, TamperedError
from savepoint.core.zstd import zstd

if TYPE_CHECKING:
    from pathlib import Path

SALT = bytes(range(limits.PACK_SALT_BYTES))


@given(st.binary(max_size=500), st.integers(1, 50))
def test_what_is_compressed_is_opened(piece: bytes, times: int) -> None:
    raw = piece * times
    frame = packs.compress(raw)
    assert packs.decompress(frame, len(raw)) == raw
    assert zstd.get_frame_info(frame).decompressed_size == len(raw)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_no_other_size_is_accepted(raw: bytes, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 500).filter(lambda size: size != len(raw)))
    with pytest.raises(TamperedError):
        packs.decompress(packs.compress(raw), size)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_changed_frame_gives_the_same_bytes_or_is_refused(
    raw: bytes, data: st.DataObject
) -> None:
    """It may also open to other bytes of that size: the segment's SHA-256 is there for that."""
    frame = bytearray(packs.compress(raw))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    try:
        found = packs.decompress(bytes(frame), len(raw))
    except TamperedError:
        return
    assert len(found) == len(raw)


@given(st.binary(max_size=100), st.binary(min_size=1, max_size=40), st.integers(0, 60))
def test_cut_or_continued_frames_are_refused(raw: bytes, more: bytes, at: int) -> None:
    frame = packs.compress(raw)
    for other in (frame + more, frame + frame, frame[: min(at, len(frame) - 1)]):
        with pytest.raises(TamperedError):
            packs.decompress(other, len(raw))


def test_a_bomb_costs_no_memory() -> None:
    """256 MiB of zeros in some KB, stated as 100 bytes."""
    compressor = zstd.ZstdCompressor(1)
    zeros = bytes(limits.MIB)
    bomb = b"".join(compressor.compress(zeros) for _ in range(256)) + compressor.flush()
    tracemalloc.start()
    with pytest.raises(TamperedError):
        packs.decompress(bomb, 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limits.MIB


def test_a_header_is_16_bytes_of_salt() -> None:
    header = packs.header(SALT)
    assert len(header) == limits.PACK_HEADER_BYTES
    packs.check_header(header)
    packs.check_header(header + b"frames")
    for other in (b"", header[:-1], packs.header(SALT[:-1]), packs.header(SALT + b"x"), SALT * 2):
        with pytest.raises(MalformedError):
            packs.check_header(other)
    for at in range(8):
        changed = header[:at] + bytes([header[at] ^ 1]) + header[at + 1 :]
        with pytest.raises(MalformedError):
            packs.check_header(changed)


def test_the_stock_program_opens_a_pack_whole(zstd: str, tmp_path: Path) -> None:
    raws = [b"one\n" * 1000, b"two\n", bytes(10)]
    pack = tmp_path / "whole.pack"
    pack.write_bytes(packs.header(SALT) + b"".join(map(packs.compress, raws)))
    opened = subprocess.run([zstd, "-dc", pack], capture_output=True, check=True).stdout
    assert opened == b"".join(raws)
