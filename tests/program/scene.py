"""The program in LiteSVM. Keys are the same in every run, so addresses and units are as well."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction
from solders.transaction_metadata import FailedTransactionMetadata
from solders.transaction_status import (
    InstructionErrorCustom,
    TransactionErrorInstructionError,
)

from anchor_service.program import instructions
from anchor_service.program.instructions import PROGRAM_SEED, Body

if TYPE_CHECKING:
    from collections.abc import Iterable

SOL = 10**9
SLOT, TIME = 460_000_000, 1_796_000_000  # of the cluster when a scene begins
PROGRAM = Pubkey(bytes([7]) * 32)
ELSEWHERE = Pubkey(bytes([8]) * 32)  # a program that is not ours

# Bars of the specification of this program: compute units of an instruction, whatever comes of it.
INITIALISE_UNITS, APPEND_UNITS = 8_000, 4_000

SAVEPOINT, BATCH_ROOT, RETIRE, SUCCESSOR = 1, 2, 3, 4


class Sent(NamedTuple):
    """What came of a transaction."""

    error: int | str | None  # the number of a custom error, the text of another, None
    units: int


def key(number: int) -> Keypair:
    """A key that is the same in every run."""
    return Keypair.from_seed(hashlib.sha256(b"key %d" % number).digest())


def instance_of(number: int) -> bytes:
    """The hash of an instance's id."""
    return hashlib.sha256(b"Demo #%d" % number).digest()


def address_of(instance: bytes, authority: Pubkey) -> tuple[Pubkey, int]:
    """Account and bump, as solders finds them."""
    return Pubkey.find_program_address([PROGRAM_SEED, instance, bytes(authority)], PROGRAM)


def a_body(
    kind: int = SAVEPOINT,
    instance_hash: bytes = instance_of(1),
    snapshot: bytes = b"snapshot",
    commit: bytes = b"0123456789abcdef0123456789abcdef01234567",
    metadata: bytes = b'{"v":1,"prev":"00"}',
) -> Body:
    """A valid one, whose bytes differ from their neighbours."""
    return Body(
        kind=kind,
        client_time=0x0102030405060708,
        instance_hash=instance_hash,
        snapshot_hash=hashlib.sha256(snapshot).digest(),
        commit=commit,
        signature=hashlib.sha512(snapshot).digest(),
        metadata=metadata,
    )


def account_bytes(seq: int, bump: int, body: Body, slot: int = SLOT, time: int = TIME) -> bytes:
    """The whole account after this entry, from the table of docs/format.md, section 10."""
    fields = [
        b"\xef\xbb\xbf\x01",
        seq.to_bytes(8, "little"),
        slot.to_bytes(8, "little"),
        bytes([bump, body.kind == RETIRE]),
        len(body.metadata).to_bytes(2, "little"),
        time.to_bytes(8, "little", signed=True),
        bytes([body.kind]),
        body.client_time.to_bytes(8, "little"),
        body.instance_hash + body.snapshot_hash + body.commit + body.signature,
        body.metadata.ljust(256, b"\0"),
    ]
    return b"".join(fields)


def entry_hash(account: bytes) -> bytes:
    """Of the entry in these account bytes."""
    size = int.from_bytes(account[22:24], "little")
    hashed = account[4:12] + account[32:145] + account[209 : 209 + size]
    return hashlib.sha256(b"\xffsavepoint/entry/v1\0" + hashed).digest()


