"""The end of an index, read from its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import ending, files, index, savepoints

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths
    from tests.verify.builder import Built


@pytest.fixture
def paths(built: Built) -> InstancePaths:
    return built.paths


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 16])
def test_what_is_above_is_found_whatever_a_block_holds(
    paths: InstancePaths, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "_BLOCK_BYTES", block)
    known = savepoints.records(paths).all
    for seq in range(known[-1].seq + 1):
        assert ending.above(paths, seq) == [one for one in known if one.seq > seq]


def test_a_long_index_is_not_read_whole(
    paths: InstancePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round of the worker read all of it."""
    monkeypatch.setattr(ending, "_BLOCK_BYTES", 4096)
    read: list[int] = []

    def counted(fd: int, size: int, offset: int) -> bytes:
        read.append(size)
        return files.read_at(fd, size, offset)

    monkeypatch.setattr(ending, "read_at", counted)
    with Path(paths.index_file).open("r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(b"x" * 100_000 + b"\n" + data)
    last = savepoints.records(paths).all[-1]
    assert ending.above(paths, last.seq - 1) == [last]
    assert sum(read) <= 8192


def test_lines_that_are_no_records_are_left_out(paths: InstancePaths) -> None:
    known = savepoints.records(paths).all
    lines = index.read(paths).split(b"\n")[:-1]
    spoilt = [lines[0], b"", b"y" * 300_000, *lines[1:], lines[-1][:-3]]
    Path(paths.index_file).write_bytes(b"\n".join(spoilt))
    assert ending.above(paths, 0) == known


def test_no_index_has_nothing_above(paths: InstancePaths) -> None:
    os.unlink(paths.index_file)
    assert ending.above(paths, 0) == []
