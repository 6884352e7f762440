"""Reading files that we or others wrote: regular files only, within bounds, links not followed."""

from __future__ import annotations

import errno
import os
import stat

from savepoint.core.errors import DiskError, MalformedError

_STEP_BYTES = 1 << 16  # of a file that gives fewer or more than its size
_LINK = (errno.ELOOP, errno.EMLINK)  # EMLINK on FreeBSD


def read_bounded(path: str, limit: int) -> bytes | None:
    """The bytes of one of our own files, or None where there is none.

    Raises DiskError (unreadable) or MalformedError (no regular file, or larger than `limit`).
    """
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        return _read(fd, path, limit)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)


def names_in(folder: str) -> list[str]:
    """What is in one of our folders, sorted; nothing where there is none. Raises DiskError."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as failure:
        raise DiskError.of(failure, folder) from failure


def open_regular(path: str) -> int:
    """A descriptor of a regular file; a FIFO does not block, a link is not followed.

    Raises OSError, and MalformedError for anything but a regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as failure:
        if failure.errno in _LINK:
            raise MalformedError(f"{path} is a link") from None
        if failure.errno == errno.ENXIO:  # a socket
            raise MalformedError(f"{path} is not a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise MalformedError(f"{path} is not a regular file")
    return fd


def read_at(fd: int, size: int, offset: int) -> bytes:
    """`size` bytes from `offset` on, fewer only where the file ends. One read may give fewer for no
    reason of the file's; taken for its end, an index would look torn and be cut there.
    """
    data = os.pread(fd, size, offset)
    while len(data) < size and (more := os.pread(fd, size - len(data), offset + len(data))):
        data += more
    return data


def _read(fd: int, path: str, limit: int) -> bytes:
    """All of it, mostly by one read of its size: the parts of a long file would all be copied."""
    chunks = []
    left, step = limit + 1, os.fstat(fd).st_size + 1
    while left > 0:
        chunk = os.read(fd, min(left, step))
        if not chunk:
            break
        chunks.append(chunk)
        left, step = left - len(chunk), _STEP_BYTES
    if left <= 0:
        raise MalformedError(f"{path}: larger than {limit} bytes")
    return b"".join(chunks)
