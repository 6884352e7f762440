"""A proof: one file that shows a third party, without a store, what was anchored of a savepoint.

It holds the signed records from the savepoint to the one that the entry names, the account as it
was, and the git commits between them (docs/format.md, section 16). What it shows without a ledger
is for `core.verify_proof`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import entry, limits, record, schema, spelling
from savepoint.core.errors import MalformedError, SavepointError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse_file

if TYPE_CHECKING:
    from savepoint.core.record import Record

TYPE = "SAVEPOINT_PROOF"

_SHA1_DIGITS = 40
_key = schema.spelled(spelling.key_bytes)
_account = schema.hexadecimal(entry.ACCOUNT_BYTES)


def _hex(text: str) -> bytes:
    if len(text) % 2 or len(text) > 2 * limits.TRANSACTION_BYTES:
        raise MalformedError("no transaction is that long")
    return spelling.hex_bytes(text, len(text) // 2)


_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "type": schema.one_of(TYPE),
        "ledger": schema.text,
        "genesis": _key,
        "program": _key,
        "account": _key,
        "birth": schema.text,
        "records": schema.array(schema.text),
        "account_data": _account,
        "commits": schema.array(schema.text),
        "transaction": schema.nullable(
            schema.members({"raw": schema.spelled(_hex), "slot": schema.count})
        ),
    }
)


class Transaction(NamedTuple):
    """The one that put the entry there, as its sender knows it."""

    raw: bytes
    slot: int  # in which it landed; what only the ledger can confirm

    @property
    def signature(self) -> bytes:
        """The 64 bytes by which a cluster calls it."""
        return self.raw[1:65]


class Proof(NamedTuple):
    """`parse` and `to_bytes` are each other's inverse."""

    ledger: str  # its name, for people
    genesis: bytes
    program: bytes
    account: bytes
    birth: Record
    records: tuple[Record, ...]  # from the savepoint to the one that the entry names
    account_data: bytes
    commits: tuple[bytes, ...]  # git's commit objects from the entry's to the savepoint's; or none
    transaction: Transaction | None

    def to_bytes(self) -> bytes:
        """The file. Raises MalformedError: a commit is not UTF-8."""
        sent = self.transaction
        document: dict[str, Json] = {
            "v": 1,
            "type": TYPE,
            "ledger": self.ledger,
            "genesis": spelling.base58(self.genesis),
            "program": spelling.base58(self.program),
            "account": spelling.base58(self.account),
            "birth": self.birth.line.decode("utf-8"),
            "records": [one.line.decode("utf-8") for one in self.records],
            "account_data": self.account_data.hex(),
            "commits": [_text(one) for one in self.commits],
            "transaction": None if sent is None else {"raw": sent.raw.hex(), "slot": sent.slot},
        }
        return dump(document) + b"\n"


def parse(data: bytes) -> Proof:
    """The proof of a file. Nothing in it is verified but its spelling.

    Raises MalformedError, UnsupportedFormatError.
    """
    value = parse_file(data, limits.PROOF_BYTES)
    version = value.get("v")
    if type(version) is int and version > 1:
        raise UnsupportedFormatError(f"a proof of version {version}")
    _SHAPE(value, "proof")
    match value:
        case {"records": [_, *_] as lines, "commits": [*commits], "birth": str(birth), **more}:
            return Proof(
                ledger=str(more["ledger"]),
                genesis=spelling.key_bytes(str(more["genesis"])),
                program=spelling.key_bytes(str(more["program"])),
                account=spelling.key_bytes(str(more["account"])),
                birth=_record(birth),
                records=tuple(map(_record, lines)),
                account_data=bytes.fromhex(str(more["account_data"])),
                commits=tuple(str(one).encode("utf-8") for one in commits),
                transaction=_transaction(more["transaction"]),
            )
        case _:
            raise MalformedError("a proof has the record of its savepoint at least")


def commit_id(data: bytes) -> str:
    """What git calls a commit object: it locates, and proves nothing."""
    named = b"commit %d\0" % len(data) + data
    return hashlib.sha1(named, usedforsecurity=False).hexdigest()


def parents(data: bytes) -> list[str]:
    """Of a commit object."""
    header = data.partition(b"\n\n")[0].split(b"\n")
    found = [line[7:] for line in header if line.startswith(b"parent ")]
    return [one.decode("ascii", "replace") for one in found if len(one) == _SHA1_DIGITS]


def record_of(data: bytes) -> str:
    """The record that a commit's last line names; nothing where it names none."""
    last = data.rstrip(b"\n").rpartition(b"\n")[2]
    name = b"Savepoint-Record: "
    return last.removeprefix(name).decode("ascii", "replace") if last.startswith(name) else ""


def _record(line: object) -> Record:
    try:
        return record.parse(str(line).encode("utf-8"))
    except UnsupportedFormatError:
        raise
    except SavepointError as failure:
        raise MalformedError(f"a record of the proof: {failure.message}") from failure


def _transaction(value: object) -> Transaction | None:
    match value:
        case {"raw": str(raw), "slot": int(slot)}:
            return Transaction(bytes.fromhex(raw), slot)
        case _:
            return None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise MalformedError("a commit that is not UTF-8") from failure