class Scene:
    """An instance, its authority, a payer of rent, and a third that pays the fees."""

    def __init__(self, number: int = 1) -> None:
        self.svm = LiteSVM()
        self.svm.add_program(PROGRAM, instructions.elf())
        self.set_time(SLOT, TIME)
        self.authority, self.payer, self.fees = key(number), key(101), key(102)
        self.stranger = key(103)
        every = [self.authority, self.payer, self.fees, self.stranger]
        self._keys = {one.pubkey(): one for one in every}
        for one in self._keys:
            self.svm.airdrop(one, SOL)
        self.instance = instance_of(1)
        self.account, self.bump = address_of(self.instance, self.authority.pubkey())

    def set_time(self, slot: int, time: int) -> None:
        """What the program reads from the Clock sysvar from here on."""
        clock = self.svm.get_clock()
        clock.slot, clock.unix_timestamp = slot, time
        self.svm.set_clock(clock)

    def initialise(self, body: Body | None = None) -> Instruction:
        """INITIALISE of the instance."""
        payer, authority = self.payer.pubkey(), self.authority.pubkey()
        body = body or a_body()
        return instructions.initialise(PROGRAM, payer, authority, self.account, self.bump, body)

    def append(self, body: Body | None = None) -> Instruction:
        """APPEND to the entry that is there now."""
        data = self.data()
        seq = int.from_bytes(data[4:12], "little")
        return self.append_after(seq, entry_hash(data), body)

    def append_after(self, seq: int, seen: bytes, body: Body | None = None) -> Instruction:
        """APPEND that expects the entry `seq` with the hash `seen`."""
        authority = self.authority.pubkey()
        body = body or a_body()
        return instructions.append(PROGRAM, authority, self.account, seq, seen, body)

    def begun(self) -> Scene:
        """With a first entry."""
        assert self.send(self.initialise()).error is None
        return self

    def data(self) -> bytes:
        """The account's bytes."""
        account = self.svm.get_account(self.account)
        assert account is not None
        return account.data

    def put(self, data: bytes, owner: Pubkey = PROGRAM, lamports: int = SOL) -> None:
        """Make the account what no instruction made it."""
        self.svm.set_account(self.account, Account(lamports, data, owner))

    def transaction(self, *given: Instruction) -> Transaction:
        """Signed by everyone who has to, and paid by a key that no instruction names."""
        message = Message(list(given), self.fees.pubkey())
        names = message.account_keys[: message.header.num_required_signatures]
        return Transaction([self._keys[n] for n in names], message, self.svm.latest_blockhash())

    def send(self, *given: Instruction) -> Sent:
        """In one transaction, with a blockhash of its own."""
        self.svm.expire_blockhash()
        return self.submit(self.transaction(*given))

    def submit(self, transaction: Transaction) -> Sent:
        """As it is."""
        result = self.svm.send_transaction(transaction)
        if not isinstance(result, FailedTransactionMetadata):
            return Sent(None, result.compute_units_consumed())
        return Sent(_error(result), result.meta().compute_units_consumed())

    def refuses(self, given: Instruction, name: str) -> None:
        """Fails with the error of that name, within the bar, and leaves every account as it was."""
        places = [*(meta.pubkey for meta in given.accounts), self.account]
        before = [self.svm.get_account(place) for place in places]
        sent = self.send(given)
        assert sent.error == code(name), sent
        assert sent.units <= (INITIALISE_UNITS if given.data[:1] == b"\0" else APPEND_UNITS)
        assert [self.svm.get_account(place) for place in places] == before


def _error(result: FailedTransactionMetadata) -> int | str:
    error = result.err()
    if isinstance(error, TransactionErrorInstructionError):
        inner = error.err
        return inner.code if isinstance(inner, InstructionErrorCustom) else str(inner)
    return str(error)


def with_account(
    given: Instruction,
    place: int,
    name: Pubkey | None = None,
    *,
    signer: bool | None = None,
    writable: bool | None = None,
) -> Instruction:
    """The instruction with another account, or another claim about it, in this place."""
    metas = list(given.accounts)
    old = metas[place]
    metas[place] = AccountMeta(
        old.pubkey if name is None else name,
        old.is_signer if signer is None else signer,
        old.is_writable if writable is None else writable,
    )
    return with_accounts(given, metas)


def with_accounts(given: Instruction, metas: Iterable[AccountMeta]) -> Instruction:
    """The instruction with these accounts."""
    return Instruction(given.program_id, bytes(given.data), list(metas))


def with_data(given: Instruction, data: bytes) -> Instruction:
    """The instruction with this data."""
    return Instruction(given.program_id, data, given.accounts)


def code(name: str) -> int:
    """The number of a named error."""
    (number,) = [n for n, (known, _) in instructions.ERRORS.items() if known == name]
    return number
