"""What handoff has to say at the agent's events: facts, and few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.spelling import counted
from succession.handoff import boundary, log, running
from succession.handoff.ledger import AWAITED, OPEN

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from succession.handoff.ledger import Ledger, Thread


def at_start(store: Store, key: str, project: str) -> str:
    """See `succession.handoff.at_start`."""
    ledger = log.read(store)
    if ledger is None:
        return ""
    lines = [
        _offered(ledger, one, key)
        for one in ledger.threads.values()
        if one.state == AWAITED and one.project == project
    ]
    lines += [
        f"Thread {one.id} ({one.title}) of this session has still to take over "
        f"{counted(len(ledger.waiting(one)), 'item')}: `savepoint handoff accept` goes on with it."
        for one in ledger.threads.values()
        if one.state == OPEN and one.session == key and ledger.waiting(one)
    ]
    return "\n".join(filter(None, lines))


def at_stop(store: Store, key: str, payload: bytes, transcript: str) -> str:
    """See `succession.handoff.at_stop`."""
    running.keep(store, key, payload)
    ledger = log.read(store)
    found = ledger.threads.values() if ledger else ()
    own = next((one for one in found if one.session == key and one.state == OPEN), None)
    if ledger is None or own is None or not own.asked:
        return ""
    reasons = boundary.reasons(store, ledger, own, transcript or None)
    if not reasons:
        return f"{own.id} may be handed off now: `savepoint handoff create`."
    told = "; ".join(f"{one.what}: {one.evidence}" for one in reasons[: limits.HANDOFF_TOLD])
    more = len(reasons) - limits.HANDOFF_TOLD
    return f"{own.id} cannot be handed off yet: {told}{f'; and {more} more' if more > 0 else ''}."


def _offered(ledger: Ledger, heir: Thread, key: str) -> str:
    """Not to the session that was handed off: it cannot succeed itself."""
    before = ledger.threads[heir.predecessor or ""]
    if before.session == key:
        return f"This session's thread {before.id} is settled: its successor is {heir.id}."
    items = counted(len(ledger.waiting(heir)), "item")
    return (
        f"A handoff is open: {before.title} passed {items} to {heir.title} ({heir.id}), and "
        "nobody has accepted them. `savepoint handoff status` lists them, `savepoint handoff "
        "accept` takes them over."
    )
