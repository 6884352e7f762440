"""Lines of an index as bytes, found without parsing any."""

from __future__ import annotations

import os

from savepoint.core import limits
from savepoint.core.errors import DiskError, MalformedError
from savepoint.store.files import open_regular, read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


def line_at(paths: InstancePaths, offset: int) -> bytes:
    """The line that starts at `offset`, without its LF; empty where there is none.

    Raises DiskError: what cannot be read just now is not what is not there.
    """
    return _read(paths, offset, limits.RECORD_BYTES + 1).partition(b"\n")[0]


def lines_from(paths: InstancePaths, offset: int) -> tuple[bytes, bytes]:
    """The line that starts at `offset`, without its LF, and all that follows. Raises DiskError."""
    line, _, later = bytes_from(paths, offset).partition(b"\n")
    return line, later


def bytes_from(paths: InstancePaths, offset: int) -> bytes:
    """The index from `offset` on; empty where it is shorter. Raises DiskError."""
    return _read(paths, offset, limits.INDEX_BYTES)


def session_member(key: str) -> bytes:
    """What stands in every line of a session's savepoints."""
    return b'"session_id":"' + key.encode() + b'"'


def _read(paths: InstancePaths, offset: int, limit: int) -> bytes:
    path = paths.index_file
    try:
        fd = open_regular(path)
    except (FileNotFoundError, MalformedError):
        return b""
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        left = os.fstat(fd).st_size - offset
        return read_at(fd, max(0, min(left, limit)), offset)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)
