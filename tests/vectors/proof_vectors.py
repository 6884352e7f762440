"""Vectors of proofs (docs/format.md, section 16)."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, NamedTuple

from tests.vectors import ledger_vectors
from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    Identity,
    Members,
    Value,
    base58,
    birth,
    identity,
    record,
    save_body,
    sha256,
    spell,
    swap,
    vector,
)
from tests.vectors.ledger_vectors import GENESIS, OTHER, PROGRAM, RETIRE, SAVEPOINT, Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYER = identity("a payer", bytes(16))
_AT = 1796045209  # 2026-11-30T13:26:49Z; record n is of minute n


class Parts(NamedTuple):
    """A proof before it is spelled; each part may be a wrong one."""

    birth: bytes
    lines: tuple[bytes, ...]
    entry: Entry
    commits: tuple[bytes, ...]
    raw: bytes | None
    more: Members  # members that are replaced

    def spelled(self) -> bytes:
        """The file."""
        address = ledger_vectors.account_address(GABRIEL, PROGRAM)[0]
        sent: Value = None if self.raw is None else {"raw": self.raw.hex(), "slot": 435888002}
        document: Members = {
            "v": 1,
            "type": "SAVEPOINT_PROOF",
            "ledger": "devnet",
            "genesis": base58(GENESIS),
            "program": base58(PROGRAM),
            "account": base58(address),
            "birth": self.birth.decode(),
            "records": [one.decode() for one in self.lines],
            "account_data": self.entry.data().hex(),
            "commits": [one.decode() for one in self.commits],
            "transaction": sent,
            **self.more,
        }
        return spell(document) + b"\n"


def _line(members: Members, who: Identity = GABRIEL) -> bytes:
    return who.line(spell(members))


BIRTH = _line(birth())


def _lines(count: int, last: str = "save") -> list[bytes]:
    """Records 1 to `count`."""
    found = [BIRTH]
    for seq in range(2, count + 1):
        kind = last if seq == count else "save"
        body = save_body(seq) if kind == "save" else {}
        found.append(_line(record(kind, seq, sha256(found[-1]), body)))
    return found


def _commit(line: bytes, seq: int, *parents: str) -> bytes:
    """A commit object of git, as far as anybody reads it."""
    header = [f"tree {seq:040x}", *(f"parent {one}" for one in parents)]
    who = f"gabriel <gabriel@savepoint.invalid> {_AT} +0000"
    header += [f"author {who}", f"committer {who}", "", "[Gabriel #215] PRECOMPACT: Savepoint", ""]
    trailers = [f"Savepoint-Seq: {seq}", f"Savepoint-Record: {sha256(line)}", ""]
    return "\n".join([*header, *trailers]).encode()


def _name(commit: bytes) -> str:
    return hashlib.sha1(b"commit %d\x00" % len(commit) + commit).hexdigest()  # noqa: S324  # an id of git


def _commits(lines: list[bytes], first: int = 2) -> list[bytes]:
    """Those of records `first` and later, oldest first."""
    found = list[bytes]()
    for seq in range(first, len(lines) + 1):
        before = [_name(found[-1])] if found else []
        found.append(_commit(lines[seq - 1], seq, *before))
    return found


def _entry(lines: list[bytes], commit: bytes, kind: int = SAVEPOINT, saved: int = 0) -> Entry:
    """About the last line; saved: the savepoint whose snapshot it names, if that is another."""
    seq = len(lines)
    told = ledger_vectors.metadata("ab" * 32, sha256(lines[-1]), seq)
    return Entry.of(2, kind, told)._replace(
        time=_AT + 60 * (seq - 26),
        snapshot_hash=(saved or seq).to_bytes(32, "big"),
        commit=_name(commit).encode(),
    )


def _short(number: int) -> bytes:
    """A count below 16384, in Solana's short_vec."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])


def _transaction(entry: Entry, *, signer: Identity = GABRIEL, program: bytes = PROGRAM) -> bytes:
    """A legacy transaction that appends this entry."""
    address = ledger_vectors.account_address(GABRIEL, PROGRAM)[0]
    data = entry.data()
    told = len(entry.metadata).to_bytes(2, "little") + entry.metadata
    instruction = b"\x01" + struct.pack("<Q", entry.seq - 1) + bytes(32) + data[32:209] + told
    keys = [PAYER.key, signer.key, address, program]
    message = bytes([2, 1, 1]) + _short(len(keys)) + b"".join(keys) + OTHER
    message += _short(1) + b"\x03" + _short(2) + b"\x01\x02" + _short(len(instruction))
    message += instruction
    return _short(2) + _raw_sign(PAYER, message) + _raw_sign(signer, message) + message


