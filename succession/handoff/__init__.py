"""Handoff: a thread passes its work to a successor, and nothing open is dropped.

    SessionStart   at_start   an open handoff is offered, in two lines, until it is accepted
    Stop           at_stop    what runs is kept; a refused boundary is told, if it was asked for

Both do nothing in a store without threads: `is_there` costs two looks. Nothing else is imported
before it is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.store.layout import THREADS

if TYPE_CHECKING:
    from savepoint.store.layout import Store

LOG = "log.jsonl"


def at_start(store: Store, key: str, project: str) -> str:
    """What a session is told as it starts; empty where no handoff waits for it.

    key: of the session. Offered and accepted are two states: what was told may never have been read
    (jacazul-ai-cli#94), so it is told again until it is accepted. Raises SavepointError.
    """
    if not is_there(store):
        return ""
    from succession.handoff import events

    return events.at_start(store, key, project)


def at_stop(store: Store, key: str, payload: bytes, transcript: str) -> str:
    """Keep what the payload says is running. Returns why a handoff that was asked for cannot be
    made now; empty where nobody asked. Raises SavepointError.
    """
    if not is_there(store):
        return ""
    from succession.handoff import events

    return events.at_stop(store, key, payload, transcript)


def is_there(store: Store) -> bool:
    """Has a thread ever been opened here? Its log may be damaged, or lost since it was seen."""
    paths = (os.path.join(store.path, THREADS, LOG), store.instance(THREADS).trusted)
    return any(map(os.path.lexists, paths))
