"""What the threads of a savepoint still owed, as its memory was brought back into a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.cli import terminal
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.core.handoff_log import Chain

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from succession.handoff.ledger import Ledger


def listed(folder: str | None) -> list[Json]:
    """Each item that is not closed, by thread; none where no thread was saved or no memory came
    back. What cannot be read is said, and takes nothing else away.
    """
    path = os.path.join(folder, "memory", "handoff") if folder else ""
    if not os.path.isfile(path):
        return []
    try:
        known = _ledger(path)
    except SavepointError as failure:
        terminal.note(f"what threads owe cannot be read: {failure.message}")
        return []
    return [
        {"thread": one.id, "title": one.title, "item": item.id, "text": item.text}
        for one in known.threads.values()
        for item in known.owed(one.id)
    ]


def _ledger(path: str) -> Ledger:
    """Raises SavepointError."""
    from savepoint.store.files import read_bounded
    from succession import bundles
    from succession.handoff import LOG
    from succession.handoff.ledger import Ledger

    files = bundles.unpack(read_bounded(path, limits.HANDOFF_LOG_BYTES) or b"")
    chain, known = Chain(files.get(LOG, b"")), Ledger()
    if chain.fault is not None:
        raise chain.fault
    for entry in chain.entries:
        known.apply(entry)
    return known
