"""Transactions are what Solana's own library reads; what breaks it becomes a named error."""

from __future__ import annotations

import os

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.transaction import Transaction

from anchor_service.native import contained
from anchor_service.transaction import signature_of, signed
from anchor_service.wallet import Wallet
from savepoint.core import limits
from savepoint.core.errors import LedgerRefusedError, LedgerUnreachableError

PROGRAM = Pubkey(os.urandom(32))
HASH = bytes(range(32))


def asking(*signers: Wallet, data: bytes = b"") -> Instruction:
    places = [AccountMeta(Pubkey(one.public), True, False) for one in signers]
    return Instruction(PROGRAM, data, places)


def test_payer_and_authority_may_be_two_keys() -> None:
    payer, authority = Wallet(os.urandom(32)), Wallet(os.urandom(32))
    made, signature = signed([asking(authority)], payer, [authority], HASH, units=9, price=7)
    read = Transaction.from_bytes(made)
    read.verify()
    assert [bytes(key) for key in read.message.signer_keys()] == [payer.public, authority.public]
    assert bytes(read.message.recent_blockhash) == HASH
    assert bytes(read.signatures[0]) == signature == signature_of(made)
    limit, price, last = read.message.instructions
    assert limit.data == b"\2" + (9).to_bytes(4, "little")
    assert price.data == b"\3" + (7).to_bytes(8, "little")
    assert read.message.program_id(2) == PROGRAM
    assert last.data == b""


def test_without_a_price_there_is_no_instruction_for_one() -> None:
    payer = Wallet(os.urandom(32))
    made, signature = signed([asking(payer)], payer, [payer], HASH, units=9)
    again, _ = signed([asking(payer)], payer, [], HASH, units=9)
    assert made == again, "the payer among the signers is one signer"
    assert len(Transaction.from_bytes(made).message.instructions) == 2
    assert signature_of(made) == signature


def test_a_missing_signer_is_named() -> None:
    payer, authority = Wallet(os.urandom(32)), Wallet(os.urandom(32))
    with pytest.raises(LedgerRefusedError, match=str(Pubkey(authority.public))):
        signed([asking(authority)], payer, [], HASH, units=9)


def test_what_fits_no_packet_is_refused() -> None:
    payer = Wallet(os.urandom(32))
    with pytest.raises(LedgerRefusedError, match=str(limits.TRANSACTION_BYTES)):
        signed([asking(payer, data=bytes(1300))], payer, [], HASH, units=9)


def test_a_panic_of_the_library_is_contained() -> None:
    payer = Wallet(os.urandom(32))
    places = [AccountMeta(Pubkey(os.urandom(32)), True, True) for _ in range(300)]
    with pytest.raises(LedgerRefusedError, match="AccountIndexOverflow"):
        signed([Instruction(PROGRAM, b"", places)], payer, [], HASH, units=9)


@pytest.mark.parametrize(("units", "blockhash"), [(-1, HASH), (2**32, HASH), (9, b"short")])
def test_values_that_it_does_not_take_are_refused(units: int, blockhash: bytes) -> None:
    payer = Wallet(os.urandom(32))
    with pytest.raises(LedgerRefusedError):
        signed([asking(payer)], payer, [], blockhash, units=units)


@pytest.mark.parametrize("passing", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_what_is_no_panic_passes(passing: type[BaseException]) -> None:
    with pytest.raises(passing), contained("x", LedgerUnreachableError):
        raise passing


@pytest.mark.parametrize("data", [b"", b"\1", b"\0" + bytes(100), b"\1" * 65, b"\xff" + bytes(900)])
def test_what_is_no_transaction_has_no_signature(data: bytes) -> None:
    with pytest.raises(LedgerRefusedError):
        signature_of(data)
