"""Submission: how an entry gets onto a ledger, once, whatever fails and whoever dies meanwhile.

    1  QUEUED     the newest savepoint that git has; nothing is signed for it that may still land
    2  PREPARED   transaction and signature are on disk, synced (anchor_service/beginning.py)
    3  SENT       an endpoint took the bytes, which says nothing of whether they land
    4  SEEN       they are in a block
    5  LANDED     most have voted for the block
    6  VERIFIED   the account, read at finalized, holds our entry; the trusted head knows it

Whoever takes up a row looks first; the same bytes are sent again until they land or can no longer.
Only when a finalized bank behind their last block does not have them are they given up, and the
row is QUEUED again. Whatever else is in doubt is RECONCILE: the finalized account decides. That a
ledger does not answer, or not now, changes no state. Two transactions for one savepoint could not
both land in any case: each names the entry that it follows, and the program compares.

Hash, last valid height and height are of one commitment (bloom#231: hash at finalized, height at
processed, and everything expired before it was sent).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchor_service import costs, queue, recovery
from anchor_service.beginning import CONFIRMED, begin, orphan
from savepoint.core import entry, limits, spelling
from savepoint.core.errors import (
    ConflictError,
    FundsError,
    LedgerUnreachableError,
    RejectedError,
)
from savepoint.core.ledger import Blockhash
from savepoint.core.named import NamedTuple
from savepoint.core.verify_chain import FINALIZED
from savepoint.store import index, journal, trusted
from savepoint.store.config import EMBEDDED
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchor_service.desk import Desk
    from anchor_service.queue import Submission
    from savepoint.core.entry import Account
    from savepoint.core.ledger import AccountState, Failure, Landing
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths

_DOUBTFUL = (queue.RECONCILE, queue.CONFLICT, queue.PAUSED_FUNDS)  # first: is the cluster the same?
# Codes by which the program says that the account is not as the transaction expects it
# (anchor_service/program/instructions.py): initialised already, retired, another entry.
_MOVED = frozenset({1007, 1016, 1018, 1019})


class _Step(NamedTuple):
    """What a step came to."""

    row: Submission
    pause: float | None = None  # seconds until to look again; None: go on at once


def advance(desk: Desk, paths: InstancePaths, deadline: float) -> float | None:
    """Bring the newest savepoint of an instance as far as it can be brought now.

    None: it is anchored, or nothing is owed; else seconds until there may be news. deadline: of
    time.monotonic(). Raises SavepointError: `retry` says whether the same can succeed later.
    """
    row = queue.open_row(desk.queue.rows(paths.slug), desk.choice, desk.program_id)
    while time.monotonic() < deadline:
        if row is None or row.state == queue.QUEUED:
            row = begin(desk, paths)
            if row is None:
                return None
        if row.state in _DOUBTFUL and orphan(desk, paths, desk.ledger.genesis()):
            row = None
            continue
        step = _STEPS[row.state](desk, paths, row)
        if step.pause is not None:
            return step.pause
        if step.row.state == queue.VERIFIED:
            return None
        row = step.row if step.row.state != queue.ORPHANED else None
    return limits.ANCHOR_POLL_SECONDS


def _send(desk: Desk, _paths: InstancePaths, row: Submission) -> _Step:
    """PREPARED: hand in the bytes. They may have been sent before: then it is known already."""
    failure = _hand_in(desk, row)
    if failure is None:
        return _Step(desk.put(row, queue.SENT))
    return _refused(desk, row, failure)


def _hand_in(desk: Desk, row: Submission) -> Failure | None:
    """Why it was refused; None where it was taken, or had been before."""
    try:
        desk.ledger.send(row.raw, Blockhash(row.blockhash, row.last_valid_height, row.slot))
    except RejectedError as failure:
        if failure.failure is None:
            raise
        if failure.failure.kind in ("duplicate", "blockhash"):
            return None  # known already; or an endpoint that lags: heights say when it is too late
        return failure.failure
    return None


def _refused(desk: Desk, row: Submission, failure: Failure) -> _Step:
    """An endpoint tried the transaction, and it would fail. It may have been sent all the same."""
    if failure.kind == "program" and failure.code in _MOVED:
        return _Step(desk.put(row, queue.RECONCILE, error=failure.detail))
    if failure.kind == "funds":
        desk.put(row, queue.PAUSED_FUNDS, error=failure.detail)
        raise FundsError(f"the payer cannot pay: {failure.detail}")
    desk.put(row, queue.SENT, error=failure.detail)
    raise RejectedError(f"the ledger refuses the entry: {failure.detail}", failure)


def _look(desk: Desk, paths: InstancePaths, row: Submission) -> _Step:
    """SENT, SEEN, LANDED: what became of the transaction?"""
    looks = desk.looks.get(row.signature, 0)
    desk.looks[row.signature] = looks + 1
    history = looks % limits.ANCHOR_HISTORY_POLLS == 0  # also the first look of a new process
    landing = desk.ledger.landing(row.signature, history=history)
    if landing is None:
        return _missing(desk, paths, row, looks)
    if landing.error is not None:
        return _failed(desk, row, landing)
    if landing.level == FINALIZED:
        return _settle(desk, paths, row._replace(slot=max(row.slot, landing.slot)), landing)
    state = queue.LANDED if landing.level == CONFIRMED else queue.SEEN
    if (row.state, row.slot >= landing.slot) != (state, True):
        row = desk.put(row, state, slot=max(row.slot, landing.slot))
    return _Step(row, limits.ANCHOR_POLL_SECONDS if state == queue.LANDED else _pause(looks))


def _missing(desk: Desk, paths: InstancePaths, row: Submission, looks: int) -> _Step:
    """Nobody has seen it: wait a moment, then send the same bytes as long as they can land."""
    if looks < len(limits.ANCHOR_POLLS_SECONDS) - 1:
        return _Step(row, _pause(looks))
    if orphan(desk, paths, desk.ledger.genesis()):
        return _Step(row._replace(state=queue.ORPHANED))
    if _is_expired(desk, row):
        return _Step(desk.put(row, queue.RECONCILE, error="the blockhash has expired"))
    failure = _hand_in(desk, row)
    return _Step(row, _pause(looks)) if failure is None else _refused(desk, row, failure)


def _is_expired(desk: Desk, row: Submission) -> bool:
    last = row.last_valid_height + limits.EXPIRY_MARGIN_HEIGHTS
    return desk.ledger.height() > last


def _failed(desk: Desk, row: Submission, landing: Landing) -> _Step:
    """It is in a block, and did nothing but cost its fee. Once that is final, it is over."""
    failure = landing.error
    assert failure is not None  # noqa: S101  # the caller saw it
    if landing.level != FINALIZED:
        return _Step(row, limits.ANCHOR_POLL_SECONDS)
    row = desk.put(
        row, queue.QUEUED, error=failure.detail, spent=row.spent + costs.fee(), planned=0
    )
    if failure.kind == "program" and failure.code in _MOVED:  # the account is looked at, in a while
        raise LedgerUnreachableError(f"attempt {row.attempt} came too late: {failure.detail}")
    if failure.kind == "funds":
        raise FundsError(f"the payer could not pay: {failure.detail}")
    raise RejectedError(f"the entry failed on the ledger: {failure.detail}", failure)


def _pay(desk: Desk, paths: InstancePaths, row: Submission) -> _Step:
    """PAUSED_FUNDS: try the same bytes again while they can land; funds may have come."""
    if not row.raw:
        return _Step(desk.put(row, queue.QUEUED))
    if desk.ledger.landing(row.signature, history=True) is not None:
        return _Step(desk.put(row, queue.SENT))
    if _is_expired(desk, row):
        return _Step(desk.put(row, queue.RECONCILE, error=row.error))
    return _send(desk, paths, row)


def _reconcile(desk: Desk, paths: InstancePaths, row: Submission) -> _Step:
    """RECONCILE: the finalized account decides."""
    account, slot = _account(desk, row, FINALIZED)
    if account is not None and account.seq >= row.entry_seq:
        return _stands(desk, paths, row, account, slot)
    if not row.raw:  # found at confirmed, when the outbox was lost
        return _Step(row, limits.ANCHOR_POLL_SECONDS)
    landing = desk.ledger.landing(row.signature, history=True)
    if landing is None:
        return _given_up(desk, row, slot)
    return _failed(desk, row, landing) if landing.error else _promised(row, landing, slot)


def _promised(row: Submission, landing: Landing, slot: int) -> _Step:
    """In a block, and not in the finalized account yet."""
    if landing.level == FINALIZED and slot >= landing.slot:
        raise LedgerUnreachableError(
            "the ledger calls the transaction finalized, and the account does not hold it"
        )
    return _Step(row, limits.ANCHOR_POLL_SECONDS)


def _given_up(desk: Desk, row: Submission, slot: int) -> _Step:
    """No block has it. Only a finalized bank that is newer than the last block in which it could
    have landed proves that it never will: that bank is awaited.
    """
    if not _is_expired(desk, row):
        return _Step(row, limits.ANCHOR_POLL_SECONDS)
    if not row.expired_slot:
        _, confirmed = _account(desk, row, CONFIRMED)
        row = desk.put(row, row.state, error=row.error, expired_slot=confirmed)
        return _Step(row, limits.ANCHOR_POLL_SECONDS)
    if slot < row.expired_slot:
        return _Step(row, limits.ANCHOR_POLL_SECONDS)
    desk.put(row, queue.QUEUED, error="it expired before it landed", planned=0)
    raise LedgerUnreachableError(f"attempt {row.attempt} expired before it landed")


def _conflict(desk: Desk, paths: InstancePaths, row: Submission) -> _Step:
    """CONFLICT: stays, unless the account or our index turn out otherwise (records that were lost
    here came back from the remote), or the key is to be retired.
    """
    account, _ = _account(desk, row, FINALIZED)
    if account is None or recovery.ours(paths, account, _authority(paths), desk.place(row)):
        return _Step(desk.put(row, queue.QUEUED))
    if index.is_retired(paths) and not account.retired and row.kind != entry.RETIRE:
        return _Step(desk.put(row, queue.QUEUED))
    raise ConflictError(recovery.told(account))


def _settle(desk: Desk, paths: InstancePaths, row: Submission, landing: Landing) -> _Step:
    """The transaction is finalized, they say: is the entry in the account?"""
    if orphan(desk, paths, desk.ledger.genesis()):
        return _Step(row._replace(state=queue.ORPHANED))
    account, slot = _account(desk, row, FINALIZED)
    if account is not None and account.seq >= row.entry_seq:
        return _stands(desk, paths, row, account, slot)
    return _promised(row, landing, slot)


def _stands(
    desk: Desk, paths: InstancePaths, row: Submission, account: Account, slot: int
) -> _Step:
    """The finalized account has an entry where ours was to be, or behind it: is it ours?"""
    good = account.is_signed_by(_authority(paths), desk.place(row))
    if good and (account.seq, account.hash) == (row.entry_seq, row.entry):
        return _Step(_verified(desk, paths, row, slot))
    record = recovery.ours(paths, account, _authority(paths), desk.place(row))
    if record is not None:  # begin() finds it again, and takes it up
        return _Step(desk.put(row, queue.QUEUED, planned=0))
    if row.kind == entry.RETIRE and not account.retired:
        return _Step(desk.put(row, queue.QUEUED, planned=0))
    failure = ConflictError(recovery.told(account))
    desk.put(row, queue.CONFLICT, error=failure.message, slot=max(slot, row.slot), planned=0)
    raise failure


def _verified(desk: Desk, paths: InstancePaths, row: Submission, slot: int) -> Submission:
    """The head first: it says what was seen, and a kill behind it is followed by this again."""
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    with Lock(paths.store.lock, deadline):
        head = trusted.load(paths)
        if head is not None:
            is_embedded = desk.ledger.name == EMBEDDED
            head = head.with_entry(row.genesis, row.entry_seq, row.entry, is_embedded=is_embedded)
            trusted.save(paths, head)
    done = desk.put(
        row, queue.VERIFIED, slot=max(slot, row.slot), spent=row.spent + row.planned, planned=0
    )
    shown: dict[str, Json] = {
        "ledger": desk.ledger.name,
        "account": row.account,
        "signature": spelling.base58(row.signature) if row.signature else None,
        "slot": done.slot,
        "commitment": FINALIZED,
    }
    journal.anchored(paths, done.changed, row.record_seq, shown)
    return done


def _account(desk: Desk, row: Submission, level: str) -> tuple[Account | None, int]:
    """The entry, and the slot of the bank that was asked. The payer is asked for as well: an
    account that is not there tells no slot.
    """
    wanted = [spelling.key_bytes(row.account), desk.payer.public]
    states: list[AccountState | None] = desk.ledger.accounts(wanted, level)
    slot = max(one.slot if one else 0 for one in states)
    return recovery.read(states[0], desk.program), slot


def _authority(paths: InstancePaths) -> bytes:
    birth = index.birth(paths)
    return birth.signer if birth else b""


def _pause(looks: int) -> float:
    early = limits.ANCHOR_POLLS_SECONDS
    return early[looks] if looks < len(early) else limits.ANCHOR_POLL_SECONDS


_STEPS: dict[str, Callable[[Desk, InstancePaths, Submission], _Step]] = {
    queue.PREPARED: _send,
    queue.SENT: _look,
    queue.SEEN: _look,
    queue.LANDED: _look,
    queue.RECONCILE: _reconcile,
    queue.CONFLICT: _conflict,
    queue.PAUSED_FUNDS: _pay,
}
