"""Savepoints that no save of ours makes, signed with the real key: what a hostile transcript or
repository, or who has taken the key, could bring about.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from savepoint.core import packs
from savepoint.core.segments import root_of
from savepoint.gitlayer.commits import commit
from savepoint.store import acknowledge, durable, savepoints
from savepoint.store.acknowledge import Draft
from savepoint.store.keys import keyring
from savepoint.store.packs import PackWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.store.layout import InstancePaths

    Change = Callable[[dict[str, Any]], None]


def store_bytes(paths: InstancePaths, data: bytes) -> Segment:
    """A segment in a pack of its own."""
    with PackWriter(paths.store, {}) as writer:
        made = writer.add(data)
        writer.finish()
        return writer.settled(made)


def file_of(segment: Segment, path: object) -> dict[str, Any]:
    """The entry of a stored file."""
    return {
        "path": path,
        "bytes": segment.bytes,
        "root": root_of((segment,)),
        "segments": [segment.to_json()],
    }


def loaded_of(segment: Segment) -> dict[str, Any]:
    """The entry of a loaded file."""
    return {
        "known": "read",
        "sha256": segment.sha256,
        "size": segment.bytes,
        "changed": False,
        "reason": None,
        "segments": [segment.to_json()],
    }


def change_of(segment: Segment, path: object, mode: str = "100644") -> dict[str, Any]:
    """The entry of a change."""
    found = {"path": path, "kind": "untracked", "mode": mode, "bytes": segment.bytes}
    return {**found, "segments": [segment.to_json()]}


def savepoint(paths: InstancePaths, change: Change) -> Record:
    """One more savepoint, with the document of the newest as `change` leaves it; committed."""
    before = savepoints.records(paths).saves[-1]
    document: dict[str, Any] = savepoints.open_snapshot(paths, before).document
    for sealed in ("checkpoint_verification", "integrity"):
        del document[sealed]
    change(document)
    session = str(before.body["session_id"])
    draft = Draft(paths.slug, session, "manual", before.origin(), document)
    until = time.monotonic() + 120
    done = acknowledge.acknowledge(paths, keyring.authority(paths), draft, until, lambda *_: None)
    commit.commit(paths, dict(os.environ), until)
    return done.record


def bomb(paths: InstancePaths, segment: Segment, content: bytes) -> None:
    """The pack of a segment opens to more than it says, from as few bytes as before."""
    frame = packs.compress(content)
    data = packs.header(bytes(16)) + frame
    durable.replace(paths.store.pack(segment.pack), data)
