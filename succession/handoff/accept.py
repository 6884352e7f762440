"""A successor takes over: receipt and savepoint verified, each item reviewed, each binding moved
and read back. What cannot be bound stays behind with its reason.

A step is a line of the log, so that a run that dies is gone on with by the next: the same session
gets the same result, however often it asks.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import handoff_receipt, limits
from savepoint.core.errors import HandoffError, MalformedError, TamperedError
from savepoint.core.handoff_log import Draft
from savepoint.core.named import NamedTuple
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded
from succession.handoff import create, drivers
from succession.handoff.ledger import AWAITED, BINDING, LEFT, SETTLED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.handoff_log import Author
    from savepoint.core.handoff_receipt import Receipt
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths, Store
    from succession.handoff.drivers import Driver
    from succession.handoff.ledger import Item, Ledger, Thread
    from succession.handoff.log import Log


class Offered(NamedTuple):
    """A handoff whose receipt holds, and the savepoint that it stands on."""

    thread: Thread  # the settled one
    heir: Thread
    folder: str
    receipt: Receipt
    paths: InstancePaths
    record: Record  # as the index has it


class Accepted(NamedTuple):
    """What became of each item of the receipt."""

    heir: Thread
    taken: list[Item]
    left: list[Item]  # `note` is the reason
    closed: list[Item]  # since the handoff was written


def offered(store: Store, ledger: Ledger, thread: Thread) -> Offered:
    """The handoff of a settled thread, verified but for its savepoint's content.

    Raises HandoffError (not handed off), TamperedError (altered, or of another savepoint),
    MalformedError, UnsupportedFormatError, DiskError.
    """
    if thread.state != SETTLED or thread.successor is None:
        raise HandoffError(f"{thread.id} is not handed off: `savepoint handoff create`")
    folder = create.folder_of(store, thread.id, thread.number)
    receipt = _receipt(os.path.join(folder, create.RECEIPT))
    page = _read(os.path.join(folder, create.PAGE))
    if receipt.hash != thread.receipt:
        raise TamperedError(f"{folder}/{create.RECEIPT} is not the one that the log names")
    if hashlib.sha256(page).hexdigest() != receipt.body["document"]:
        raise TamperedError(f"{folder}/{create.PAGE} is not the one that its receipt names")
    if receipt.body["savepoint"] != thread.savepoint:
        raise TamperedError(f"{folder}/{create.RECEIPT} is for another savepoint than the log says")
    paths, one = _in_index(store, receipt.savepoint())
    return Offered(thread, ledger.threads[thread.successor], folder, receipt, paths, one)


def accept(
    held: Log,
    author: Author,
    now: int,
    offer: Offered,
    session: str,
    known: Mapping[str, Driver],
) -> Accepted:
    """Take over. session: key of the successor's; known: drivers by name. The caller has verified
    the savepoint. Raises HandoffError (another was first, …), DiskError.
    """
    heir = held.ledger.threads[offer.heir.id]
    if session == offer.thread.session:
        raise HandoffError(
            f"session {session} is the one that was handed off",
            hint="run it in the successor, or name that with --session ID",
        )
    if heir.session not in (None, session):
        raise HandoffError(
            f"{offer.thread.id} has a successor already: {heir.id} ({heir.title}), session "
            f"{heir.session}, was first"
        )
    if heir.state == AWAITED:
        body = {"predecessor": offer.thread.id, "session": session}
        held.add(author, now, [Draft("accept", heir.id, dict(body))])
    heir = held.ledger.threads[heir.id]
    for item in held.ledger.waiting(heir):
        held.add(author, now, [_step(item, heir, known)])
    return outcome(held.ledger, offer)


def outcome(ledger: Ledger, offer: Offered) -> Accepted:
    """What became of what was handed off; by the latest ledger, not by the receipt."""
    items = [ledger.items[name] for name in offer.receipt.items]
    left = [one for one in items if one.state == LEFT]
    taken = [one for one in items if one.thread != offer.thread.id]
    closed = [one for one in items if one not in left and one not in taken]
    return Accepted(ledger.threads[offer.heir.id], taken, left, closed)


def _step(item: Item, heir: Thread, known: Mapping[str, Driver]) -> Draft:
    if item.kind != BINDING or item.binding is None:
        return Draft("take", heir.id, {"item": item.id, "value": None})
    wanted = drivers.value_for(item.binding, heir)
    found, reason = drivers.move(known, item.binding, wanted)
    if found is None:
        told = reason.encode("utf-8", "replace")[: limits.HANDOFF_TEXT_BYTES]
        return Draft("leave", heir.id, {"item": item.id, "reason": told.decode("utf-8", "ignore")})
    return Draft("take", heir.id, {"item": item.id, "value": found})


def _receipt(path: str) -> Receipt:
    try:
        receipt = handoff_receipt.parse(_read(path))
        receipt.savepoint()
    except MalformedError as failure:
        raise TamperedError(f"{path}: {failure.message}") from None
    if not receipt.signature_holds():
        raise TamperedError(f"{path}: its signature does not hold")
    return receipt


def _read(path: str) -> bytes:
    data = read_bounded(path, limits.SMALL_DOCUMENT_BYTES)
    if data is None:
        raise TamperedError(f"{path} is missing")
    return data


def _in_index(store: Store, wanted: Record) -> tuple[InstancePaths, Record]:
    """The savepoint as this store has it. Raises TamperedError where it has not."""
    for paths in savepoints.instances(store):
        birth = index.birth(paths)
        if birth is None or birth.signer != wanted.signer:
            continue
        for one in savepoints.records(paths).saves:
            if one.line == wanted.line:
                return paths, one
    raise TamperedError(f"this store has no savepoint {wanted.seq} as the receipt names it")
