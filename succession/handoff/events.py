"""What handoff has to say at the agent's events: facts, and few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.spelling import counted
from savepoint.store import config
from succession.handoff import boundary, log, running, whose
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
        if one.state == AWAITED and _is_here(store, one, project)
    ]
    lines += [
        f"Thread {one.id} ({_line(one.title)}) of this session has still to take over "
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
    asked = [one for one in found if one.state == OPEN and one.asked]
    own = whose.of_session(store, asked, key)
    if ledger is None or own is None:
        return ""
    reasons = boundary.reasons(store, ledger, own, transcript or None)
    if not reasons:
        return f"{own.id} may be handed off now: `savepoint handoff create`."
    told = "; ".join(f"{one.what}: {_line(one.evidence)}" for one in reasons[: limits.HANDOFF_TOLD])
    more = len(reasons) - limits.HANDOFF_TOLD
    return f"{own.id} cannot be handed off yet: {told}{f'; and {more} more' if more > 0 else ''}."


def _offered(ledger: Ledger, heir: Thread, key: str) -> str:
    """Not to the session that was handed off: it cannot succeed itself."""
    before = ledger.threads[heir.predecessor or ""]
    if before.session == key:
        return f"This session's thread {before.id} is settled: its successor is {heir.id}."
    items = counted(len(ledger.waiting(heir)), "item")
    return (
        f"A handoff is open: {_line(before.title)} passed {items} to {_line(heir.title)} "
        f"({heir.id}), and nobody has accepted them. `savepoint handoff status` lists them, "
        "`savepoint handoff accept` takes them over."
    )


def _is_here(store: Store, one: Thread, project: str) -> bool:
    if one.project == project:
        return True
    return whose.is_of(one, project, [known.path for known in config.load(store).projects])


def _line(text: str) -> str:
    """On one line, whatever it holds: it must not look like words of ours."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
