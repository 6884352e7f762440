"""`go`: an offer is acted on only while the latest ledger shows it open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import HandoffError, UsageError
from savepoint.core.handoff_log import Draft
from succession.handoff.ledger import OFFER, OPEN

if TYPE_CHECKING:
    from savepoint.core.handoff_log import Author
    from succession.handoff.ledger import Item, Ledger, Thread
    from succession.handoff.log import Log


def go(held: Log, author: Author, now: int, thread: Thread, item: str) -> Item:
    """The offer that is acted on from now on. item: its id; empty: the only one that is open.

    Raises UsageError (several are open: which one?), HandoffError (none is, or not that one).
    """
    chosen = item or _only(held.ledger, thread)
    held.add(author, now, [Draft("go", thread.id, {"item": chosen})])
    return held.ledger.items[chosen]


def open_offers(ledger: Ledger, thread: Thread) -> list[Item]:
    """Those of a thread, oldest first."""
    return [one for one in ledger.owed(thread.id) if one.kind == OFFER and one.state == OPEN]


def _only(ledger: Ledger, thread: Thread) -> str:
    found = open_offers(ledger, thread)
    if not found:
        raise HandoffError(f"{thread.id} has no open offer")
    if len(found) > 1:
        listed = "; ".join(f"{one.id}: {one.text}" for one in found)
        raise UsageError(
            f"{len(found)} offers are open: {listed}",
            hint=f"say which: `savepoint handoff go {found[0].id}`",
        )
    return found[0].id
