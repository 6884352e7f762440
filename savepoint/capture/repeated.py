"""Whether a fire found what the session's last savepoint, or its last draft, holds already.

Stamps tell that of a session (unchanged.py). Where its transcript, or the key, cannot be read, each
fire would make another; then the states are compared whole.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, record, snapshot
from savepoint.core.errors import SavepointError
from savepoint.store.files import read_bounded
from savepoint.store.lines import line_at

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths
    from savepoint.store.session.sessions import Session

# What tells of the fire, not of the state.
_OF_THE_FIRE = {
    "timestamp_iso8601",
    "salt",
    "context_utilization_percent",
    "token_source",
    "checkpoint_verification",
    "notes",
    "integrity",
}


def is_repeated(paths: InstancePaths, last: Session, document: dict[str, Json]) -> bool:
    """Is that the state of the session's last savepoint: files, repository, memories, and what was
    left out of it and why? One that cannot be read is none.
    """
    try:
        saved = record.parse(line_at(paths, last.offset))
        if saved.kind != "save":
            return False
        path = os.path.join(paths.path, saved.snapshot_file)
        before = snapshot.parse(read_bounded(path, limits.SNAPSHOT_BYTES) or b"").document
    except SavepointError:
        return False
    return is_same(before, document)


def is_same(one: dict[str, Json], other: dict[str, Json]) -> bool:
    """Do two documents hold the same state?"""
    return _state(one) == _state(other)


def _state(document: dict[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in document.items() if name not in _OF_THE_FIRE}
    history = kept["conversation_history"]
    assert isinstance(history, dict)  # noqa: S101  # it has the shape of a snapshot
    return {**kept, "conversation_history": {**history, "scope": None}}
