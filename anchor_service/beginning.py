"""From a savepoint to a signed transaction on disk: QUEUED → PREPARED. Nothing is sent here."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from solders.pubkey import Pubkey

from anchor_service import costs, queue, recovery, targets, transaction
from anchor_service.desk import now
from anchor_service.program import instructions
from anchor_service.program.instructions import Body
from anchor_service.queue import Submission
from anchor_service.wallet import Wallet
from savepoint.core import accounts, entry, keys, limits, spelling
from savepoint.core.entry import Place
from savepoint.core.errors import (
    ConflictError,
    FundsError,
    LedgerRefusedError,
    LedgerUnreachableError,
    RolledBackError,
)
from savepoint.core.named import NamedTuple
from savepoint.store import config, outbox_file, trusted
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from solders.instruction import Instruction

    from anchor_service.desk import Desk
    from anchor_service.targets import Target
    from savepoint.core.entry import Account
    from savepoint.core.ledger import AccountState
    from savepoint.store.layout import InstancePaths

CONFIRMED = "confirmed"


class _Start(NamedTuple):
    """What the next entry builds on."""

    place: Place
    bump: int
    prior: Account | None  # None: it will be the first
    state: AccountState | None  # of the account, which may hold lamports before any entry
    lamports: int  # of the payer
    slot: int  # of the bank that was asked


def begin(desk: Desk, paths: InstancePaths) -> Submission | None:
    """The row of the newest savepoint, PREPARED; or of an entry of ours that nobody here knew,
    to be looked after as if it had been sent from here. None: nothing is owed.

    Raises SavepointError; then the row, if there is one, says CONFLICT or PAUSED_FUNDS.
    """
    genesis = desk.ledger.genesis()
    _check_agreed(desk, genesis)
    orphan(desk, paths, genesis)
    rows = _adopted(desk, desk.queue.rows(paths.slug), genesis)
    if under_way := queue.open_row(rows, desk.choice, desk.program_id):
        return under_way
    last = queue.newest_verified(rows, desk.choice, desk.program_id)
    held = queue.held(paths, rows, desk.choice, desk.program_id)
    covered = queue.newest_verified(held, desk.choice, desk.program_id)
    above = covered.record_seq if covered else 0
    target = targets.newest(paths, desk.repo, above, desk.program)
    if target is None:
        return None
    start = _start(desk, target, genesis)
    row = _row(desk, paths, target, start, rows)
    found = _known(desk, paths, target, start, last, row)
    return found or _prepared(desk, paths, target, start, row)


def orphan(desk: Desk, paths: InstancePaths, genesis: bytes) -> bool:
    """Rows of an earlier life of the cluster stay, and count no more. Was there one?"""
    own = spelling.base58(genesis)
    lost = [
        one
        for one in desk.queue.rows(paths.slug)
        if one.ledger == desk.choice and one.genesis != own and one.state != queue.ORPHANED
    ]
    for one in lost:
        desk.put(one, queue.ORPHANED, error="the cluster began anew", planned=0)
    return bool(lost)


def _adopted(desk: Desk, rows: list[Submission], genesis: bytes) -> list[Submission]:
    """The owner may call one cluster by several names: what is under way there goes on."""
    own = spelling.base58(genesis)
    return [
        desk.queue.put(one._replace(ledger=desk.choice)) if one.genesis == own else one
        for one in rows
    ]


def _check_agreed(desk: Desk, genesis: bytes) -> None:
    """By what it is, not by what it is called: a URL can lead to the mainnet as well."""
    from anchor_service.ledgers.clusters import PUBLIC

    own = spelling.base58(genesis)
    has_agreed = desk.chosen.confirmed == own and desk.chosen.spend is not None
    if PUBLIC.get(genesis) == config.MAINNET and not has_agreed:
        raise LedgerRefusedError(
            "this is the mainnet, where entries cost real money",
            hint=f"`savepoint config ledger {config.MAINNET}` shows what they cost, and asks",
        )


def _start(desk: Desk, target: Target, genesis: bytes) -> _Start:
    instance = hashlib.sha256(target.record.instance.encode("utf-8")).digest()
    account, bump = accounts.address(instance, target.record.signer, desk.program)
    # One question for both, so that they are of one bank, and rarely costs a call more.
    state, payer = desk.ledger.accounts([account, desk.payer.public], CONFIRMED)
    return _Start(
        place=Place(genesis, desk.program, account),
        bump=bump,
        prior=recovery.read(state, desk.program),
        state=state,
        lamports=payer.lamports if payer else 0,
        slot=max(one.slot if one else 0 for one in (state, payer)),
    )


def _row(
    desk: Desk, paths: InstancePaths, target: Target, start: _Start, rows: list[Submission]
) -> Submission:
    """The target's row as it would be QUEUED, with what is known of earlier attempts."""
    prev, seq = (start.prior.hash, start.prior.seq + 1) if start.prior else (entry.NO_ENTRY, 1)
    claim = target.claim(prev)
    row = Submission(
        slug=paths.slug,
        ledger=desk.choice,
        genesis=spelling.base58(start.place.genesis),
        program=spelling.base58(start.place.program),
        account=spelling.base58(start.place.account),
        entry_seq=seq,
        kind=target.kind,
        record_seq=target.record.seq,
        record=target.record.hash,
        entry=claim.hash(seq),
        claim=claim.body + claim.metadata,
        slot=start.slot,
        since=target.since,
    )
    for one in rows:
        if (one.genesis, one.program, one.record) == (row.genesis, row.program, row.record):
            return row._replace(attempt=one.attempt, spent=one.spent, slot=max(one.slot, row.slot))
    return row


