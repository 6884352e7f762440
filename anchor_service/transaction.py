"""Builds and signs transactions; what a signed one's signature is, without any library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.hash import Hash
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import Transaction

from anchor_service.native import contained
from savepoint.core import keys, limits
from savepoint.core.errors import LedgerRefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solders.instruction import Instruction

    from anchor_service.wallet import Wallet


def signed(
    instructions: Sequence[Instruction],
    payer: Wallet,
    signers: Sequence[Wallet],
    blockhash: bytes,
    *,
    units: int,
    price: int = 0,
) -> tuple[bytes, bytes]:
    """(bytes of the transaction, its signature of 64 bytes), a legacy message: every node takes it.

    signers: besides the payer, in any order; the payer may be among them. units: compute units
    that are asked for; price: micro-lamports for each of them, on top of the fee for signatures.
    Raises LedgerRefusedError: a signer is missing, or it is longer than a packet.
    """
    with contained("the transaction cannot be built"):
        budget = [set_compute_unit_limit(units)]
        if price:
            budget.append(set_compute_unit_price(price))
        message = Message.new_with_blockhash(
            [*budget, *instructions], Pubkey(payer.public), Hash(blockhash)
        )
        by_key = {wallet.public: wallet for wallet in (payer, *signers)}
        needed = message.account_keys[: message.header.num_required_signatures]
        missing = [str(key) for key in needed if bytes(key) not in by_key]
        if missing:
            raise LedgerRefusedError(f"no key here signs for {', '.join(missing)}")
        data = bytes(message)
        signatures = [Signature(by_key[bytes(key)].sign(data)) for key in needed]
        transaction = bytes(Transaction.populate(message, signatures))
    if len(transaction) > limits.TRANSACTION_BYTES:
        raise LedgerRefusedError(
            f"a transaction of {len(transaction)} bytes; {limits.TRANSACTION_BYTES} is the most"
        )
    return transaction, bytes(signatures[0])


def signature_of(transaction: bytes) -> bytes:
    """The 64 bytes by which a cluster calls this transaction: the payer's signature, which comes
    first. Raises LedgerRefusedError for what is too short to be one.
    """
    # The count of signatures is one byte below 128, and more than 12 of them fit no packet.
    if len(transaction) <= 1 + keys.SIGNATURE_BYTES or not 1 <= transaction[0] <= 12:
        raise LedgerRefusedError("these bytes are no signed transaction")
    return transaction[1 : 1 + keys.SIGNATURE_BYTES]
