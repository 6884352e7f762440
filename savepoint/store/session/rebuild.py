"""What a lost cache of a session knew, from the index and the newest snapshot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, snapshot
from savepoint.core.errors import SavepointError
from savepoint.store import index
from savepoint.store.files import read_bounded
from savepoint.store.packs import read_segment
from savepoint.store.session.sessions import NOWHERE, CachedFile, Session

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths


def rebuilt(paths: InstancePaths, key: str) -> Session | None:
    """The cache of a session whose own is gone, from its newest snapshot: segments without stamps,
    so every file is read again and nothing stored twice.
    """
    found = index.last_of_session(paths, key)
    if found is None:
        return None
    record, offset = found
    try:
        files = files_of(paths, record)
    except SavepointError:
        files = {}  # its snapshot is damaged: verify says so; the next save stores all anew
    return Session(
        instance=paths.slug,
        seq=record.seq,
        record=record.hash,
        signature=record.signature.hex(),
        offset=offset,
        saved_at=record.timestamp,
        transcript=None,
        blobs={},
        files=files,
    )


def files_of(paths: InstancePaths, record: Record) -> dict[str, CachedFile]:
    """What a savepoint holds, so that it is not stored again. Raises SavepointError."""
    data = read_bounded(os.path.join(paths.path, record.snapshot_file), limits.SNAPSHOT_BYTES)
    document = snapshot.parse(data or b"").document
    stored = snapshot.files(document, lambda one: read_segment(paths.store, one))
    return {
        f"{number}": CachedFile(NOWHERE, file.segments, None) for number, file in enumerate(stored)
    }
