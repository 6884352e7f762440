"""A thread is handed off: handoff.md, receipt.json, and then the line that settles it.

    handoff/<thread>/<N>/handoff.md      exclusive create; essential state first
    handoff/<thread>/<N>/receipt.json    exclusive create; names the page by its SHA-256
    settle (log)                         names the receipt: from here on it holds

A process that dies before the last leaves a folder that no line names; the next one takes the next
number. Nothing is ever written over (the-agency#74). No thread is started: the owner does that.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import handoff_receipt, limits, spelling
from savepoint.core.errors import BoundaryError, HandoffError, MalformedError
from savepoint.core.handoff_log import Draft
from savepoint.core.named import NamedTuple
from savepoint.store import durable
from savepoint.store.files import names_in
from succession.handoff import boundary, document, log, titles
from succession.handoff.document import Passing
from succession.handoff.ledger import AWAITED, LEFT, SETTLED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from savepoint.core.handoff_log import Author
    from savepoint.core.handoff_receipt import Receipt
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from succession.handoff.ledger import Item, Ledger, Thread
    from succession.handoff.log import Log
    from succession.handoff.turn import Reason

PAGE, RECEIPT = "handoff.md", "receipt.json"


class Standing(NamedTuple):
    """The savepoint that a handoff stands on, which was verified."""

    record: Record
    witnesses: Mapping[str, str]  # local, git, chain → verdict
    unverified: Sequence[str]  # rules that the owner allowed to go unchecked


class Created(NamedTuple):
    """A thread that is settled."""

    folder: str
    receipt: Receipt


def create(
    held: Log, author: Author, now: int, thread: Thread, standing: Standing, reasons: list[Reason]
) -> Created:
    """Settle a thread. author: of the instance that the savepoint belongs to; reasons: what
    `boundary` says is in the way of the session itself.

    Raises BoundaryError (then the thread counts as asked to be handed off), HandoffError (settled
    already, …), DiskError.
    """
    refuse_unless_open(held.ledger, thread)
    reasons = [*reasons, *boundary.reconciled(held.ledger, thread)]
    if reasons:
        if not thread.asked:
            held.add(author, now, [Draft("ask", thread.id, {})])
        told = "; ".join(f"{one.what}: {one.evidence}" for one in reasons[: limits.LISTED])
        more = len(reasons) - limits.LISTED
        is_busy = any(reason.what != "not reconciled" for reason in reasons)
        answer = "" if is_busy or not held.ledger.unresolved(thread.id) else boundary.ANSWER
        raise BoundaryError(told + (f"; and {more} more" if more > 0 else ""), hint=answer)
    heir = new_thread()
    passing = Passing(
        thread,
        titles.own(thread.title),
        heir,
        titles.successor(thread.title),
        passed_on(held.ledger, thread),
        standing.record,
        standing.witnesses,
        standing.unverified,
        now,
    )
    folder, receipt = _write(held, author, passing)
    body: dict[str, Json] = {
        "title": passing.title,
        "successor": heir,
        "successor_title": passing.successor_title,
        "number": receipt.body["number"],
        "receipt": receipt.hash,
        "from": standing.record.origin(),
    }
    held.add(author, now, [Draft("settle", thread.id, body)])
    return Created(folder, receipt)


def refuse_unless_open(ledger: Ledger, thread: Thread) -> None:
    """A thread has one successor. Raises HandoffError that shows who is first."""
    if thread.state == AWAITED:
        raise HandoffError(f"{thread.id} is not accepted yet: `savepoint handoff accept`")
    if thread.state != SETTLED:
        return
    heir = ledger.threads[thread.successor or ""]
    who = f"session {heir.session}" if heir.session else "not accepted yet"
    raise HandoffError(
        f"{thread.id} is settled already: its successor is {heir.id} ({heir.title}, {who})"
    )


def passed_on(ledger: Ledger, thread: Thread) -> list[Item]:
    """What is open in a thread; what stayed behind in an earlier one is not its own any more."""
    return [one for one in ledger.owed(thread.id) if one.state != LEFT]


def folder_of(store: Store, thread: str, number: int) -> str:
    """Where a handoff lies."""
    return os.path.join(log.folder_of(store), thread, str(number))


def new_thread() -> str:
    """An id that nothing has."""
    return f"t-{os.urandom(8).hex()}"


def _write(held: Log, author: Author, passing: Passing) -> tuple[str, Receipt]:
    page = document.text(passing)
    parent = os.path.join(log.folder_of(held.store), passing.thread.id)
    durable.make_directories(parent)
    taken = {int(name) for name in names_in(parent) if name.isdigit()}
    number = max(taken, default=0) + 1
    folder = os.path.join(parent, str(number))
    try:
        receipt = handoff_receipt.make(author.seed, _body(held, author, passing, number, page))
    except MalformedError as failure:
        why = f"no receipt takes all that {passing.thread.id} owes: {failure.message}"
        raise HandoffError(why, hint="close what is done, then run it again") from None
    durable.make_directories(folder)
    for name, data in ((PAGE, page), (RECEIPT, receipt.data)):
        if not durable.create_exclusive(os.path.join(folder, name), data):
            raise HandoffError(
                f"{os.path.join(folder, name)} is there already", hint="run it again"
            )
    return folder, receipt


def _body(held: Log, author: Author, passing: Passing, number: int, page: bytes) -> dict[str, Json]:
    thread, one = passing.thread, passing.savepoint
    items: list[Json] = [
        {
            "item": item.id,
            "text": item.text,
            "binding": dict(item.binding._asdict()) if item.binding else None,
        }
        for item in passing.items
    ]
    witnesses: dict[str, Json] = dict(passing.witnesses)
    return {
        "timestamp": spelling.time_text(passing.now),
        "predecessor": {"thread": thread.id, "title": passing.title},
        "successor": {"thread": passing.successor, "title": passing.successor_title},
        "number": number,
        "items": items,
        "savepoint": one.origin(),
        "record": one.line.decode(),
        "witnesses": witnesses,
        "unverified": list(passing.unverified),
        "project": thread.project,
        "session": thread.session,
        "log": held.head,
        "document": hashlib.sha256(page).hexdigest(),
        "instance": author.instance,
    }
