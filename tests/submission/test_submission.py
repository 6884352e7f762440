"""An entry gets onto the ledger once, whatever is answered meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchor_service import beginning, queue, targets
from anchor_service.queue import Queue
from savepoint.core import entry, limits, spelling
from savepoint.core.errors import (
    DiskError,
    FundsError,
    LedgerRefusedError,
    LedgerUnreachableError,
    RejectedError,
)
from savepoint.core.ledger import Failure
from savepoint.store import durable
from tests.submission.scene import Anchoring, Landed


def test_newest_savepoint_is_anchored_and_covers_the_earlier(it: Anchoring) -> None:
    newest = it.save()
    it.finish()
    it.check_covered(newest)
    assert it.states() == [(newest.seq, "VERIFIED")]
    account = it.account()
    assert (account.seq, account.claim.kind) == (1, entry.SAVEPOINT)
    assert account.claim.commit == it.layer.tip()
    assert account.claim.snapshot_hash.hex() == newest.snapshot_hash
    assert account.is_signed_by(it.authority(), _place(it))


def test_next_entry_follows_the_one_before(it: Anchoring) -> None:
    it.finish()
    first = it.account()
    newest = it.save()
    it.finish()
    it.check_covered(newest)
    assert (it.account().seq, it.account().metadata.prev) == (2, first.hash)


def test_states_in_their_order(it: Anchoring) -> None:
    seen = []
    while it.step() is not None:
        seen.append(it.row().state)
        it.chain.tick()
    seen.append(it.row().state)
    assert list(dict.fromkeys(seen)) == ["SENT", "SEEN", "LANDED", "VERIFIED"]


def test_it_is_on_disk_before_it_is_sent(it: Anchoring) -> None:
    found = []
    it.chain.fails = lambda call: found.append(it.states()) if call == "send" else None
    it.step()
    assert found == [[(3, "PREPARED")]]
    assert it.row().raw == it.chain.sent[0]


def test_what_is_not_committed_is_not_anchored(it: Anchoring) -> None:
    committed = it.layer.built.records()[-1]
    it.layer.save(b'{"message": 7}\n')
    it.finish()
    it.check_covered(committed)


def test_nothing_is_owed_without_a_commit(tmp_path: Path) -> None:
    bare = Anchoring(tmp_path)
    bare.layer.save(b'{"message": 7}\n')
    assert bare.step() is None
    assert bare.chain.sent == []


@pytest.mark.parametrize("call", ["genesis", "accounts", "rent", "blockhash", "send", "landing"])
def test_silence_changes_no_state(it: Anchoring, call: str) -> None:
    """Overload, 429 and time-outs are no answer."""
    if call == "landing":
        it.step()
    before = [one._replace(changed=0) for one in it.rows()]

    def fail(one: str) -> None:
        if one == call:
            raise LedgerUnreachableError("429")

    it.chain.fails = fail
    with pytest.raises(LedgerUnreachableError) as raised:
        it.step()
    assert raised.value.retry
    after = [one._replace(changed=0) for one in it.rows()]
    assert after == before or (call, it.states()) == ("send", [(3, "PREPARED")])
    it.chain.fails = lambda _: None
    it.finish()
    it.check_covered(it.layer.built.records()[-1])
    assert len(set(it.chain.sent)) == 1


def test_the_same_bytes_are_sent_until_they_land(it: Anchoring) -> None:
    """agave#596, sipher#296: nodes drop silently."""
    it.chain.drops = 4
    it.finish(blocks=10)
    assert len(it.chain.sent) == 5
    assert len(set(it.chain.sent)) == 1
    assert it.row().attempt == 1


def test_a_new_transaction_only_when_the_old_can_no_longer_land(it: Anchoring) -> None:
    """Its last block is behind a finalized one: until then nothing is signed anew."""
    it.chain.drops = 10**6
    it.step()
    last = it.row().last_valid_height
    with pytest.raises(LedgerUnreachableError, match="attempt 1 expired"):
        it.finish(blocks=10)
    assert it.chain.now - it.chain.lag >= last
    assert len(set(it.chain.sent)) == 1
    it.chain.drops = 0
    it.finish()
    it.check_covered(it.layer.built.records()[-1])
    assert (it.row().attempt, len(set(it.chain.sent))) == (2, 2)


