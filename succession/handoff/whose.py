"""Whose a thread is: of a project that has moved, of a session that was brought back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import record, snapshot
from savepoint.core.errors import MalformedError
from savepoint.core.spelling import is_session_key
from savepoint.store import index, savepoints
from savepoint.store.lines import line_at
from savepoint.store.session import sessions
from succession.handoff.ledger import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths, Store
    from succession.handoff.ledger import Thread


def is_of(thread: Thread, project: str, folders: Iterable[str]) -> bool:
    """Is it a thread of the project in that folder? One of a folder that the store has not, or that
    is gone, is too: the project was there before it was moved, or lost with its machine.

    folders: those that the store has.
    """
    is_elsewhere = thread.project in folders and os.path.isdir(thread.project)
    return thread.project == project or not is_elsewhere


def of_session(store: Store, threads: Sequence[Thread], key: str) -> Thread | None:
    """The thread of a session, else of the nearest one that it was brought back from; `session` is
    then the one that goes on. An open one before one that is settled. Raises DiskError.
    """
    own = [one for one in threads if one.session == key]
    for session in before(store, key) if threads and not own else ():
        own = own or [one for one in threads if one.session == session]
    last = [one for one in own if one.state == OPEN] or own
    return last[-1]._replace(session=key) if last else None


def before(store: Store, key: str) -> list[str]:
    """The sessions that a session was brought back from, the nearest first: each record of a
    savepoint names the one from which it goes on. Where that was left at the remote, the sessions
    count whose records the conversation has. Raises DiskError.
    """
    saves = {
        str(one.body["snapshot_hash"]): (paths, one)
        for paths in savepoints.instances(store)
        for one in savepoints.records(paths).saves
    }
    at, found = _newest(store, key), dict[str, None]()
    while at is not None:
        found[str(at[1].body.get("session_id", key))] = None
        origin = at[1].body["from"]
        named = str(origin["snapshot_hash"]) if isinstance(origin, dict) else ""
        later, at = at, saves.pop(named, None)  # a record is met once, whatever they say
        if named and at is None:
            found.update(dict.fromkeys(_written_by(*later)))
    return [one for one in found if one != key]


def _newest(store: Store, key: str) -> tuple[InstancePaths, Record] | None:
    """The session's last savepoint, or what it goes on from while it has none of its own."""
    cached = sessions.load(store, key)
    if cached is not None:
        paths = store.instance(cached.instance)
        try:
            return paths, record.parse(line_at(paths, cached.offset))
        except MalformedError:
            return None
    found = [
        (paths, last[0])
        for paths in savepoints.instances(store)
        if (last := index.last_of_session(paths, key)) is not None
    ]
    return max(found, key=lambda each: each[1].timestamp, default=None)


def _written_by(paths: InstancePaths, one: Record) -> list[str]:
    try:
        document = savepoints.open_snapshot(paths, one).document
    except MalformedError:
        return []
    told = snapshot.member_at(document, ("conversation_history", "sessions"))
    return [name for name in told if is_session_key(name)] if isinstance(told, dict) else []
