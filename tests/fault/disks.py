"""File systems made for a test: an ext4 whose power can be cut, and a tmpfs that is soon full."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EXT4_IOC_SHUTDOWN = 0x8004587D  # fs/ext4/ext4.h
_NO_LOG_FLUSH = (2).to_bytes(4, "little")  # what is not in the journal yet is lost
_COMMIT_SECONDS = 300  # the journal is written when someone syncs, not by the clock


class Ext4:
    """An ext4 in an image file, mounted at `folder`."""

    def __init__(self, image: Path, folder: Path, options: str = "") -> None:
        self.folder = folder
        self.image = image
        self._options = ",".join(filter(None, ("loop", f"commit={_COMMIT_SECONDS}", options)))
        with image.open("wb") as file:
            file.truncate(64 << 20)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", str(image))
        folder.mkdir(exist_ok=True)

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mounted, what the journal holds replayed; unmounted at the end, whatever happens."""
        _run("mount", "-t", "ext4", "-o", self._options, str(self.image), str(self.folder))
        try:
            yield self.folder
        finally:
            _unmount(self.folder)

    def cut_power(self) -> None:
        """Nothing that is not on the disk by now gets there any more."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _EXT4_IOC_SHUTDOWN, _NO_LOG_FLUSH)
        finally:
            os.close(fd)

    def commit_journal(self) -> None:
        """Some other program syncs a file of its own: names and sizes of all files get to the disk,
        the bytes of unsynced ones need not.
        """
        fd = os.open(self.folder / "other", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, b"other")
            os.fsync(fd)
        finally:
            os.close(fd)


@contextmanager
def mounted(*args: str, at: Path) -> Iterator[Path]:
    """`mount ARGS at`, undone at the end."""
    at.mkdir(exist_ok=True)
    _run("mount", *args, str(at))
    try:
        yield at
    finally:
        _unmount(at)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that nobody may write to, not even root."""
    with mounted("--bind", str(folder), at=folder):
        _run("mount", "-o", "remount,ro,bind", str(folder))
        yield


def _unmount(folder: Path) -> None:
    """As soon as nobody uses it any more: a worker may still be at work in it."""
    for _ in range(200):
        done = subprocess.run(["umount", str(folder)], capture_output=True, check=False, timeout=90)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(done.stderr.decode())


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=90)
