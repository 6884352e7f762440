"""Files as evidence: their bytes, or why there are none, which decides TAMPERED or UNVERIFIABLE."""

from __future__ import annotations

import errno
import os

from savepoint.core.errors import MalformedError
from savepoint.core.verdicts import Lack
from savepoint.store.files import open_regular

MISSING = "is missing"
_BLOCK = 1 << 20  # bytes read at once
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)


def read(path: str, limit: int) -> bytes | Lack:
    """The bytes of a file of at most `limit` bytes; a FIFO does not block, no link is followed."""
    try:
        fd = open_regular(path)
    except OSError as failure:
        return _lack(failure)
    except MalformedError as failure:  # a link, a folder, …
        return Lack(failure.message.removeprefix(f"{path} "))
    try:
        return _read(fd, limit)
    except OSError as failure:
        return _lack(failure)
    finally:
        os.close(fd)


def _read(fd: int, limit: int) -> bytes | Lack:
    size = os.fstat(fd).st_size
    if size > limit:
        return Lack(f"has {size} bytes; at most {limit} are allowed")
    data = os.read(fd, size + 1)
    while data and (more := os.read(fd, _BLOCK)):  # it grew, or a read was short
        data += more
        if len(data) > limit:
            return Lack("grew while it was read")
    return data


def _lack(failure: OSError) -> Lack:
    if failure.errno in _NOT_THERE:
        return Lack(MISSING)
    return Lack(f"cannot be read: {failure.strerror}", unreadable=True)
