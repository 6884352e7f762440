"""Real entries for tests of ledgers: their instructions, transactions and accounts."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from solders.pubkey import Pubkey

from anchor_service.ledgers.embedded import PROGRAM
from anchor_service.program import instructions
from anchor_service.transaction import signed
from anchor_service.wallet import Wallet
from savepoint.core import accounts, entry, keys
from savepoint.core.entry import NO_ENTRY, SAVEPOINT, Claim, Metadata, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from solders.instruction import Instruction

    from savepoint.core.ledger import Ledger

SOL = 10**9  # lamports
_PATIENCE = 50  # seconds; finality takes 3 at 8 ticks a slot on an idle machine


class Author:
    """A key that writes entries of one instance, and pays for them."""

    def __init__(self, seed: bytes | None = None) -> None:
        self.seed = seed or os.urandom(32)
        self.wallet = Wallet(self.seed)
        self.instance_hash = hashlib.sha256(self.wallet.public).digest()
        self.account, self.bump = accounts.address(self.instance_hash, self.wallet.public, PROGRAM)

    def claim(self, seq: int, prev: str) -> Claim:
        metadata = Metadata(prev, "ab" * 32, seq).to_bytes()
        snapshot = hashlib.sha256(seq.to_bytes(8, "little")).digest()
        return Claim(SAVEPOINT, 1_790_000_000, self.instance_hash, snapshot, "c" * 40, metadata)

    def instruction(self, genesis: bytes, seq: int, prev: str) -> Instruction:
        """Entry `seq`, behind the entry with the hash `prev`."""
        claim = self.claim(seq, prev)
        message = claim.message(seq, Place(genesis, PROGRAM, self.account))
        body = instructions.Body(
            claim.kind,
            claim.client_time,
            claim.instance_hash,
            claim.snapshot_hash,
            claim.commit.encode(),
            keys.sign(self.seed, "anchor", message),
            claim.metadata,
        )
        program, key, account = map(Pubkey, (PROGRAM, self.wallet.public, self.account))
        if prev == NO_ENTRY:
            return instructions.initialise(program, key, key, account, self.bump, body)
        return instructions.append(program, key, account, seq - 1, bytes.fromhex(prev), body)


class Sent(NamedTuple):
    """A transaction that was handed in."""

    transaction: bytes
    signature: bytes


def send(ledger: Ledger, author: Author, seq: int = 1, prev: str = NO_ENTRY) -> Sent:
    """Hand in an entry."""
    blockhash = ledger.blockhash()
    instruction = author.instruction(ledger.genesis(), seq, prev)
    made = Sent(*signed([instruction], author.wallet, [], blockhash.hash, units=25_000))
    ledger.send(made.transaction, blockhash)
    return made


def land(ledger: Ledger, author: Author, seq: int = 1, prev: str = NO_ENTRY) -> Sent:
    """Hand in an entry, and wait until it is confirmed."""
    sent = send(ledger, author, seq, prev)
    until(lambda: is_at(ledger, sent, "confirmed", "finalized"))
    return sent


def is_at(ledger: Ledger, sent: Sent, *levels: str) -> bool:
    landing = ledger.landing(sent.signature, history=False)
    return landing is not None and landing.level in levels


def read(ledger: Ledger, author: Author, level: str = "confirmed") -> entry.Account | None:
    """The account as it is."""
    state = ledger.account(author.account, level)
    return state and entry.parse(state.data)


def fund(ledger: Ledger, author: Author, lamports: int = 10 * SOL) -> None:
    """As a faucet does."""
    before = ledger.balance(author.wallet.public)
    ledger.airdrop(author.wallet.public, lamports)
    until(lambda: ledger.balance(author.wallet.public) >= max(before, lamports))


def until(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
