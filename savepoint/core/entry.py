"""Entries: what an instance's on-chain account holds (docs/format.md, section 10).

The program writes sequence, slot, bump, flags and chain time; everything else is the authority's
word. The entry hash leaves out what the program writes but the sequence, so it is known before
anything is sent.
"""

from __future__ import annotations

import hashlib
import struct

from savepoint.core import keys, limits, schema, spelling
from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse_canonical

SAVEPOINT, BATCH_ROOT, RETIRE, SUCCESSOR = 1, 2, 3, 4
KINDS = {SAVEPOINT: "SAVEPOINT", BATCH_ROOT: "BATCH_ROOT", RETIRE: "RETIRE", SUCCESSOR: "SUCCESSOR"}

ACCOUNT_BYTES = 465
NO_ENTRY = "0" * 64  # what the first entry follows

_MAGIC = b"\xef\xbb\xbf"
_VERSION = 1
_RETIRED = 1  # bit of the flags
_HEAD = struct.Struct("<3sBQQBBHq")  # magic, version, seq, slot, bump, flags, metadata, chain time
_BODY = struct.Struct("<BQ32s32s40s")  # type, client time, instance, snapshot, commit
_SIGNED_FROM, _SIGNATURE_AT, _METADATA_AT = 32, 145, 209

_digest = schema.spelled(spelling.digest)
_METADATA = schema.members(
    {
        "v": schema.one_of(1),
        "prev": _digest,
        "rec": _digest,
        "seq": schema.positive,
        "pred": schema.spelled(spelling.key_bytes),
    },
    optional=frozenset({"pred"}),
)


class Place(NamedTuple):
    """Where an entry stands: a signature holds for one cluster, program and account only."""

    genesis: bytes  # 32 bytes, the hash of the cluster's first block
    program: bytes  # 32 bytes
    account: bytes  # 32 bytes


class Metadata(NamedTuple):
    """What the 256 bytes at the end say."""

    prev: str  # entry hash of the entry before; NO_ENTRY before the first
    rec: str  # hash of the record that the entry is about
    seq: int  # of that record in the index
    pred: str | None = None  # of a SUCCESSOR: the predecessor's account, base58

    def to_bytes(self) -> bytes:
        """As they are signed and stored."""
        members = {"v": 1, **self._asdict()}
        return dump({name: value for name, value in members.items() if value is not None})


class Claim(NamedTuple):
    """What the authority says: bytes 32 to 144 of the account, and the metadata."""

    kind: int
    client_time: int  # Unix seconds, that of the record
    instance_hash: bytes  # 32 bytes: SHA-256 of the instance id
    snapshot_hash: bytes  # 32 bytes; SUCCESSOR: of BOOTSTRAP_VERIFICATION.json
    commit: str  # 40 characters of lower-case hex
    metadata: bytes

    @property
    def body(self) -> bytes:
        """Bytes 32 to 144."""
        return _BODY.pack(
            self.kind,
            self.client_time,
            self.instance_hash,
            self.snapshot_hash,
            self.commit.encode("ascii"),
        )

    def hash(self, seq: int) -> str:
        """The entry hash, if this is entry `seq` of its account."""
        message = seq.to_bytes(8, "little") + self.body + self.metadata
        return hashlib.sha256(keys.domain("entry") + message).hexdigest()

    def message(self, seq: int, place: Place) -> bytes:
        """What is signed under the domain "anchor"."""
        where = place.genesis + place.program + place.account + seq.to_bytes(8, "little")
        return where + self.body + hashlib.sha256(self.metadata).digest()


class Account(NamedTuple):
    """An account's 465 bytes, taken apart. `parse` and `to_bytes` are each other's inverse."""

    seq: int  # of the entry, from 1
    slot: int
    bump: int
    retired: bool
    chain_time: int  # Unix seconds, by the cluster's clock
    claim: Claim
    signature: bytes  # 64 bytes

    @property
    def hash(self) -> str:
        """The entry hash: what the next entry must name."""
        return self.claim.hash(self.seq)

    @property
    def metadata(self) -> Metadata:
        """Parsed. Raises MalformedError, UnsupportedFormatError."""
        return parse_metadata(self.claim.metadata, self.claim.kind)

    def is_signed_by(self, authority: bytes, place: Place) -> bool:
        """Is this the authority's word, at this place?"""
        message = self.claim.message(self.seq, place)
        return keys.verifies(authority, "anchor", message, self.signature)

    def to_bytes(self) -> bytes:
        """The account's data."""
        flags = _RETIRED if self.retired else 0
        size = len(self.claim.metadata)
        head = _HEAD.pack(
            _MAGIC, _VERSION, self.seq, self.slot, self.bump, flags, size, self.chain_time
        )
        data = head + self.claim.body + self.signature + self.claim.metadata
        return data + bytes(ACCOUNT_BYTES - len(data))


def parse(data: bytes) -> Account:
    """The account of its data. Raises MalformedError, UnsupportedFormatError (a later version)."""
    if len(data) < 4 or data[:3] != _MAGIC:
        raise MalformedError("an account starts with EF BB BF and a version")
    if data[3] > _VERSION:
        raise UnsupportedFormatError(f"the account is of version {data[3]}")
    if data[3] != _VERSION or len(data) != ACCOUNT_BYTES:
        raise MalformedError(f"an account of version 1 has {ACCOUNT_BYTES} bytes")
    _, _, seq, slot, bump, flags, size, chain_time = _HEAD.unpack_from(data)
    kind, client_time, instance, snapshot, commit = _BODY.unpack_from(data, _SIGNED_FROM)
    if seq == 0 or flags & ~_RETIRED or kind not in KINDS:
        raise MalformedError("an account's sequence is from 1, its flags 0 or 1, its type 1 to 4")
    if size > limits.METADATA_BYTES or any(data[_METADATA_AT + size :]):
        raise MalformedError("an account's metadata has at most 256 bytes, and zeros behind it")
    if (kind == RETIRE) != bool(flags & _RETIRED):
        raise MalformedError("an account is retired by an entry RETIRE, and by no other")
    metadata = data[_METADATA_AT : _METADATA_AT + size]
    claim = Claim(kind, client_time, instance, snapshot, _commit(commit), metadata)
    signature = data[_SIGNATURE_AT:_METADATA_AT]
    return Account(seq, slot, bump, bool(flags), chain_time, claim, signature)


def parse_metadata(data: bytes, kind: int) -> Metadata:
    """Raises MalformedError; UnsupportedFormatError for a later version."""
    value = parse_canonical(data)
    version = value.get("v") if isinstance(value, dict) else None
    if type(version) is int and version > 1:
        raise UnsupportedFormatError(f"metadata of version {version}")
    _METADATA(value, "metadata")
    assert isinstance(value, dict)  # noqa: S101  # _METADATA saw it; for the type checker
    if ("pred" in value) != (kind == SUCCESSOR):
        raise MalformedError("a predecessor's account is named by a SUCCESSOR, and by no other")
    return Metadata(**{name: one for name, one in value.items() if name != "v"})  # type: ignore[arg-type]  # _METADATA


def _commit(data: bytes) -> str:
    if set(data) - set(b"0123456789abcdef"):
        raise MalformedError("a commit is 40 characters of lower-case hex")
    return data.decode("ascii")
