"""VERIFY-29 and VERIFY-30, and what a proof shows of the other rules: each attack by its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from savepoint.core import proof, verify_chain, verify_proof
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.ledger import Failure, Landing
from savepoint.core.proof import Transaction
from savepoint.core.verdicts import Verdict, worst
from savepoint.core.verify_chain import Anchor, Seen
from tests.conformance.vectors import load
from tests.verify import anchored

if TYPE_CHECKING:
    from savepoint.core.entry import Account
    from savepoint.core.proof import Proof

GIVEN = {one.name: proof.parse(one.data) for one in load("proof.json") if one.expect == "ok"}
WHOLE = GIVEN["whole"]
WHOLE_BYTES = WHOLE.to_bytes()


def _read(given: Proof = WHOLE) -> Account:
    read = verify_proof.offline(given).account
    assert read is not None
    return read


def _failed(given: Proof) -> dict[str, Verdict]:
    found = verify_proof.offline(given).findings
    return {one.rule: one.verdict for one in found if one.result != "pass"}


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_good_proofs_hold(name: str) -> None:
    found = verify_proof.offline(GIVEN[name])
    assert worst(one.verdict for one in found.findings) is Verdict.VERIFIED
    assert {one.rule for one in found.findings} >= {"VERIFY-3", "VERIFY-18", "VERIFY-25"}


def test_verify_29_a_transaction_that_is_not_about_this_entry() -> None:
    other = GIVEN["of_a_retired_key"].transaction
    assert _failed(WHOLE._replace(transaction=other)) == {"VERIFY-29": Verdict.TAMPERED}


@settings(max_examples=80)
@given(st.data())
def test_verify_29_any_changed_byte_of_the_transaction(data: st.DataObject) -> None:
    assert WHOLE.transaction is not None
    raw = bytearray(WHOLE.transaction.raw)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    changed = WHOLE._replace(transaction=Transaction(bytes(raw), 1))
    assert _failed(changed) == {"VERIFY-29": Verdict.TAMPERED}


@settings(max_examples=80)
@given(st.binary(max_size=300))
def test_verify_29_any_bytes_as_a_transaction(raw: bytes) -> None:
    changed = WHOLE._replace(transaction=Transaction(raw, 1))
    assert _failed(changed) == {"VERIFY-29": Verdict.TAMPERED}


def _anchor(account: Account | None) -> Anchor:
    return Anchor((), bytes(32), account, None, "")


def _online(now: Account | None, landing: Landing | None) -> Verdict:
    return verify_proof.online(_read(), _anchor(now), landing, "devnet").verdict


def test_verify_30_an_entry_that_was_never_anchored() -> None:
    read = _read()
    other = read._replace(seq=read.seq + 5)
    final = Landing(9, "finalized", None)
    assert _online(read, None) is Verdict.VERIFIED
    assert _online(other, final) is Verdict.VERIFIED
    for landing in (
        None,
        final._replace(level="confirmed"),
        final._replace(error=Failure("program", 1018, "")),
    ):
        assert _online(other, landing) is Verdict.UNVERIFIABLE
        assert _online(None, landing) is Verdict.UNVERIFIABLE


def test_verify_30_an_entry_that_is_the_one_before() -> None:
    read = _read()
    told = anchored.claim(anchored.Index.born().add().last, prev=read.hash)
    assert _online(anchored.account(told, read.seq + 1), None) is Verdict.VERIFIED
    assert _online(anchored.account(told, read.seq + 2), None) is Verdict.UNVERIFIABLE


def test_the_ledger_must_not_be_older_than_the_proof() -> None:
    read = _read()
    seen = verify_proof.seen_of(read)
    assert seen == Seen(read.seq, read.hash, ())
    who = verify_proof.who_of(WHOLE)
    gone = anchored.answer(None, genesis=WHOLE.genesis)
    found = verify_chain.account(who, gone, seen, anchored.ELF)
    assert worst(one.verdict for one in found.findings) is Verdict.ROLLED_BACK


@settings(max_examples=150)
@given(st.integers(0, len(WHOLE_BYTES) - 1), st.integers(0, 7))
def test_any_flipped_bit_of_a_proof_is_noticed(at: int, bit: int) -> None:
    data = bytearray(WHOLE_BYTES)
    data[at] ^= 1 << bit
    try:
        given_ = proof.parse(bytes(data))
    except SavepointError:
        return
    verdict = worst(one.verdict for one in verify_proof.offline(given_).findings)
    assert verdict is not Verdict.VERIFIED or _without_what_nobody_signs(given_) == (
        _without_what_nobody_signs(WHOLE)
    )


def _without_what_nobody_signs(given_: Proof) -> Proof:
    """The ledger's name, the slot of the transaction, and what the program wrote of its own."""
    data = given_.account_data
    account = data[:12] + data[20:24] + data[32:]
    sent = given_.transaction._replace(slot=0) if given_.transaction else None
    return given_._replace(ledger="", account_data=account, transaction=sent)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_as_a_proof(data: bytes) -> None:
    with pytest.raises(MalformedError):
        proof.parse(data)


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_a_proof_is_read_as_it_is_written(name: str) -> None:
    given_ = GIVEN[name]
    assert proof.parse(given_.to_bytes()) == given_
