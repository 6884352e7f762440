"""What a primitive leaves behind when the kernel refuses, and what the next run makes of it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import DiskError
from savepoint.store import durable

if TYPE_CHECKING:
    from pathlib import Path


class Syncs:
    """What is synced, by its inode; `refused` fails."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.refused: set[int] = set()
        self.number = errno.EIO

    def sync(self, fd: int) -> None:
        inode = os.fstat(fd).st_ino
        if inode in self.refused:
            raise OSError(self.number, os.strerror(self.number))
        self.done.append(inode)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    one = Syncs()
    monkeypatch.setattr(durable, "_sync", one.sync)
    return one


def inode(path: Path) -> int:
    return path.stat().st_ino


def test_an_append_whose_sync_fails_leaves_no_bytes(tmp_path: Path, syncs: Syncs) -> None:
    """The next save would take that record for the last one, and sync pages that are clean by then:
    it would be acknowledged above a record that a power cut takes away (fsyncgate).
    """
    path = tmp_path / "index.jsonl"
    durable.append(str(path), b"one\n", size=0)
    syncs.refused = {inode(path)}
    with pytest.raises(DiskError):
        durable.append(str(path), b"two\n", size=4)
    assert path.read_bytes() == b"one\n"
    syncs.refused = set()
    durable.append(str(path), b"three\n", size=4)
    assert path.read_bytes() == b"one\nthree\n"


def test_a_first_line_whose_folder_cannot_be_synced_is_not_there(
    tmp_path: Path, syncs: Syncs
) -> None:
    """The next append would have a file of some size before it, and not sync the folder again."""
    path = tmp_path / "index.jsonl"
    syncs.refused = {inode(tmp_path)}
    with pytest.raises(DiskError):
        durable.append(str(path), b"one\n", size=0)
    assert path.read_bytes() == b""
    syncs.refused = set()
    durable.append(str(path), b"one\n", size=0)
    assert syncs.done == [inode(tmp_path), inode(path)]


def test_a_new_file_is_closed_once(tmp_path: Path, syncs: Syncs) -> None:
    """By the second time its number could be another file's."""
    new = durable.NewFile(str(tmp_path))
    new.write(b"one")
    (left,) = tmp_path.iterdir()
    syncs.refused = {inode(left)}
    with pytest.raises(DiskError), new:
        new.create("name")
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        new.__exit__(None, None, None)
        os.fstat(other)
    finally:
        os.close(other)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("how", ["take", "publish", "sync_directory"])
def test_a_file_system_that_cannot_sync_a_folder(tmp_path: Path, syncs: Syncs, how: str) -> None:
    new, file = tmp_path / "new", tmp_path / "file"
    new.mkdir()
    file.touch()
    syncs.number, syncs.refused = errno.EINVAL, {inode(tmp_path), inode(new)}
    with durable.Folder.at(str(tmp_path)) as folder:
        if how == "take":
            assert folder.take(b"file", b"name")
        elif how == "publish":
            folder.publish(b"new", b"name")
        else:
            durable.sync_directory(folder.path)
    assert (tmp_path / "name").exists() == (how != "sync_directory")
    syncs.number = errno.EIO
    with pytest.raises(DiskError):
        durable.sync_directory(str(tmp_path))


def test_a_folder_that_a_killed_run_has_made_is_durable_before_it_is_used(
    tmp_path: Path, syncs: Syncs
) -> None:
    left = tmp_path / "objects/ab"
    left.mkdir(parents=True)
    durable.make_directories(str(left))
    assert syncs.done == [inode(left.parent)]
    (left / "pack").touch()
    durable.make_directories(str(left))
    assert syncs.done == [inode(left.parent)], "what is in use is not synced again"


def test_an_empty_folder_that_somebody_else_has_made_is_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: Syncs
) -> None:
    """A home below a folder that only root may list."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: path != str(tmp_path))
    durable.make_directories(str(home))
    assert syncs.done == []