def _known(
    desk: Desk,
    paths: InstancePaths,
    target: Target,
    start: _Start,
    last: Submission | None,
    row: Submission,
) -> Submission | None:
    """An entry that stands there already, and that no row here tells of: the outbox was lost, or a
    process died. None: the account is as we left it. Raises ConflictError, RolledBackError,
    LedgerUnreachableError (an endpoint that lags).
    """
    _check_no_older(desk, paths, start, last)
    prior = start.prior
    if prior is None or (last is not None and prior.hash == last.entry):
        return None
    record = recovery.ours(paths, prior, target.record.signer, start.place)
    if record is not None:
        seen = row._replace(
            entry_seq=prior.seq,
            kind=prior.claim.kind,
            record_seq=record.seq,
            record=record.hash,
            entry=prior.hash,
            claim=prior.claim.body + prior.claim.metadata,
        )
        return desk.put(seen, queue.RECONCILE)
    if target.kind == entry.RETIRE and not prior.retired:
        return None  # a key that others use is retired over whatever they wrote
    failure = ConflictError(recovery.told(prior))
    desk.put(row, queue.CONFLICT, error=failure.message)
    raise failure


def _check_no_older(
    desk: Desk, paths: InstancePaths, start: _Start, last: Submission | None
) -> None:
    """The ledger may not go back behind what was seen of it. An embedded one has no endpoint that
    lags: its file was put back, and nothing but its owner makes it newer again.
    """
    head = trusted.load(paths)
    known = head.entry_seen(spelling.base58(start.place.genesis)) if head else 0
    known = max(known, last.entry_seq if last else 0)
    found = start.prior.seq if start.prior else 0
    if found >= known:
        return
    if desk.choice != config.EMBEDDED and last is not None and start.slot < last.slot:
        raise LedgerUnreachableError(f"the endpoint lags: it is at slot {start.slot}")
    raise RolledBackError(
        f"the ledger holds entry {found}, and entry {known} was seen there",
        hint="ask another endpoint: `savepoint config ledger URL`; an embedded ledger that was "
        "put back from a copy can be moved away, then a new one begins",
    )


def _prepared(
    desk: Desk, paths: InstancePaths, target: Target, start: _Start, row: Submission
) -> Submission:
    cost = _afford(desk, start, row)
    authority = Wallet(keyring.authority(paths))
    blockhash = desk.ledger.blockhash()
    claim = target.claim(start.prior.hash if start.prior else entry.NO_ENTRY)
    message = keys.domain("anchor") + claim.message(row.entry_seq, start.place)
    body = Body(
        claim.kind,
        claim.client_time,
        claim.instance_hash,
        claim.snapshot_hash,
        claim.commit.encode("ascii"),
        authority.sign(message),
        claim.metadata,
    )
    raw, signature = transaction.signed(
        [_instruction(start, desk.payer.public, authority.public, body)],
        desk.payer,
        [authority],
        blockhash.hash,
        units=limits.ENTRY_UNITS if start.prior else limits.FIRST_ENTRY_UNITS,
    )
    return desk.put(
        row,
        queue.PREPARED,
        attempt=row.attempt + 1,
        raw=raw,
        signature=signature,
        blockhash=blockhash.hash,
        last_valid_height=blockhash.last_valid_height,
        slot=max(row.slot, blockhash.slot),
        expired_slot=0,
        planned=cost,
    )


def _instruction(start: _Start, payer: bytes, authority: bytes, body: Body) -> Instruction:
    program, account = Pubkey(start.place.program), Pubkey(start.place.account)
    if start.prior is None:
        return instructions.initialise(
            program, Pubkey(payer), Pubkey(authority), account, start.bump, body
        )
    prior = start.prior
    return instructions.append(
        program, Pubkey(authority), account, prior.seq, bytes.fromhex(prior.hash), body
    )


def _afford(desk: Desk, start: _Start, row: Submission) -> int:
    """Lamports that the entry will cost. Raises FundsError: the payer has not enough, or the owner
    allowed less.
    """
    held = start.state.lamports if start.state else 0
    cost = costs.of_entry(desk.ledger, is_first=start.prior is None)
    cost -= min(held, cost - costs.fee()) if start.prior is None else 0
    problem = _too_little(desk, start.lamports, cost)
    cap = desk.chosen.spend
    if cap is not None:
        problem = _above(desk, cost, cap) or problem
    if problem:
        desk.put(row, queue.PAUSED_FUNDS, error=problem)
        raise FundsError(problem)
    return cost


def _above(desk: Desk, cost: int, cap: int) -> str:
    """Would that be more than the owner allowed? What a torn outbox knew counts too."""
    begun = now() - limits.SPEND_SECONDS
    torn = [path for path, moment in outbox_file.set_aside(desk.store) if moment >= begun]
    if torn:
        return f"{torn[-1]} was torn: what was spent in 24 hours is not known, and there is a cap"
    if desk.queue.spent_since(begun) + cost > cap:
        return f"{cost} lamports more would be above the cap of {cap} in 24 hours"
    return ""


def _too_little(desk: Desk, lamports: int, cost: int) -> str:
    """What is left to a payer must be nothing, or pay the rent of its own account."""
    if desk.choice == config.EMBEDDED or lamports - cost == 0:
        return ""
    if lamports - cost >= limits.PAYER_RESERVE_LAMPORTS:
        return ""
    needed = cost + desk.ledger.rent(0)
    if lamports >= needed:
        return ""
    who = spelling.base58(desk.payer.public)
    return f"payer {who} has {lamports} lamports, and needs {needed}"
