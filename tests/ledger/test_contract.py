"""What holds for every ledger: embedded, a facade of a node, devnet's path, the real validator.

The real one decides: where it and another differ, the other is wrong.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from anchor_service.deploy import deployed_bytes
from anchor_service.ledgers.embedded import PROGRAM
from anchor_service.program.instructions import elf
from anchor_service.transaction import signed
from savepoint.core import entry, limits
from savepoint.core.deployed import trimmed
from savepoint.core.entry import ACCOUNT_BYTES, NO_ENTRY, Place
from savepoint.core.errors import LedgerRefusedError, LedgerUnreachableError, RejectedError
from tests.ledger.entries import SOL, Author, fund, is_at, land, read, send, until

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger
    from tests.ledger.entries import Sent


def test_a_ledger_says_who_it_is(ledger: Ledger) -> None:
    assert len(ledger.genesis()) == 32
    assert ledger.genesis() == ledger.genesis()
    assert ledger.endpoints == 1
    assert ledger.is_public == (ledger.name == "devnet")


def test_an_entry_becomes_final_as_it_was_sent(ledger: Ledger, author: Author) -> None:
    sent = send(ledger, author)
    until(lambda: is_at(ledger, sent, "finalized"))
    landing = ledger.landing(sent.signature, history=True)
    assert landing is not None
    assert landing.error is None
    state = ledger.account(author.account, "finalized", landing.slot)
    assert state is not None
    assert (state.owner, state.executable) == (PROGRAM, False)
    assert state.slot >= landing.slot
    assert state.lamports == ledger.rent(ACCOUNT_BYTES)
    account = entry.parse(state.data)
    assert (account.seq, account.slot, account.retired) == (1, landing.slot, False)
    assert account.claim == author.claim(1, NO_ENTRY)
    assert account.hash == author.claim(1, NO_ENTRY).hash(1)
    place = Place(ledger.genesis(), PROGRAM, author.account)
    assert account.is_signed_by(author.wallet.public, place)


def test_an_entry_follows_the_one_that_it_names(ledger: Ledger, author: Author) -> None:
    land(ledger, author)
    first = read(ledger, author)
    assert first is not None
    land(ledger, author, 2, first.hash)
    second = read(ledger, author)
    assert second is not None
    assert (second.seq, second.metadata.prev) == (2, first.hash)
    assert second.slot > first.slot
    assert second.chain_time >= first.chain_time


def test_an_entry_in_the_place_of_another_is_refused(ledger: Ledger, author: Author) -> None:
    land(ledger, author)
    first = read(ledger, author)
    with pytest.raises(RejectedError) as again:
        send(ledger, author)
    assert again.value.failure is not None
    assert again.value.failure[:2] == ("program", 1007)
    with pytest.raises(RejectedError) as stale:
        send(ledger, author, 3, author.claim(2, NO_ENTRY).hash(2))
    assert stale.value.failure is not None
    assert stale.value.failure[:2] == ("program", 1018)
    assert stale.value.failure.detail.startswith("WrongSequence: ")
    assert read(ledger, author) == first


def test_the_same_bytes_land_once(ledger: Ledger, author: Author) -> None:
    sent = land(ledger, author)
    first = read(ledger, author)
    for _ in range(3):
        assert _resent(ledger, sent) in ("taken", "duplicate")  # as a node likes
    until(lambda: is_at(ledger, sent, "finalized"))
    assert read(ledger, author, "finalized") == first


def test_a_blockhash_of_another_cluster_is_refused(ledger: Ledger, author: Author) -> None:
    instruction = author.instruction(ledger.genesis(), 1, NO_ENTRY)
    blockhash = ledger.blockhash()._replace(hash=os.urandom(32))
    foreign, signature = signed([instruction], author.wallet, [], blockhash.hash, units=25_000)
    with pytest.raises(RejectedError) as refused:
        ledger.send(foreign, blockhash)
    assert refused.value.failure is not None
    assert refused.value.failure.kind == "blockhash"
    assert ledger.landing(signature, history=True) is None


def test_a_changed_transaction_is_refused(ledger: Ledger, author: Author) -> None:
    instruction = author.instruction(ledger.genesis(), 1, NO_ENTRY)
    blockhash = ledger.blockhash()
    good, _ = signed([instruction], author.wallet, [], blockhash.hash, units=25_000)
    changed = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(LedgerRefusedError):
        ledger.send(changed, blockhash)
    with pytest.raises(LedgerRefusedError):
        ledger.send(b"\1" + bytes(100), blockhash)
    with pytest.raises(LedgerRefusedError):
        ledger.send(b"", blockhash)
    assert read(ledger, author) is None


def test_what_nobody_has_seen_is_none(ledger: Ledger) -> None:
    assert ledger.landing(os.urandom(64), history=False) is None
    assert ledger.landing(os.urandom(64), history=True) is None
    assert ledger.account(os.urandom(32), "confirmed") is None
    assert ledger.account(os.urandom(32), "finalized") is None


def test_many_accounts_come_in_their_order(ledger: Ledger, author: Author) -> None:
    land(ledger, author)
    nobody = os.urandom(32)
    found = ledger.accounts([nobody, author.account, PROGRAM, nobody], "confirmed")
    assert [one and one.owner for one in found[:2]] == [None, PROGRAM]
    assert found[2] is not None
    assert found[2].executable
    assert found[3] is None


def test_the_program_is_the_shipped_one(ledger: Ledger) -> None:
    found = deployed_bytes(ledger, PROGRAM)
    assert found.elf == trimmed(elf())


def test_a_read_does_not_go_behind_a_slot(ledger: Ledger) -> None:
    ahead = ledger.blockhash().slot + 10**9
    with pytest.raises(LedgerUnreachableError):
        ledger.account(os.urandom(32), "confirmed", ahead)


def test_a_blockhash_is_good_for_some_heights(ledger: Ledger) -> None:
    blockhash = ledger.blockhash()
    height = ledger.height()
    assert height <= blockhash.last_valid_height
    assert 0 < blockhash.last_valid_height - height <= limits.BLOCKHASH_HEIGHTS
    assert blockhash.slot > 0


def test_a_faucet_gives(ledger: Ledger) -> None:
    someone = Author()
    fund(ledger, someone, 20 * SOL)
    assert ledger.balance(someone.wallet.public) >= 20 * SOL


def _resent(ledger: Ledger, sent: Sent) -> str:
    try:
        ledger.send(sent.transaction, ledger.blockhash())
    except RejectedError as refused:
        return refused.failure.kind if refused.failure else "?"
    return "taken"
