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
    """The offer that is acted on from now on. item: its id; empty: the only one that is open and
    was not begun by this thread.

    Raises UsageError (several are: which one?), HandoffError (none is, or not that one, or it is
    acted on already).
    """
    chosen = item or _only(held.ledger, thread)
    found = held.ledger.items.get(chosen)
    if found is None:
        raise HandoffError(f"there is no item {chosen}")
    if found.state == OPEN and found.begun == thread.id:
        raise HandoffError(
            f"{chosen} was begun by {thread.id} already",
            hint=f"when it is done: `savepoint handoff offer close {chosen} --evidence TEXT`",
        )
    held.add(author, now, [Draft("go", thread.id, {"item": chosen})])
    return held.ledger.items[chosen]


def open_offers(ledger: Ledger, thread: Thread) -> list[Item]:
    """Those of a thread, oldest first."""
    return [one for one in ledger.owed(thread.id) if one.kind == OFFER and one.state == OPEN]


def _only(ledger: Ledger, thread: Thread) -> str:
    offers = open_offers(ledger, thread)
    found = [one for one in offers if one.begun != thread.id] or offers[:1]
    if not found:
        raise HandoffError(f"{thread.id} has no open offer")
    if len(found) > 1:
        listed = "; ".join(f"{one.id}: {one.text}" for one in found)
        raise UsageError(
            f"{len(found)} offers are open: {listed}",
            hint=f"say which: `savepoint handoff go {found[0].id}`",
        )
    return found[0].id
