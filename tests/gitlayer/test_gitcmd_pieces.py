"""A stdin in pieces: made while git reads, never all at once; and when making one fails."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

import pytest

from savepoint import gitcmd
from tests.gitlayer.layer import shim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def soon() -> float:
    return time.monotonic() + 120


def test_pieces_arrive_in_order_and_are_made_when_wanted(tmp_path: Path) -> None:
    made = []

    def pieces() -> Iterator[bytes]:
        for number in range(40):
            made.append(number)
            yield b"%02d" % number * 50_000
            yield b""

    running = gitcmd.start(["x"], env=shim(tmp_path / "bin", "exec sha256sum"), stdin=pieces())
    assert made == []
    whole = b"".join(b"%02d" % number * 50_000 for number in range(40))
    result = running.finish(soon())
    assert result.ok
    assert result.out.decode().split()[0] == hashlib.sha256(whole).hexdigest()


def test_no_pieces_at_all_end_the_input(tmp_path: Path) -> None:
    running = gitcmd.start([], env=shim(tmp_path / "bin", "exec wc -c"), stdin=iter(()))
    assert running.finish(soon()).out.strip() == b"0"


def test_a_piece_that_cannot_be_made_ends_git(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x"
        raise RuntimeError

    running = gitcmd.start([], env=shim(tmp_path / "bin", "cat; exec sleep 60"), stdin=pieces())
    started = time.monotonic()
    with pytest.raises(RuntimeError):
        running.finish(soon())
    assert time.monotonic() - started < 30
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # it was reaped


def test_git_that_reads_no_further_is_no_error_of_ours(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b"x" * 100_000

    running = gitcmd.start([], env=shim(tmp_path / "bin", "exit 3"), stdin=pieces())
    assert running.finish(soon()).code == 3
