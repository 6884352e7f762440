"""What the threads of a store still owe, for a session that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.cli import terminal
from savepoint.core.errors import SavepointError

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store


def listed(store: Store) -> list[Json]:
    """Each item that is not closed, by thread. What cannot be read is said, and takes nothing else
    away.
    """
    from succession.handoff import log

    try:
        known = log.read(store)
    except SavepointError as failure:
        terminal.note(f"what threads owe cannot be read: {failure.message}: {failure.hint}")
        return []
    if known is None:
        return []
    return [
        {"thread": one.id, "title": one.title, "item": item.id, "text": item.text}
        for one in known.threads.values()
        for item in known.owed(one.id)
    ]