@pytest.mark.parametrize("lag", [140, 160])
def test_finality_that_trails_far_behind_delays_and_repeats_nothing(
    tmp_path: Path, lag: int
) -> None:
    """bloom#231: everything expired before it was sent, for ever. Here hash, last height and height
    are of one level, whatever finality does.
    """
    it = Anchoring(tmp_path, lag)
    newest = it.save()
    it.finish(rounds=100)
    it.check_covered(newest)
    assert (it.row().attempt, len(set(it.chain.sent))) == (1, 1)


@pytest.mark.parametrize("lag", [140, 160])
def test_finality_that_trails_and_drops_are_bounded_attempts(tmp_path: Path, lag: int) -> None:
    it = Anchoring(tmp_path, lag)
    newest = it.save()
    it.chain.drops = 10**6
    for number in (1, 2, 3):
        with pytest.raises(LedgerUnreachableError, match=f"attempt {number} expired") as raised:
            it.finish(rounds=200, blocks=20)
        assert raised.value.retry  # with pauses that grow: the outbox counts these failures
        assert it.row().attempt == number
    assert len(set(it.chain.sent)) == 3
    it.chain.drops = 0
    it.finish(rounds=200)
    it.check_covered(newest)


def test_landed_though_sending_timed_out(it: Anchoring) -> None:
    """aptos-wallet-adapter#757: the bytes landed, and nobody knew their signature any more."""

    def fail(call: str) -> None:
        if call.startswith("landing"):
            raise LedgerUnreachableError("timed out")

    it.chain.fails = fail
    with pytest.raises(LedgerUnreachableError):
        it.step()
    it.chain.tick(200)  # it lands, is finalized, and its blockhash is long gone
    it.restart()
    it.chain.fails = lambda _: None
    assert it.step() is None
    it.check_covered(it.layer.built.records()[-1])
    assert len(it.chain.sent) == 1


def test_that_it_is_known_already_is_no_failure(it: Anchoring) -> None:
    """drift#917, helius-sdk#176: AlreadyProcessed was taken for a failure."""
    it.step()
    it.chain.tick()
    it.force(queue.PREPARED)
    it.finish()
    assert it.row().state == queue.VERIFIED
    assert len(set(it.chain.sent)) == 1


