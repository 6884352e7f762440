"""The end of an index: what a cursor has not reached yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import record
from savepoint.core.errors import SavepointError
from savepoint.store import index

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths


def above(paths: InstancePaths, seq: int) -> list[Record]:
    """The records of an instance above `seq`, in order; found from the end, so that a long index
    costs no more than what is owed. Lines that are no records are left out. Raises DiskError.
    """
    found: list[Record] = []
    for line in _backwards(index.read(paths)):
        try:
            one = record.parse(line)
        except SavepointError:
            continue
        if one.seq <= seq:
            break
        found.append(one)
    return found[::-1]


def _backwards(data: bytes) -> list[bytes]:
    return [line for line in reversed(data.split(b"\n")) if line]
