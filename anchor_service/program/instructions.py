"""The instructions of the program: their bytes and accounts, its errors, its own bytes.

As docs/program.md has them, which programs/savepoint_anchor/src keeps to.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from solders.instruction import AccountMeta, Instruction
from solders.system_program import ID as SYSTEM_PROGRAM

from savepoint.core.accounts import SEED as PROGRAM_SEED
from savepoint.core.entry import ACCOUNT_BYTES
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

__all__ = ["ACCOUNT_BYTES", "ERRORS", "PROGRAM_SEED", "Body", "append", "elf", "initialise"]

_INITIALISE = 0
_APPEND = 1
_ELF = "savepoint_anchor.so"


class Body(NamedTuple):
    """An entry as the client sends it. Its sequence, slot and chain time are the program's."""

    kind: int  # 1 SAVEPOINT, 2 BATCH_ROOT, 3 RETIRE, 4 SUCCESSOR
    client_time: int  # Unix seconds
    instance_hash: bytes  # 32
    snapshot_hash: bytes  # 32
    commit: bytes  # 40, lower-case hex
    signature: bytes  # 64
    metadata: bytes  # at most 256


def initialise(
    program: Pubkey, payer: Pubkey, authority: Pubkey, account: Pubkey, bump: int, body: Body
) -> Instruction:
    """Makes the account, with `body` as entry 1. Payer and authority sign; they may be one key.

    OverflowError or ValueError for a body with a field of another size.
    """
    accounts = [
        AccountMeta(payer, is_signer=True, is_writable=True),
        AccountMeta(authority, is_signer=True, is_writable=False),
        AccountMeta(account, is_signer=False, is_writable=True),
        AccountMeta(SYSTEM_PROGRAM, is_signer=False, is_writable=False),
    ]
    return Instruction(program, bytes([_INITIALISE, bump]) + _body(body), accounts)


def append(
    program: Pubkey,
    authority: Pubkey,
    account: Pubkey,
    expected_seq: int,
    expected_entry: bytes,
    body: Body,
) -> Instruction:
    """Puts `body` in the place of entry `expected_seq` with that hash. The authority signs.

    OverflowError or ValueError for a field of another size.
    """
    accounts = [
        AccountMeta(authority, is_signer=True, is_writable=False),
        AccountMeta(account, is_signer=False, is_writable=True),
    ]
    seen = expected_seq.to_bytes(8, "little") + _sized(expected_entry, 32)
    return Instruction(program, bytes([_APPEND]) + seen + _body(body), accounts)


def _body(body: Body) -> bytes:
    """The bytes 32 to 208 of the account, then length and bytes of the metadata."""
    return b"".join(
        [
            body.kind.to_bytes(1, "little"),
            body.client_time.to_bytes(8, "little"),
            _sized(body.instance_hash, 32),
            _sized(body.snapshot_hash, 32),
            _sized(body.commit, 40),
            _sized(body.signature, 64),
            len(body.metadata).to_bytes(2, "little"),
            body.metadata,
        ]
    )


def _sized(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise ValueError(f"{len(value)} bytes, not {size}")
    return value


def elf() -> bytes:
    """The program. ValueError where it is not the one whose SHA-256 lies beside it."""
    folder = resources.files(__package__)
    program = folder.joinpath(_ELF).read_bytes()
    stated = folder.joinpath(f"{_ELF}.sha256").read_text(encoding="ascii").split()[0]
    if hashlib.sha256(program).hexdigest() != stated:
        raise ValueError(f"{_ELF}: SHA-256 is not {stated}: installed incompletely, or changed")
    return program


# Custom(n) → name in src/error.rs, what it means.
ERRORS: dict[int, tuple[str, str]] = {
    1000: ("UnknownInstruction", "The first byte names no instruction."),
    1001: ("InstructionLength", "The instruction is shorter or longer than its fields."),
    1002: ("AccountCount", "The instruction takes another number of accounts."),
    1003: ("PayerNotSigner", "The payer of the rent did not sign."),
    1004: ("AuthorityNotSigner", "The authority did not sign."),
    1005: ("AccountNotWritable", "The account or the payer was not given as writable."),
    1006: ("NotSystemProgram", "The account in the system program's place is another."),
    1007: ("AlreadyInitialised", "The account holds an entry; append to it."),
    1008: ("WrongOwner", "The account belongs to another program, or to none yet."),
    1009: ("WrongBump", "The bump is not the highest that gives an address."),
    1010: ("WrongAddress", "The account is not that of this instance and authority."),
    1011: ("PayerTooPoor", "The payer has less than the account's rent."),
    1012: ("EntryType", "The entry's type is unknown, or SUCCESSOR behind another entry."),
    1013: ("CommitNotHex", "The commit is not 40 digits of lower-case hex."),
    1014: ("MetadataTooLong", "The metadata has more than 256 bytes."),
    1015: ("MalformedAccount", "The account's length, magic or version is another."),
    1016: ("Retired", "The instance is retired: nothing follows its last entry."),
    1017: ("InstanceChanged", "The entry names another instance than the account's."),
    1018: ("WrongSequence", "The account's entry has another sequence than the expected one."),
    1019: ("WrongEntryHash", "The account's entry has another hash than the expected one."),
}
