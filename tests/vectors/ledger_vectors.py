"""Vectors of accounts and entries (docs/format.md, sections 10 and 15)."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, NamedTuple

from tests.vectors import edwards
from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    ZEROS,
    Identity,
    Members,
    base58,
    domain,
    sha256,
    spell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = hashlib.sha256(b"a program id").digest()
GENESIS = hashlib.sha256(b"a genesis hash").digest()
OTHER = hashlib.sha256(b"another one").digest()
SAVEPOINT, BATCH_ROOT, RETIRE, SUCCESSOR = 1, 2, 3, 4
TIME = 1796045209  # Unix seconds; entry n is of n seconds later
HASH, COMMIT = 41, 73  # where they start in a body: instance hash and snapshot hash; then 40 of hex


def account_address(who: Identity, program: bytes) -> tuple[bytes, int]:
    """The program-derived address of an instance, and its bump: the first off the curve."""
    seeds = b"gabriel-consciousness" + hashlib.sha256(who.instance.encode()).digest() + who.key
    for bump in range(255, -1, -1):
        data = seeds + bytes([bump]) + program + b"ProgramDerivedAddress"
        address = hashlib.sha256(data).digest()
        if edwards.decoded(address) is None:
            return address, bump
    raise ValueError("no address off the curve")


class Entry(NamedTuple):
    """An entry, and the place that it is signed for; each part may be a wrong one."""

    seq: int
    kind: int
    time: int
    instance_hash: bytes
    snapshot_hash: bytes
    commit: bytes
    metadata: bytes
    flags: int
    who: Identity = GABRIEL
    genesis: bytes = GENESIS
    program: bytes = PROGRAM
    account: bytes | None = None
    purpose: str = "anchor"
    signed_seq: int | None = None

    @classmethod
    def of(cls, seq: int, kind: int, metadata: Members, who: Identity = GABRIEL) -> Entry:
        """As an honest key makes it."""
        return cls(
            seq,
            kind,
            TIME + seq,
            hashlib.sha256(who.instance.encode()).digest(),
            hashlib.sha256(f"snapshot {seq}".encode()).digest(),
            hashlib.sha1(f"commit {seq}".encode()).hexdigest().encode(),  # noqa: S324  # an id of git
            spell(metadata),
            1 if kind == RETIRE else 0,
            who,
        )

    @property
    def body(self) -> bytes:
        """Bytes 32 to 144."""
        head = struct.pack("<BQ", self.kind, self.time)
        return head + self.instance_hash + self.snapshot_hash + self.commit

    @property
    def hash(self) -> str:
        """The entry hash."""
        numbered = struct.pack("<Q", self.seq)
        return sha256(domain("entry") + numbered + self.body + self.metadata)

    @property
    def message(self) -> bytes:
        """What is signed, without its domain."""
        account = self.account or account_address(self.who, self.program)[0]
        seq = self.seq if self.signed_seq is None else self.signed_seq
        place = self.genesis + self.program + account + struct.pack("<Q", seq)
        return place + self.body + hashlib.sha256(self.metadata).digest()

    def data(self, signature: bytes | None = None, bump: int | None = None) -> bytes:
        """The account's bytes."""
        signature = signature or self.who.sign(self.message, self.purpose)
        found = account_address(self.who, PROGRAM)[1] if bump is None else bump
        reserved = struct.pack(
            "<QQBBHq",
            self.seq,
            435888000 + self.seq,
            found,
            self.flags,
            len(self.metadata),
            TIME + self.seq + 1,
        )
        told = self.metadata.ljust(256, b"\x00")
        return b"\xef\xbb\xbf\x01" + reserved + self.body + signature + told


def metadata(prev: str, record_hash: str, seq: int) -> Members:
    """What stands at the end of an account."""
    return {"v": 1, "prev": prev, "rec": record_hash, "seq": seq}


FIRST = Entry.of(1, SAVEPOINT, metadata(ZEROS, "aa" * 32, 2))
SECOND = Entry.of(2, SAVEPOINT, metadata(FIRST.hash, "bb" * 32, 9))
LAST = Entry.of(3, RETIRE, metadata(SECOND.hash, "cc" * 32, 10))
PREDECESSOR: Members = {"pred": base58(account_address(GABRIEL, PROGRAM)[0])}
HEIR = Entry.of(1, SUCCESSOR, {**metadata(ZEROS, "dd" * 32, 1), **PREDECESSOR}, STRANGER)


def ledger_vectors() -> list[Members]:
    """Whole accounts: what is hashed and signed of good ones, and what is wrong with bad ones."""
    good = [
        ("savepoint", FIRST),
        ("savepoint_after_it", SECOND),
        ("retire", LAST),
        ("successor", HEIR),
        ("batch_root", Entry.of(4, BATCH_ROOT, metadata("ee" * 32, "ff" * 32, 11))),
    ]
    return [
        *(_good(name, one) for name, one in good),
        *_malformed(),
        *_unsupported(),
        *_tampered(),
    ]


def _vector(
    name: str, expect: str, data: bytes, who: Identity = GABRIEL, account: bytes | None = None
) -> Members:
    return {
        "name": name,
        "expect": expect,
        "instance": who.instance,
        "authority": base58(who.key),
        "program": base58(PROGRAM),
        "genesis": base58(GENESIS),
        "account": base58(account or account_address(who, PROGRAM)[0]),
        "account_data": data.hex(),
    }