def test_an_empty_payer_pauses_and_goes_on(it: Anchoring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EMBEDDED_LAMPORTS", 10_000)
    with pytest.raises(FundsError, match="has 10000 lamports, and needs") as raised:
        it.step()
    assert not raised.value.retry
    assert (it.row().state, it.row().raw) == (queue.PAUSED_FUNDS, b"")
    assert it.chain.sent == []
    with it.desk() as desk:
        it.chain._inner.airdrop(desk.payer.public, 10**9)
    it.finish()
    it.check_covered(it.layer.built.records()[-1])


def test_a_payer_that_becomes_empty_meanwhile(it: Anchoring) -> None:
    it.chain.refuses = Failure("funds", None, "InsufficientFundsForFee")
    for _ in range(3):
        with pytest.raises(FundsError, match="InsufficientFundsForFee"):
            it.step()
        assert it.row().state == queue.PAUSED_FUNDS
    it.chain.refuses = None
    it.finish()
    assert (len(set(it.chain.sent)), it.row().attempt) == (1, 1)
    it.check_covered(it.layer.built.records()[-1])


def test_a_payer_that_stays_empty_until_it_expires(it: Anchoring) -> None:
    it.chain.refuses = Failure("funds", None, "InsufficientFundsForFee")
    with pytest.raises(FundsError):
        it.step()
    it.chain.tick(300)
    it.chain.refuses = None
    with pytest.raises(LedgerUnreachableError, match="expired"):
        it.finish()
    it.finish()
    it.check_covered(it.layer.built.records()[-1])


def test_the_cap_of_a_day(it: Anchoring) -> None:
    it.finish()
    it.save()
    it.choose(spend=it.row().spent + 9_999)
    with pytest.raises(FundsError, match="cap"):
        it.step()
    it.choose(spend=it.rows()[0].spent + 10_000)
    it.finish()
    assert sum(one.spent for one in it.rows()) == it.rows()[0].spent + 10_000


def test_spent_lamports_are_those_of_the_ledger(it: Anchoring) -> None:
    with it.desk() as desk:
        it.chain._inner.airdrop(desk.payer.public, 3 * limits.EMBEDDED_LAMPORTS)
        before = it.chain._inner.account(desk.payer.public, "confirmed")
    it.finish()
    it.save()
    it.finish()
    with it.desk() as desk:
        after = it.chain._inner.account(desk.payer.public, "confirmed")
    assert before is not None
    assert after is not None
    assert before.lamports - after.lamports == sum(one.spent for one in it.rows())


def test_what_the_ledger_refuses_waits_for_its_owner(it: Anchoring) -> None:
    it.chain.refuses = Failure("other", None, "ProgramAccountNotFound")
    with pytest.raises(RejectedError, match="ProgramAccountNotFound") as raised:
        it.step()
    assert not raised.value.retry
    it.chain.refuses = None
    it.finish()
    it.check_covered(it.layer.built.records()[-1])


def test_finalized_is_not_believed_without_the_account(it: Anchoring) -> None:
    """solana#35485: a signature is confirmed for a transaction that does not exist."""
    it.chain.drops = 10**6
    it.step()
    it.chain._landed[it.row().signature] = Landed(it.chain.now, None)
    it.chain.tick(60)
    for _ in range(3):
        with pytest.raises(LedgerUnreachableError, match="does not hold it"):
            it.step()
    assert it.row().state in (queue.SENT, queue.LANDED)
    assert it.seen() is None


def test_the_mainnet_needs_the_owners_word(it: Anchoring, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its genesis hash: a URL leads there too."""
    from anchor_service.ledgers.clusters import PUBLIC

    genesis = next(one for one, name in PUBLIC.items() if name == "mainnet-beta")
    monkeypatch.setattr(it.chain, "genesis", lambda: genesis)
    with pytest.raises(LedgerRefusedError, match="cost real money"):
        it.step()
    it.choose(confirmed=spelling.base58(genesis))
    with pytest.raises(LedgerRefusedError, match="cost real money"):  # and a cap
        it.step()
    it.choose(spend=10**9)
    it.step()
    assert len(it.chain.sent) == 1


def test_one_cluster_by_another_name(it: Anchoring) -> None:
    it.step()
    it.choose(ledger="localnet")
    it.finish()
    assert [(one.ledger, one.state) for one in it.rows()] == [("localnet", "VERIFIED")]
    assert len(set(it.chain.sent)) == 1


def test_a_prefunded_account_is_cheaper(it: Anchoring) -> None:
    with it.desk() as desk:
        target = targets.newest(it.paths, desk.repo, 0)
        assert target is not None
        start = beginning._start(desk, target, it.chain.genesis())
    it.chain._addresses.add(start.place.account)
    it.chain._inner.airdrop(start.place.account, 1_000_000)
    it.chain.tick()
    it.finish()
    full = it.chain.rent(entry.ACCOUNT_BYTES) + 10_000
    assert it.row().spent == full - 1_000_000


def test_an_entry_needs_few_calls(it: Anchoring) -> None:
    """Besides the looks whether it has landed and is final."""
    it.finish()
    it.save()
    it.chain.calls.clear()
    it.finish()
    assert len([one for one in it.chain.calls if "landing" not in one]) <= 6


def test_two_rows_of_one_instance_cannot_be_under_way(it: Anchoring) -> None:
    it.step()
    with Queue(it.store) as box, pytest.raises(Exception, match="UNIQUE"):
        box.put(it.row()._replace(record="0" * 64))


def test_who_asks_meanwhile_sees_what_is_committed(it: Anchoring) -> None:
    assert queue.rows(it.store, it.paths.slug) == []
    it.step()
    Path(it.store.outbox).write_bytes(b"no database")
    for ending in ("-wal", "-shm"):
        durable.remove(it.store.outbox + ending)
    with pytest.raises(DiskError, match="not a database"):  # "nothing was anchored", it said
        queue.rows(it.store, it.paths.slug)


def _place(it: Anchoring) -> entry.Place:
    with it.desk() as desk:
        return desk.place(it.row())