def _raw_sign(who: Identity, message: bytes) -> bytes:
    """As a transaction is signed: under no domain."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(who.seed).sign(message)


def _parts(lines: list[bytes], entry: Entry, commits: list[bytes], first: int) -> Parts:
    """Of savepoint `first`. commits: oldest first, from its own on."""
    return Parts(
        BIRTH, tuple(lines[first - 1 :]), entry, tuple(reversed(commits)), _transaction(entry), {}
    )


LINES = _lines(5)
COMMITS = _commits(LINES)  # of records 2 to 5
ENTRY = _entry(LINES, COMMITS[-1])
WHOLE = _parts(LINES, ENTRY, COMMITS[1:], 3)


def vectors() -> list[Members]:
    """Good proofs, and bad ones that are named after their defect."""
    data = WHOLE.spelled()
    spellings = {
        "blank_after_a_colon": swap(data, '{"v":1,"type', '{"v": 1,"type'),
        "without_LF": data[:-1],
        "two_LF": data + b"\n",
        "another_type": swap(data, "SAVEPOINT_PROOF", "SAVEPOINT_PROVES"),
        "one_more_member": swap(data, '"slot":435888002}}', '"slot":435888002},"x":1}'),
        "no_records": WHOLE._replace(lines=()).spelled(),
        "account_in_capitals": swap(data, "efbbbf01", "EFBBBF01"),
        "account_a_byte_short": swap(data, '00","commits"', '","commits"'),
        "key_that_is_none": swap(data, base58(PROGRAM), "0" + base58(PROGRAM)[1:]),
        "record_that_is_none": swap(data, '\\"kind\\":\\"birth\\"', '\\"kind\\":\\"berth\\"'),
    }
    return [
        *(vector(name, "ok", one.spelled()) for name, one in _good().items()),
        vector("lost_commits", "unchecked", WHOLE._replace(commits=()).spelled()),
        *(vector(name, "malformed", one) for name, one in spellings.items()),
        vector("version_2", "unsupported", swap(data, '{"v":1,"type', '{"v":2,"type')),
        vector("entry_that_is_none", "tampered", swap(data, '"efbbbf01', '"efbbbe01')),
        *(vector(name, "tampered", one.spelled()) for name, one in _tampered()),
    ]


def _good() -> dict[str, Parts]:
    single = _parts(LINES, ENTRY, COMMITS[-1:], 5)
    retired = _lines(5, "retire")
    end = _commits(retired[:4])
    entry = _entry(retired, end[-1], RETIRE, saved=4)
    return {
        "whole": WHOLE,
        "of_the_anchored_savepoint": single,
        "of_a_retired_key": _parts(retired, entry, end[1:], 3),
        "without_a_transaction": WHOLE._replace(raw=None),
        "across_an_accepted_loss": _gap(3, 4),
    }


def _gap(first: int, last: int) -> Parts:
    """Records 3 and 4 are lost; record 6 accepts the loss of `first` to `last`."""
    lines = [BIRTH, *_lines(2)[1:]]
    after = _line(record("save", 5, "cd" * 32, save_body(5)))
    accepted: Members = {"reason": "gap", "first": first, "last": last, "tip": None}
    accept = _line(record("accept", 6, sha256(after), accepted))
    newest = _line(record("save", 7, sha256(accept), save_body(7)))
    commits = [_commit(lines[1], 2)]
    for seq, line in ((5, after), (7, newest)):
        commits.append(_commit(line, seq, _name(commits[-1])))
    told = ledger_vectors.metadata("ab" * 32, sha256(newest), 7)
    entry = _entry(lines, commits[-1])._replace(
        metadata=spell(told), time=_AT + 60 * (7 - 26), snapshot_hash=(7).to_bytes(32, "big")
    )
    whole = (lines[1], after, accept, newest)
    return Parts(BIRTH, whole, entry, tuple(reversed(commits)), _transaction(entry), {})


def _tampered() -> Iterator[tuple[str, Parts]]:
    yield from _wrong_records()
    yield from _wrong_entries()
    yield from _wrong_commits()
    yield from _wrong_transactions()


def _wrong_records() -> Iterator[tuple[str, Parts]]:
    three, four, five = LINES[2:]
    yield "record_left_out", WHOLE._replace(lines=(three, five))
    yield (
        "record_too_many_at_the_end",
        WHOLE._replace(
            lines=(three, four, five, _line(record("save", 6, sha256(five), save_body(6))))
        ),
    )
    yield "record_twice", WHOLE._replace(lines=(three, three, four, five))
    yield "records_in_another_order", WHOLE._replace(lines=(four, three, five))
    flipped = three[:-3] + (b"0" if three[-3:-2] != b"0" else b"1") + three[-2:]
    yield "record_with_another_signature", WHOLE._replace(lines=(flipped, four, five))
    body = save_body(3) | {"trigger": "manual"}
    forged = STRANGER.line(spell(record("save", 3, sha256(LINES[1]), body)))
    yield "record_of_another_key", WHOLE._replace(lines=(forged, four, five))
    yield "birth_of_another_instance", WHOLE._replace(birth=_line(birth(STRANGER), STRANGER))
    yield "birth_that_is_a_savepoint", WHOLE._replace(birth=LINES[1])
    retired = _lines(5, "retire")
    entry = _entry(retired, COMMITS[2], RETIRE, saved=4)
    alone = Parts(BIRTH, (retired[4],), entry, (COMMITS[2],), None, {})
    yield "savepoint_that_is_a_retire", alone
    yield "across_another_loss_than_the_accepted", _gap(3, 3)


def _wrong_entries() -> Iterator[tuple[str, Parts]]:
    def about(entry: Entry) -> Parts:
        return WHOLE._replace(entry=entry, raw=_transaction(entry))

    yield (
        "entry_of_a_record_that_is_not_there",
        about(ENTRY._replace(metadata=spell(ledger_vectors.metadata("ab" * 32, "cd" * 32, 5)))),
    )
    yield (
        "entry_with_another_number",
        about(
            ENTRY._replace(metadata=spell(ledger_vectors.metadata("ab" * 32, sha256(LINES[4]), 4)))
        ),
    )
    yield "entry_with_another_time", about(ENTRY._replace(time=ENTRY.time + 1))
    yield "entry_with_another_snapshot", about(ENTRY._replace(snapshot_hash=bytes(32)))
    yield "entry_retires_by_a_savepoint", about(ENTRY._replace(kind=RETIRE, flags=1))
    yield "entry_signed_for_another_cluster", about(ENTRY._replace(genesis=OTHER))
    yield "another_cluster_named", WHOLE._replace(more={"genesis": base58(OTHER)})
    yield "another_program_named", WHOLE._replace(more={"program": base58(OTHER)})
    yield "another_account_named", WHOLE._replace(more={"account": base58(OTHER)})


def _wrong_commits() -> Iterator[tuple[str, Parts]]:
    three, four, five = COMMITS[1:]
    yield "commit_left_out", WHOLE._replace(commits=(five, three))
    yield "commit_that_the_entry_does_not_name", WHOLE._replace(commits=(four, three))
    yield "commit_of_the_savepoint_missing", WHOLE._replace(commits=(five, four))
    changed = swap(three, "PRECOMPACT", "POSTCOMPACT")
    yield "commit_changed", WHOLE._replace(commits=(five, four, changed))
    other = _commit(LINES[3], 5, _name(four))  # names record 4
    entry = ENTRY._replace(commit=_name(other).encode())
    yield (
        "commit_of_another_record",
        WHOLE._replace(entry=entry, raw=_transaction(entry), commits=(other, four, three)),
    )


def _wrong_transactions() -> Iterator[tuple[str, Parts]]:
    raw = _transaction(ENTRY)
    flipped = raw[:70] + bytes([raw[70] ^ 1]) + raw[71:]
    first = ENTRY._replace(snapshot_hash=bytes(32))
    for name, data in (
        ("of_another_entry", _transaction(first)),
        ("to_another_program", _transaction(ENTRY, program=OTHER)),
        ("of_another_key", _transaction(ENTRY, signer=STRANGER)),
        ("with_another_signature", flipped),
        ("cut_short", raw[:-1]),
        ("with_more_bytes", raw + b"\x00"),
        ("empty", b""),
        ("of_version_0", raw[:129] + b"\x80" + raw[129:]),
    ):
        yield f"transaction_{name}", WHOLE._replace(raw=data)