def _good(name: str, one: Entry) -> Members:
    return {
        **_vector(name, "ok", one.data(), one.who),
        "bump": account_address(one.who, PROGRAM)[1],
        "metadata": one.metadata.decode(),
        "entry_hash": one.hash,
        "anchor_message": (domain("anchor") + one.message).hex(),
        "signature": one.who.sign(one.message, "anchor").hex(),
    }


def _at(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def _malformed() -> Iterator[Members]:
    """Bytes that no program of this version writes; signed, where that could be."""
    whole = SECOND.data()
    bytes_of = {
        "empty": b"",
        "a_byte_short": whole[:-1],
        "a_byte_long": whole + b"\x00",
        "wrong_magic": _at(whole, 0, b"\xef\xbb\xbe"),
        "version_0": _at(whole, 3, b"\x00"),
        "sequence_0": SECOND._replace(seq=0).data(),
        "unknown_flag": SECOND._replace(flags=2).data(),
        "retired_by_a_savepoint": SECOND._replace(flags=1).data(),
        "retire_without_its_flag": LAST._replace(flags=0).data(),
        "type_0": SECOND._replace(kind=0).data(),
        "type_5": SECOND._replace(kind=5).data(),
        "commit_in_capitals": SECOND._replace(commit=SECOND.commit.upper()).data(),
        "metadata_of_257_bytes": _at(whole, 22, (257).to_bytes(2, "little")),
        "a_byte_behind_the_metadata": _at(whole, 464, b"\x01"),
    }
    for name, data in bytes_of.items():
        yield _vector(name, "malformed", data)
    text = SECOND.metadata
    told = {
        "metadata_empty": b"",
        "metadata_no_json": text[:-1],
        "metadata_with_a_blank": text.replace(b":", b": ", 1),
        "metadata_without_seq": text.replace(b',"seq":9', b""),
        "metadata_with_one_more_member": text[:-1] + b',"x":1}',
        "metadata_in_another_order": spell(
            {"v": 1, "rec": "bb" * 32, "prev": FIRST.hash, "seq": 9}
        ),
        "metadata_with_a_key_twice": text.replace(b'{"v":1', b'{"v":1,"v":1'),
        "metadata_in_capitals": text.replace(b"bb", b"BB"),
        "metadata_with_record_0": text.replace(b'"seq":9', b'"seq":0'),
        "predecessor_of_a_savepoint": text[:-1] + b"," + spell(PREDECESSOR)[1:],
        "later_entry_that_follows_none": spell(metadata(ZEROS, "bb" * 32, 9)),
    }
    for name, metadata_ in told.items():
        yield _vector(name, "malformed", SECOND._replace(metadata=metadata_).data())
    orphan = HEIR._replace(metadata=spell(metadata(ZEROS, "dd" * 32, 1)))
    yield _vector("successor_without_predecessor", "malformed", orphan.data(), STRANGER)
    follower = FIRST._replace(metadata=spell(metadata("ab" * 32, "aa" * 32, 2)))
    yield _vector("first_entry_that_follows_one", "malformed", follower.data())


def _unsupported() -> Iterator[Members]:
    yield _vector("version_2", "unsupported", _at(SECOND.data(), 3, b"\x02"))
    yield _vector(
        "version_2_of_another_length", "unsupported", _at(SECOND.data(), 3, b"\x02") + b"x"
    )
    newer = SECOND._replace(metadata=b'{"v":2,"x":[]}')
    yield _vector("metadata_of_version_2", "unsupported", newer.data())


def _tampered() -> Iterator[Members]:
    """Well formed, and not what the key has signed for this place."""
    address, bump = account_address(GABRIEL, PROGRAM)
    good = SECOND.data()
    yield _vector("account_that_is_not_derived", "tampered", good, account=OTHER)
    yield _vector("bump_that_is_not_canonical", "tampered", SECOND.data(bump=bump - 1))
    foreign = hashlib.sha256(STRANGER.instance.encode()).digest()
    moved = SECOND._replace(instance_hash=foreign, account=address)
    yield _vector("of_another_instance", "tampered", moved.data())
    signed = {
        "for_another_cluster": SECOND._replace(genesis=OTHER),
        "for_another_program": SECOND._replace(program=OTHER, account=address),
        "for_another_account": SECOND._replace(account=OTHER),
        "for_another_sequence": SECOND._replace(signed_seq=1),
        "under_another_domain": SECOND._replace(purpose="entry"),
    }
    for name, one in signed.items():
        yield _vector(f"signed_{name}", "tampered", one.data())
    by_another = STRANGER.sign(SECOND.message, "anchor")
    yield _vector("signed_by_another_key", "tampered", SECOND.data(by_another))
    real = GABRIEL.sign(SECOND.message, "anchor")
    high = int.from_bytes(real[32:], "little") + edwards.L
    malleable = real[:32] + high.to_bytes(32, "little")
    yield _vector("signature_with_high_S", "tampered", SECOND.data(malleable))
    yield _vector("signature_with_R_of_small_order", "tampered", SECOND.data(b"\x01" + bytes(63)))
    for name, offset in (("time", 33), ("snapshot_hash", 73), ("signature", 150)):
        flipped = bytes([good[offset] ^ 1])
        yield _vector(f"{name}_changed", "tampered", _at(good, offset, flipped))
    other = b"1" if good[105:106] == b"0" else b"0"
    yield _vector("commit_changed", "tampered", _at(good, 105, other))
    changed = SECOND._replace(metadata=SECOND.metadata.replace(b'"seq":9', b'"seq":8'))
    yield _vector("metadata_changed", "tampered", changed.data(real))
