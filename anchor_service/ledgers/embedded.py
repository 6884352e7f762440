"""The embedded ledger: the shipped program in LiteSVM, its accounts in the store's ledger.db.

A machine is made anew for each transaction (6 ms) and given the accounts that it names; so nothing
lives in memory, and a process may die anywhere. A transaction is acknowledged when its accounts and
its row in the log are committed together. Slots count transactions: a blockhash does not expire
while nothing happens. What landed is finalized.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING

from solders.account import Account
from solders.clock import Clock
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

from anchor_service.failures import classify
from anchor_service.ledgers import database
from anchor_service.native import contained
from anchor_service.program.instructions import elf
from anchor_service.transaction import signature_of
from savepoint.core import accounts, limits
from savepoint.core.errors import LedgerRefusedError, LedgerUnreachableError, RejectedError
from savepoint.core.ledger import AccountState, Blockhash, Failure, Landing
from savepoint.core.verify_chain import FINALIZED
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

# Under which id the shipped program runs here. Nobody has a key to it.
PROGRAM = hashlib.sha256(b"savepoint/embedded-program/v1").digest()

_SYSTEM_PROGRAM = bytes(32)


class EmbeddedLedger:
    """One store's. Several processes may have it open; one at a time changes it."""

    name = EMBEDDED
    is_public = False
    endpoints = 1

    def __init__(self, path: str, program: bytes = PROGRAM) -> None:
        self._path = path
        self._program = program

    def bound(self, deadline: float) -> None:
        """Nobody is asked: a call waits for whoever writes the file, LOCK_WAIT_SECONDS at most."""

    def genesis(self) -> bytes:
        """32 random bytes, made with the file."""
        with database.reading(self._path) as db:
            return database.cluster(db).genesis

    def account(
        self,
        address: bytes,
        level: str,  # noqa: ARG002  # the protocol's: what landed is finalized
        not_before: int = 0,
    ) -> AccountState | None:
        """Of any level the same."""
        return self._accounts([address], not_before)[0]

    def accounts(
        self,
        addresses: Sequence[bytes],
        level: str,  # noqa: ARG002  # as above
    ) -> list[AccountState | None]:
        """As `account`, all of one moment."""
        return self._accounts(addresses, 0)

    def blockhash(self) -> Blockhash:
        """Good for the next transactions, whenever they come."""
        with database.reading(self._path) as db:
            now = database.cluster(db)
        return Blockhash(_hash(now, now.slot), now.slot + limits.BLOCKHASH_HEIGHTS, now.slot)

    def height(self) -> int:
        """As many blocks as slots."""
        with database.reading(self._path) as db:
            return database.cluster(db).slot

    def rent(self, size: int) -> int:
        """By the rent of the machine."""
        with contained("rent"):
            return _machine().minimum_balance_for_rent_exemption(size)

    def balance(self, address: bytes) -> int:
        """What this key could pay with: whoever pays here is given what is missing."""
        with database.reading(self._path) as db:
            kept = database.account(db, address)
        return max(kept.lamports if kept else 0, limits.EMBEDDED_LAMPORTS)

    def send(
        self,
        transaction: bytes,
        blockhash: Blockhash,  # noqa: ARG002  # the protocol's: the bytes name it as well
    ) -> None:
        """Runs it. Behind this it has landed, durably; after an error nothing has happened."""
        signature = signature_of(transaction)
        with database.changing(self._path) as db:
            before = database.cluster(db)
            if database.landed(db, signature) is not None:
                raise _rejected(Failure("duplicate", None, "AlreadyProcessed"))
            # A clock that was set back does not turn back the chain's.
            now = database.Cluster(
                before.genesis, before.slot + 1, max(before.time, int(time.time()))
            )
            with contained("the transaction cannot be run"):
                self._run(db, transaction, now)
            database.log(db, signature, transaction, slot=now.slot, now=now.time)

    def landing(
        self,
        signature: bytes,
        *,
        history: bool,  # noqa: ARG002  # the protocol's: the log forgets nothing
    ) -> Landing | None:
        """From the log."""
        with database.reading(self._path) as db:
            slot = database.landed(db, signature)
        return None if slot is None else Landing(slot, FINALIZED, None)

    def airdrop(self, address: bytes, lamports: int) -> None:
        """As much as is asked for."""
        with database.changing(self._path) as db:
            kept = database.account(db, address) or database.Kept(_SYSTEM_PROGRAM, 0, b"")
            total = kept.lamports + lamports
            if not 0 < lamports <= total <= limits.LEDGER_LAMPORTS:
                raise LedgerRefusedError(f"{lamports} lamports are not given away")
            database.put(db, address, kept._replace(lamports=total))

    def _accounts(self, addresses: Sequence[bytes], not_before: int) -> list[AccountState | None]:
        with database.reading(self._path) as db:
            slot = database.cluster(db).slot
            found = [database.account(db, address) for address in addresses]
        if slot < not_before:
            raise LedgerUnreachableError(f"{self._path} is at slot {slot}, before {not_before}")
        programs = {self._program, accounts.program_data(self._program)}
        return [
            self._program_state(address, slot)
            if address in programs
            else kept and AccountState(*kept, executable=False, slot=slot)
            for address, kept in zip(addresses, found, strict=True)
        ]

    def _program_state(self, address: bytes, slot: int) -> AccountState:
        """The program, or its data, as the machine has it: without anybody who may upgrade it."""
        with contained("the program cannot be loaded"):
            state = self._loaded().get_account(Pubkey(address))
        assert state is not None  # noqa: S101  # the machine was given it
        return AccountState(bytes(state.owner), state.lamports, state.data, state.executable, slot)

    def _loaded(self) -> LiteSVM:
        machine = _machine()
        machine.add_program(Pubkey(self._program), elf())
        return machine

    def _run(self, db: sqlite3.Connection, transaction: bytes, now: database.Cluster) -> None:
        """Raises RejectedError, which also takes back what was written."""
        parsed = VersionedTransaction.from_bytes(transaction)
        if not _is_recent(bytes(parsed.message.recent_blockhash), now):
            raise _rejected(Failure("blockhash", None, "BlockhashNotFound"))
        keys = parsed.message.account_keys
        machine = self._loaded()
        machine.set_clock(Clock(now.slot, 0, 0, 0, now.time))
        for key in keys:
            kept = database.account(db, bytes(key))
            if key == keys[0]:  # who pays
                kept = _funded(kept)
            if kept is not None:
                machine.set_account(key, Account(kept.lamports, kept.data, Pubkey(kept.owner)))
        result = machine.send_transaction(parsed)
        if isinstance(result, FailedTransactionMetadata):
            raise _rejected(classify(json.loads(result.to_json())["err"]))
        for key in keys:
            self._keep(db, key, machine.get_account(key))

    def _keep(self, db: sqlite3.Connection, key: Pubkey, state: Account | None) -> None:
        if state is None or not state.lamports:
            database.put(db, bytes(key), None)
        elif bytes(state.owner) in (_SYSTEM_PROGRAM, self._program):  # others do not change here
            kept = database.Kept(bytes(state.owner), state.lamports, state.data)
            database.put(db, bytes(key), kept)


def _machine() -> LiteSVM:
    # Blockhashes and resent transactions are judged here: a machine that is new knows none.
    return LiteSVM().with_blockhash_check(False).with_transaction_history(0)  # noqa: FBT003  # not ours


def _funded(kept: database.Kept | None) -> database.Kept:
    kept = kept or database.Kept(_SYSTEM_PROGRAM, 0, b"")
    return kept._replace(lamports=max(kept.lamports, limits.EMBEDDED_LAMPORTS))


def _hash(now: database.Cluster, slot: int) -> bytes:
    domain = b"savepoint/embedded-blockhash/v1\0"
    return hashlib.sha256(domain + now.genesis + slot.to_bytes(8, "little")).digest()


def _is_recent(named: bytes, now: database.Cluster) -> bool:
    first = max(1, now.slot - limits.BLOCKHASH_HEIGHTS)
    return any(named == _hash(now, slot) for slot in range(first, now.slot))


def _rejected(failure: Failure) -> RejectedError:
    return RejectedError(f"the embedded ledger: {failure.detail}", failure)
