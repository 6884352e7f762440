"""The ledger or the outbox is not as it was left: a reset, a loss, another writer, a step back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anchor_service import beginning, queue, recovery, targets
from anchor_service.program.instructions import Body
from anchor_service.transaction import signed
from anchor_service.wallet import Wallet
from savepoint.core import entry, keys, spelling
from savepoint.core.errors import (
    ConflictError,
    LedgerUnreachableError,
    RolledBackError,
)
from savepoint.store import durable
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.submission.scene import Anchoring


def test_the_earlier_life_of_a_cluster_is_left(it: Anchoring) -> None:
    it.finish()
    old = it.row()
    it.chain.reset()
    newest = it.save()
    it.finish()
    it.check_covered(newest)
    assert it.states() == [(old.record_seq, "ORPHANED_BY_RESET"), (newest.seq, "VERIFIED")]
    assert it.account().seq == 1


def test_a_reset_while_it_is_under_way(it: Anchoring) -> None:
    it.step()
    it.chain.reset()
    it.finish()
    states = [one.state for one in it.rows()]
    assert sorted(states) == ["ORPHANED_BY_RESET", "VERIFIED"]
    it.check_covered(it.layer.built.records()[-1])


@pytest.mark.parametrize("state", ["RECONCILE", "CONFLICT", "PAUSED_FUNDS", "LANDED", "SEEN"])
def test_a_reset_in_any_state(it: Anchoring, state: str) -> None:
    it.step()
    it.force(state)
    it.chain.reset()
    it.finish()
    assert sorted(one.state for one in it.rows()) == ["ORPHANED_BY_RESET", "VERIFIED"]


def test_a_reset_that_nothing_is_owed_after(it: Anchoring) -> None:
    """`sync` looks for it: the newest savepoint is anchored again, as a new row."""
    it.finish()
    it.chain.reset()
    it.finish()
    assert [one.state for one in it.rows()].count("VERIFIED") == 1
    it.check_covered(it.layer.built.records()[-1])


def test_an_outbox_that_was_lost_is_made_of_the_account(it: Anchoring) -> None:
    it.finish()
    before = it.row()
    _lose(it)
    it.finish()
    assert (it.row().entry, it.row().state) == (before.entry, "VERIFIED")
    assert len(it.chain.sent) == 1
    newest = it.save()
    it.finish()
    it.check_covered(newest)
    assert it.account().seq == 2


def test_an_outbox_that_was_lost_under_way(it: Anchoring) -> None:
    """What is in no finalized block yet is awaited, not sent again."""
    it.step()
    it.chain.tick(5)
    _lose(it)
    it.finish()
    it.check_covered(it.layer.built.records()[-1])
    assert (it.account().seq, len(set(it.chain.sent))) == (1, 1)


def test_an_outbox_that_was_lost_before_it_landed(it: Anchoring) -> None:
    """Then a second transaction is signed for the same savepoint; the program takes one."""
    it.step()
    _lose(it)
    it.step()
    it.finish()
    it.check_covered(it.layer.built.records()[-1])
    assert it.account().seq == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_another_writer_is_a_conflict(it: Anchoring, is_first: bool) -> None:
    if not is_first:
        it.finish()
        it.save()
    _write(it, _foreign)
    sent = len(it.chain.sent)
    for _ in range(3):
        with pytest.raises(ConflictError, match="is not ours") as raised:
            it.step()
        assert not raised.value.retry
        it.chain.tick(40)
    assert it.row().state == queue.CONFLICT
    assert len(it.chain.sent) == sent  # no further anchoring


def test_another_writer_is_first(it: Anchoring) -> None:
    """Between our look and our transaction: the program refuses, and the account decides."""
    it.step()
    (ours,) = it.chain.sent
    it.chain._waiting.clear()
    _write(it, _foreign)
    it.chain._waiting.append((ours, 10**6))
    it.chain.tick(40)
    with pytest.raises(LedgerUnreachableError, match="came too late"):
        it.finish()
    with pytest.raises(ConflictError):
        it.finish()
    assert it.row().state == queue.CONFLICT


def test_a_conflict_that_was_none(it: Anchoring) -> None:
    """The index had lost records that the remote had; once they are back the entry is ours."""
    newest = it.save()
    it.finish()
    lines = it.layer.built.lines
    _lose(it)
    it.layer.built.write_lines(*lines[:-1])
    with pytest.raises((ConflictError, RolledBackError)):
        it.step()
    it.layer.built.write_lines(*lines)
    it.finish()
    it.check_covered(newest)


def test_a_signature_that_is_not_ours_is_no_entry_of_ours(it: Anchoring) -> None:
    """Only the key's owner could write it, and the verifier would refuse it."""
    it.finish()
    row = it.row()
    state = it.chain.account(spelling.key_bytes(row.account), "confirmed")
    assert state is not None
    data = bytearray(state.data)
    data[150] ^= 1
    for _, states in it.chain._states:
        states[spelling.key_bytes(row.account)] = state._replace(data=bytes(data))
    it.force(queue.RECONCILE)
    with pytest.raises(ConflictError):
        it.finish()


@pytest.mark.parametrize("second", [2**62, -1])
def test_a_foreign_entry_of_no_possible_time_is_told_all_the_same(
    it: Anchoring, second: int
) -> None:
    it.finish()
    account = it.account()._replace(chain_time=second)
    assert f"(SAVEPOINT, second {second}) of the account is not ours" in recovery.told(account)


def test_the_ledger_may_not_go_back(it: Anchoring) -> None:
    it.finish()
    it.save()
    it.chain._states.clear()  # the account is gone, the genesis hash is the same
    with pytest.raises(RolledBackError, match="holds entry 0, and entry 1 was seen"):
        it.step()
    assert len(it.chain.sent) == 1


def test_an_endpoint_that_lags_is_no_rollback(it: Anchoring) -> None:
    it.finish()
    it.save()
    it.chain.now -= 500
    with pytest.raises(LedgerUnreachableError, match="lags"):
        it.step()


def _lose(it: Anchoring) -> None:
    for ending in ("", "-wal", "-shm"):
        durable.remove(it.store.outbox + ending)
    it.restart()


def _foreign(target: targets.Target) -> targets.Target:
    """What we would never have made."""
    return target._replace(snapshot_hash=bytes(32))


def _write(it: Anchoring, change: Callable[[targets.Target], targets.Target]) -> None:
    """Who has the key writes an entry of its own."""
    with it.desk() as desk:
        target = targets.newest(it.paths, desk.repo, 0)
        assert target is not None
        start = beginning._start(desk, target, it.chain.genesis())
        row = beginning._row(desk, it.paths, change(target), start, [])
        authority = Wallet(keyring.authority(it.paths))
        claim = change(target).claim(start.prior.hash if start.prior else entry.NO_ENTRY)
        message = keys.domain("anchor") + claim.message(row.entry_seq, start.place)
        body = Body(
            claim.kind,
            claim.client_time,
            claim.instance_hash,
            claim.snapshot_hash,
            claim.commit.encode(),
            authority.sign(message),
            claim.metadata,
        )
        instruction = beginning._instruction(start, desk.payer.public, authority.public, body)
        raw, _ = signed(
            [instruction], desk.payer, [authority], it.chain.blockhash().hash, units=30_000
        )
        it.chain._addresses.add(start.place.account)
        it.chain.write(raw)
        it.chain.tick(40)
