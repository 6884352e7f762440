"""Lines of an index as bytes, found without parsing any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.store.files import open_regular, read_at

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


def line_at(paths: InstancePaths, offset: int) -> bytes:
    """The line that starts at `offset`, without its LF; empty where there is none."""
    try:
        fd = open_regular(paths.index_file)
    except (OSError, MalformedError):
        return b""
    try:
        return read_at(fd, limits.RECORD_BYTES + 1, offset).partition(b"\n")[0]
    finally:
        os.close(fd)


def lines_from(paths: InstancePaths, offset: int) -> tuple[bytes, bytes]:
    """The line that starts at `offset`, without its LF, and everything after it."""
    try:
        fd = open_regular(paths.index_file)
    except (OSError, MalformedError):
        return b"", b""
    try:
        size = os.fstat(fd).st_size
        line, _, later = read_at(fd, max(0, size - offset), offset).partition(b"\n")
    finally:
        os.close(fd)
    return line, later


def session_member(key: str) -> bytes:
    """What stands in every line of a session's savepoints."""
    return b'"session_id":"' + key.encode() + b'"'
