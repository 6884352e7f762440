"""A successor takes over: receipt and savepoint verified, each item reviewed, each binding moved
and read back. What cannot be bound stays behind with its reason, and is tried again when it is run
again: what stood in the way may be gone.

A step is a line of the log, so that a run that dies is gone on with by the next: the same session
gets the same result, however often it asks. Bindings are moved while others may use the log:
commands take their time.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

from savepoint.core import handoff_receipt, limits
from savepoint.core.errors import HandoffError, MalformedError, TamperedError
from savepoint.core.handoff_log import Draft
from savepoint.core.named import NamedTuple
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded
from succession.handoff import create, drivers, log, texts
from succession.handoff.ledger import AWAITED, BINDING, LEFT, OPEN, SETTLED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from savepoint.core.handoff_log import Author
    from savepoint.core.handoff_receipt import Receipt
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
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
    if thread.state != SETTLED or thread.successor is None or not thread.number:
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
    store: Store,
    author: Author,
    now: int,
    offer: Offered,
    session: str,
    known: Mapping[str, Driver],
) -> Accepted:
    """Take over. session: key of the successor's; known: drivers by name. The caller has verified
    the savepoint. Raises HandoffError (another was first, …), BusyError, DiskError.
    """
    with _held(store) as held:
        heir = _heir(held, author, now, offer, session)
        waiting = held.ledger.waiting(heir)
        plain = [one for one in waiting if not _is_bound(one)]
        _add(held, author, now, [Draft("take", heir.id, _took(one, None)) for one in plain])
        bound = [one for one in waiting if _is_bound(one)]
        again = [one for one in outcome(held.ledger, offer).left if _may_move(one, heir)]
    if bound:
        moved = _moved(bound, offer, heir, known)
        with _held(store) as held:
            here = {one.id for one in held.ledger.waiting(held.ledger.threads[heir.id])}
            _add(held, author, now, [_step(heir, *one) for one in moved if one[0].id in here])
    for item, value, _ in _moved(again, offer, heir, known):
        if value is not None:
            with _held(store) as held:
                _bind_anew(held, author, now, heir, item)
    with _held(store) as held:
        return outcome(held.ledger, offer)


def outcome(ledger: Ledger, offer: Offered) -> Accepted:
    """What became of what was handed off; by the latest ledger, not by the receipt."""
    items = [ledger.items[name] for name in offer.receipt.items]
    left = [one for one in items if one.state == LEFT]
    taken = [one for one in items if one.thread != offer.thread.id]
    closed = [one for one in items if one not in left and one not in taken]
    return Accepted(ledger.threads[offer.heir.id], taken, left, closed)


def _held(store: Store) -> AbstractContextManager[Log]:
    return log.opened(store, time.monotonic() + limits.LOCK_WAIT_SECONDS)


def _heir(held: Log, author: Author, now: int, offer: Offered, session: str) -> Thread:
    """The successor, which is that session from now on. Raises HandoffError."""
    heir = held.ledger.threads[offer.heir.id]
    if session in (offer.thread.session, offer.receipt.body["session"]):
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
    return held.ledger.threads[heir.id]


def _add(held: Log, author: Author, now: int, drafts: list[Draft]) -> None:
    if drafts:
        held.add(author, now, drafts)


def _is_bound(item: Item) -> bool:
    return item.kind == BINDING and item.binding is not None


def _may_move(item: Item, heir: Thread) -> bool:
    """Was it left because something stood in the way?"""
    return heir.state == OPEN and item.binding is not None and item.binding.driver != "none"


def _moved(
    items: Sequence[Item], offer: Offered, heir: Thread, known: Mapping[str, Driver]
) -> list[tuple[Item, str | None, str]]:
    """Bindings, each with what was read back, or None and why it stays behind."""
    session = offer.receipt.body["session"]  # the thread's, or one that was brought back from it
    last = offer.thread._replace(session=None if session is None else str(session))
    found: list[tuple[Item, str | None, str]] = []
    for one in items:
        if one.binding is not None:
            held = dict.fromkeys((one.value or "", one.binding.value_for(last)))
            wanted = one.binding.value_for(heir)
            found.append((one, *drivers.move(known, one.binding, held, wanted)))
    return found


def _step(heir: Thread, item: Item, value: str | None, reason: str) -> Draft:
    if value is not None:
        return Draft("take", heir.id, _took(item, value))
    told = texts.cut(reason, limits.HANDOFF_TEXT_BYTES)
    return Draft("leave", heir.id, {"item": item.id, "reason": told})


def _took(item: Item, value: str | None) -> dict[str, Json]:
    return {"item": item.id, "value": value}


def _bind_anew(held: Log, author: Author, now: int, heir: Thread, item: Item) -> None:
    """What was left, and has moved at last, is a binding of the successor's own. That comes first:
    a kill between the two lines leaves it open twice rather than nowhere.
    """
    left = held.ledger.items[item.id]
    if left.state != LEFT or left.binding is None or held.ledger.threads[heir.id].state != OPEN:
        return
    new = held.ledger.next_id(BINDING)
    body: dict[str, Json] = {"item": new, "text": left.text, **left.binding._asdict()}
    evidence = f"it moved when it was tried again, and is {new} now"
    held.add(
        author,
        now,
        [
            Draft("bind", heir.id, body),
            Draft("close", left.thread, {"item": left.id, "evidence": evidence}),
        ],
    )


def _receipt(path: str) -> Receipt:
    data = _read(path)
    try:
        receipt = handoff_receipt.parse(data)
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
