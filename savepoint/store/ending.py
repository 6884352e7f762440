"""The end of an index: what a cursor has not reached yet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, record
from savepoint.core.errors import DiskError, SavepointError
from savepoint.store.files import open_regular, read_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths

_BLOCK_BYTES = 64 * limits.KIB  # some hundred records


def above(paths: InstancePaths, seq: int) -> list[Record]:
    """The records of an instance above `seq`, in order; read from the end, so that a long index
    costs no more than what is owed: the worker asks in each round. Lines that are no records are
    left out. Raises DiskError.
    """
    found: list[Record] = []
    for line in backwards(paths.index_file):
        try:
            one = record.parse(line)
        except SavepointError:
            continue
        if one.seq <= seq:
            break
        found.append(one)
    return found[::-1]


def backwards(path: str) -> Iterator[bytes]:
    """The lines of a file from its last to its first, without LF, and without empty ones."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        yield from _lines(fd)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)


def _lines(fd: int) -> Iterator[bytes]:
    end, rest = os.fstat(fd).st_size, b""
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        first, *others = (read_at(fd, end - start, start) + rest).split(b"\n")
        yield from (line for line in reversed(others) if line)
        end, rest = start, first[: limits.RECORD_BYTES + 1]  # what is longer is no record
    if rest:
        yield rest
