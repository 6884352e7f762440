"""Where a history begins that was fetched without its beginning: the savepoints behind it are known
by their records alone, until somebody asks for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import SavepointError
from savepoint.core.strict_json import dump, parse_file
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths

_SHAPE = schema.members({"v": schema.one_of(1), "seq": schema.positive})


def load(paths: InstancePaths) -> int:
    """The first sequence number that must be here; 0 where the history is whole, or the note of it
    cannot be read: then what is missing is missing.
    """
    try:
        data = read_bounded(paths.border, limits.RECORD_BYTES) or b""
        value = parse_file(data)
        _SHAPE(value, "border.json")
    except SavepointError:
        return 0
    return int(str(value["seq"]))


def to_bytes(seq: int) -> bytes:
    """The note that `load` reads. Who fetches writes it: `fsck` reads, and imports nothing else."""
    return dump({"v": 1, "seq": seq}) + b"\n"
