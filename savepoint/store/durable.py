"""The only module that writes files. Each primitive says what survives a crash after it returns.

What POSIX does not promise, and we therefore do: a new name is durable only after its directory was
synced; `write` may take fewer bytes than given and say so only by its result; after a failed fsync
the page may be clean and lost, so nothing is ever synced twice to "repair" it (fsyncgate): the
temporary is thrown away and the caller fails. Every temporary is made beside its target, so that no
rename crosses a file system.

All names may be str or bytes. Failures of the kernel are raised as DiskError (exit 40).
"""

from __future__ import annotations

import errno
import os
import sys

from savepoint.core.errors import DiskError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TEMPORARY_PREFIX = ".tmp-"

_F_FULLFSYNC = 51  # macOS: fsync alone leaves the bytes in the drive's cache (fcntl.h)
# A FIFO in the place of a file fails at once; without O_NONBLOCK, to open it would wait for ever.
_CHANGE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_EXTEND = _CHANGE | os.O_APPEND
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFile:
    """A file being written under a temporary name; it appears whole under its own name, or not.

    Use as a context manager: what is not published when the block ends is removed.
    """

    def __init__(self, directory: str, mode: int = FILE_MODE) -> None:
        self._directory = directory
        self._path = os.path.join(directory, TEMPORARY_PREFIX + os.urandom(8).hex())
        self._size = 0
        with _failing(self._path):
            self._fd = os.open(self._path, _CREATE, FILE_MODE)
            os.fchmod(self._fd, mode)  # whatever the umask; of somebody else's file, as it was

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        fd, self._fd = self._fd, -1  # once: the number may be another file's by the next call
        path, self._path = self._path, ""
        if fd >= 0:
            os.close(fd)
        if path:
            remove_quietly(path)

    def write(self, data: bytes) -> None:
        """Append all of `data`. Raises DiskError."""
        with _failing(self._path):
            _write_all(self._fd, data)
        self._size += len(data)

    def create(self, name: str) -> bool:
        """Sync, then take `name` in the same directory, as `link`."""
        target = os.path.join(self._directory, name)
        with _failing(target):
            self._sync()
        return link(self._path, target)

    def replace(self, name: str) -> None:
        """Sync, then take `name`; until its directory is synced a crash leaves old or new."""
        with _failing(name):
            self._sync()
            os.rename(self._path, os.path.join(self._directory, name))
        self._path = ""

    def _sync(self) -> None:
        _check_length(self._fd, self._size)
        _sync(self._fd)
        fd, self._fd = self._fd, -1
        os.close(fd)


def create_exclusive(path: str, data: bytes) -> bool:
    """A new file with all of `data`, durable with its name; False, undone, if it exists."""
    directory, name = os.path.split(path)
    with NewFile(directory) as new:
        new.write(data)
        if not new.create(name):
            return False
    sync_directory(directory)
    return True


def replace(path: str, data: bytes, *, durable_name: bool = True, mode: int = FILE_MODE) -> None:
    """The file at `path` holds `data`, whole. Without `durable_name` a crash may bring the old
    content back: for what may lag but must never be torn.
    """
    directory, name = os.path.split(path)
    with NewFile(directory, mode) as new:
        new.write(data)
        new.replace(name)
    if durable_name:
        sync_directory(directory)


def replace_cache(path: str, data: bytes) -> None:
    """As `replace`, but not synced: for what is rebuilt when it is lost or empty."""
    temporary = path + TEMPORARY_PREFIX + os.urandom(8).hex()
    with _failing(path):
        fd = os.open(temporary, _CREATE, FILE_MODE)
        try:
            try:
                _write_all(fd, data)
            finally:
                os.close(fd)
            os.rename(temporary, path)
        except OSError:
            remove_quietly(temporary)
            raise


def append(path: str, data: bytes, *, size: int) -> None:
    """Put `data` behind the first `size` bytes of a file, durable when this returns.

    The caller holds the lock and knows the size. A write or sync that fails is undone as far as the
    disk allows (the next run builds on what it finds, and that may be clean pages that are lost);
    what stays of it is a torn tail (docs/format.md, section 4). A file of size 0 may be absent; its
    name is made durable before there are bytes, which say that it is.
    """
    with _failing(path):
        fd = os.open(path, _EXTEND | (os.O_CREAT if size == 0 else 0), FILE_MODE)
        try:
            if os.fstat(fd).st_size != size:
                raise DiskError(f"{path}: changed while its lock was held")
            if size == 0:
                sync_directory(os.path.dirname(path))
            try:
                _write_all(fd, data)
                _check_length(fd, size + len(data))
                _sync(fd)
            except OSError:
                _truncate_quietly(fd, size)
                raise
        finally:
            os.close(fd)


def truncate(path: str, size: int) -> None:
    """Cut a file to `size` bytes, durably: for a torn tail, after its bytes were set aside."""
    with _failing(path):
        fd = os.open(path, _CHANGE)
        try:
            os.ftruncate(fd, size)
            _sync(fd)
        finally:
            os.close(fd)


def append_log(path: str, line: bytes) -> None:
    """One line at the end of a log for people: one write, not synced, never evidence. What a full
    disk left of the line before does not swallow it.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with _failing(path):
        fd = os.open(path, flags, FILE_MODE)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            _write_all(fd, b"\n" + line if torn else line)
        finally:
            os.close(fd)


def set_aside(path: str, aside: str, *, durable_name: bool = True) -> None:
    """Whatever stands at `path` has the name `aside`, in the same folder, durably; without
    `durable_name` once that folder is synced.
    """
    with _failing(path):
        os.rename(path, aside)
    if durable_name:
        sync_directory(os.path.dirname(path))


def link(path: str, name: str) -> bool:
    """The file has that name as well; False if it is taken. Durable once its folder is synced."""
    with _failing(name):
        try:
            os.link(path, name)
        except FileExistsError:
            return False
    return True


def make_directories(path: str) -> None:
    """`path` and the folders above it, each durable in its parent, private to the user. One that is
    empty may be of a run that was killed before it synced the name: we put nothing in before that.
    """
    parent = os.path.dirname(path)
    with _failing(path):
        if os.path.isdir(path):
            if not os.access(parent, os.R_OK | os.W_OK) or os.listdir(path):  # not ours, or in use
                return
        else:
            make_directories(parent)
            try:
                os.mkdir(path, DIRECTORY_MODE)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise
    sync_directory(parent)


def publish_folder(temporary: str, path: str) -> None:
    """A folder that another program filled, beside `path`, gets that name; all of it is durable.

    Raises DiskError, also where something stands at `path`.
    """
    folder, name = os.path.split(path)
    with Folder.at(os.path.realpath(folder)) as parent:
        parent.publish(os.fsencode(os.path.basename(temporary)), os.fsencode(name))


def remove_folder(path: str) -> None:
    """Remove a folder of leftovers with all that is in it, as far as that can be done."""
    for folder, folders, names in os.walk(path, topdown=False):
        for name in names:
            remove_quietly(os.path.join(folder, name))
        for name in folders:
            remove_empty_folder(os.path.join(folder, name))
    remove_empty_folder(path)


def remove(path: str) -> None:
    """Remove a file if it is there; not synced, since what is removed may come back harmlessly."""
    with _failing(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            return


class ScratchFolder:
    """A folder for a moment, with what another program is to read. Nothing in it is synced."""

    def __init__(self, parent: str) -> None:
        self.path = os.path.join(parent, TEMPORARY_PREFIX + os.urandom(8).hex())
        with _failing(self.path):
            os.mkdir(self.path, DIRECTORY_MODE)

    def write(self, name: str, data: bytes, *, mtime: int | None = None) -> None:
        """A file, with its mtime in Unix seconds if it matters. Raises DiskError."""
        path = os.path.join(self.path, name)
        with _failing(path):
            fd = os.open(path, _CREATE, FILE_MODE)
            try:
                _write_all(fd, data)
                if mtime is not None:
                    os.utime(fd, (mtime, mtime))
            finally:
                os.close(fd)

    def link(self, name: str, target: str) -> None:
        """A symbolic link. Raises DiskError."""
        with _failing(self.path):
            os.symlink(target, os.path.join(self.path, name))

    def folder(self, name: str) -> None:
        """An empty folder. Raises DiskError."""
        with _failing(self.path):
            os.mkdir(os.path.join(self.path, name), DIRECTORY_MODE)

    def remove(self) -> None:
        """Remove it as it was made. What cannot be removed is found by its prefix, and harmless."""
        try:
            for entry in os.scandir(self.path):
                if entry.is_dir(follow_symlinks=False):
                    os.rmdir(entry.path)
                else:
                    os.unlink(entry.path)
            os.rmdir(self.path)
        except OSError:
            return


class Folder:
    """An open folder, to bring files back into. What is made in it, and in the folders opened from
    it, cannot be led elsewhere by a link that stands, or is put, in the place of a folder
    (hackmyagent#318): each step is taken from an open descriptor, and none follows a link.

    Names are single parts of a path. Raises DiskError, also for a link in the place of a folder.
    """

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path  # for people

    @classmethod
    def at(cls, path: str) -> Self:
        """The folder that is there; `path` is real."""
        with _failing(path):
            return cls(os.open(path, _LIST), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        os.close(self._fd)

    def folder(self, name: bytes, mode: int = DIRECTORY_MODE) -> Folder:
        """The folder of that name in it, made if there is none, with `mode` less the umask."""
        path = self._named(name)
        with _failing(path):
            try:  # noqa: SIM105  # contextlib, whose import every fire would pay for
                os.mkdir(name, mode, dir_fd=self._fd)
            except FileExistsError:
                pass
            return Folder(os.open(name, _LIST, dir_fd=self._fd), path)

    def has(self, name: bytes) -> bool:
        """Is there something of that name?"""
        with _failing(self.path):
            return os.fsdecode(name) in os.listdir(self._fd)

    def descriptor(self, name: bytes) -> int | None:
        """A descriptor to read what has that name, whatever it is but a link; None: nothing has."""
        with _failing(self._named(name)):
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                return os.open(name, flags, dir_fd=self._fd)
            except FileNotFoundError:
                return None

    def new(self, name: bytes, pieces: Iterable[bytes], mode: int = FILE_MODE) -> int | None:
        """A file where there is none; its size in bytes, or None if the name is taken. Not synced:
        `publish` does that for a folder and all in it.
        """
        with _failing(self._named(name)):
            try:
                fd = os.open(name, _CREATE, mode, dir_fd=self._fd)
            except FileExistsError:
                return None
            try:
                for piece in pieces:
                    _write_all(fd, piece)
                return os.fstat(fd).st_size
            finally:
                os.close(fd)

    def put(self, name: bytes, pieces: Iterable[bytes], mode: int, *, over: bool) -> bool:
        """A file appears whole and durably; False if its name is taken, unless it goes `over`."""
        temporary = temporary_name()
        try:
            self.new(temporary, pieces, mode)
            return self.take(temporary, name, over=over)
        finally:
            remove_quietly(temporary, self._fd)

    def take(self, temporary: bytes, name: bytes, *, over: bool = False) -> bool:
        """A file of this folder that was written just now gets its name, as by `put`."""
        ours = {"src_dir_fd": self._fd, "dst_dir_fd": self._fd}
        with _failing(self._named(name)):
            _sync_at(self._fd, temporary)
            if over:
                os.rename(temporary, name, **ours)
            else:
                try:
                    os.link(temporary, name, follow_symlinks=False, **ours)
                except FileExistsError:
                    return False
                os.unlink(temporary, dir_fd=self._fd)
            _sync_names(self._fd)
        return True

    def publish(self, temporary: bytes, name: bytes) -> None:
        """A folder in it that was filled under another name gets its own; all of it is durable. An
        empty folder of that name gives way, anything else is a DiskError.
        """
        self.sync_below(temporary)
        with _failing(self._named(name)):
            os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            _sync_names(self._fd)

    def sync_below(self, name: bytes) -> None:
        """A folder in it with all that is in it is durable, but for its name."""
        with _failing(self._named(name)):
            for _, _, names, fd in os.fwalk(name, topdown=False, dir_fd=self._fd):
                for one in names:
                    _sync_at(fd, one)
                _sync_names(fd)

    def _named(self, name: bytes) -> str:
        return os.path.join(self.path, os.fsdecode(name))


def temporary_name() -> bytes:
    """A name that nothing has; what is left of one is found by its prefix, and harmless."""
    return (TEMPORARY_PREFIX + os.urandom(8).hex()).encode()


def _sync_at(folder: int, name: bytes) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def sync_directory(path: str) -> None:
    """The names in a directory are durable."""
    with _failing(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _sync_names(fd)
        finally:
            os.close(fd)


def _sync_names(folder: int) -> None:
    """File systems that cannot sync a directory say EINVAL."""
    try:
        _sync(folder)
    except OSError as failure:
        if failure.errno != errno.EINVAL:
            raise


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(fd, view)
        if written == 0:  # cannot happen on a regular file; endless if it did
            raise OSError(errno.EIO, "write took no bytes")
        view = view[written:]


def _check_length(fd: int, size: int) -> None:
    """Bytes that a write counted and the file has not would be acknowledged, and be lost."""
    found = os.fstat(fd).st_size
    if found != size:
        raise OSError(errno.EIO, f"{found} bytes where {size} were written")


def _sync(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, _F_FULLFSYNC)
    else:
        os.fsync(fd)


def remove_empty_folder(path: str) -> None:
    """Remove a folder of ours, unless somebody has put something into it."""
    try:
        os.rmdir(path)
    except OSError:
        return


def remove_quietly(path: str | bytes, folder: int | None = None) -> None:
    """After another failure: the leftover is found by its prefix, and harmless."""
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        return


def _truncate_quietly(fd: int, size: int) -> None:
    """After another failure: what stays is a torn tail, which every reader knows."""
    try:
        os.ftruncate(fd, size)
    except OSError:
        return


class _failing:  # noqa: N801  # reads as a clause: with _failing(path)
    """Turn what the kernel says in the block into a DiskError that names `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if isinstance(value, OSError):
            raise DiskError.of(value, self._path) from value
