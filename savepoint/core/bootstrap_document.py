"""BOOTSTRAP_VERIFICATION.json: where a successor comes from, signed by its predecessor's key
(docs/format.md, section 10), and *modulo zero*: does it follow lawfully?

The successor's own key signs its birth record; only this document says that another key wanted it
to be born. Public: ids, keys, a nonce and hashes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import keys, limits, schema, signed_line, spelling
from savepoint.core.errors import UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.core.strict_json import Json, parse_file

if TYPE_CHECKING:
    from savepoint.core.record import Record

VERSION = 1
TYPE = "BOOTSTRAP_VERIFICATION"

_COMMIT_DIGITS = 20  # bytes of a commit's id

_key = schema.spelled(spelling.key_bytes)
_instance = schema.spelled(Instance.parse)
_digest = schema.spelled(spelling.digest)
_HOLDER = {"instance": _instance, "key": _key}


_SHAPE = schema.members(
    {
        "v": schema.one_of(VERSION),
        "type": schema.one_of(TYPE),
        "timestamp": schema.spelled(spelling.time_seconds),
        "predecessor": schema.members(
            _HOLDER
            | {
                "savepoint": schema.members(
                    {
                        "seq": schema.positive,
                        "record": _digest,
                        "snapshot_hash": schema.spelled(spelling.prefixed_digest),
                        "commit": schema.nullable(schema.hexadecimal(_COMMIT_DIGITS)),
                    }
                )
            }
        ),
        "successor": schema.members(_HOLDER | {"nonce": schema.hexadecimal(keys.NONCE_BYTES)}),
        "between": schema.array(schema.members(_HOLDER)),
        "signature": schema.hexadecimal(keys.SIGNATURE_BYTES),
    }
)


class Holder(NamedTuple):
    """An instance: the key is the identity, the id a name."""

    instance: str  # `NAME #N`
    key: bytes  # 32, its authority

    def to_json(self) -> dict[str, Json]:
        """As in the document."""
        return {"instance": self.instance, "key": spelling.base58(self.key)}


class Origin(NamedTuple):
    """The savepoint that a successor comes from."""

    seq: int
    record: str  # hash of its record
    snapshot_hash: str  # sha256:…
    commit: str | None  # of our repository; None: it was not committed yet


class Bootstrap(NamedTuple):
    """The document. `data` is the file; the members are what it says."""

    data: bytes
    timestamp: int  # Unix seconds
    predecessor: Holder
    savepoint: Origin
    successor: Holder
    nonce: bytes  # 16, of the successor's birth
    between: tuple[Holder, ...]  # who holds a number between the two
    signature: bytes  # 64

    @property
    def hash(self) -> str:
        """SHA-256 of the file: what a SUCCESSOR entry names."""
        return hashlib.sha256(self.data).hexdigest()

    def signature_holds(self) -> bool:
        """Did the predecessor's key sign it?"""
        line, key = self.data.removesuffix(b"\n"), self.predecessor.key
        return signed_line.holds(line, key, self.signature, "bootstrap")


def make(
    seed: bytes,
    timestamp: int,
    origin: Record,
    commit: str | None,
    successor: Holder,
    nonce: bytes,
    between: tuple[Holder, ...],
) -> Bootstrap:
    """A new document. seed: of the predecessor's key, 32 bytes; origin: the savepoint that the
    successor comes from. Raises MalformedError if what was given cannot be one.
    """
    savepoint: dict[str, Json] = {
        "seq": origin.seq,
        "record": origin.hash,
        "snapshot_hash": origin.body["snapshot_hash"],
        "commit": commit,
    }
    predecessor = Holder(origin.instance, keys.public_key(seed))
    members: dict[str, Json] = {
        "v": VERSION,
        "type": TYPE,
        "timestamp": spelling.time_text(timestamp),
        "predecessor": {**predecessor.to_json(), "savepoint": savepoint},
        "successor": {**successor.to_json(), "nonce": nonce.hex()},
        "between": [one.to_json() for one in between],
    }
    return parse(signed_line.seal(members, seed, "bootstrap") + b"\n")


def parse(data: bytes) -> Bootstrap:
    """The document of a file's bytes. The signature is not checked here: `fault` does.

    Raises MalformedError, or UnsupportedFormatError for a version above ours.
    """
    value = parse_file(data, limits.SMALL_DOCUMENT_BYTES - 1)
    version = value.get("v")
    if type(version) is int and version > VERSION:
        raise UnsupportedFormatError(f"BOOTSTRAP_VERIFICATION.json of version {version}")
    _SHAPE(value, "BOOTSTRAP_VERIFICATION.json")
    return _build(data, value)  # type: ignore[arg-type]  # _SHAPE saw to it


def _build(data: bytes, value: dict[str, dict[str, str]]) -> Bootstrap:
    before, after = value["predecessor"], value["successor"]
    between: list[dict[str, str]] = value["between"]  # type: ignore[assignment]  # _SHAPE
    return Bootstrap(
        data=data,
        timestamp=spelling.time_seconds(str(value["timestamp"])),
        predecessor=_holder(before),
        savepoint=Origin(**before["savepoint"]),  # type: ignore[arg-type]  # _SHAPE
        successor=_holder(after),
        nonce=bytes.fromhex(after["nonce"]),
        between=tuple(_holder(one) for one in between),
        signature=bytes.fromhex(str(value["signature"])),
    )


def _holder(value: dict[str, str]) -> Holder:
    return Holder(value["instance"], spelling.key_bytes(value["key"]))


def fault(document: Bootstrap, birth: Record) -> str:
    """Modulo zero: why `birth` is not that of the lawful successor that `document` names; nothing
    where it is.
    """
    name, key = birth.instance, birth.signer
    if birth.kind != "birth" or Holder(name, key) != document.successor:
        return f"it names {document.successor.instance} as the successor, under another key or name"
    if birth.body["nonce"] != document.nonce.hex():
        return "its nonce is not that of the birth record"
    return unlawful(document)


def unlawful(document: Bootstrap) -> str:
    """As `fault`, of what the document says alone: the signature is the predecessor's, the name is
    equal, the number is higher, and each number that was skipped is held by somebody in between.
    """
    before = Instance.parse(document.predecessor.instance)
    after = Instance.parse(document.successor.instance)
    held = [Instance.parse(one.instance) for one in document.between]
    skipped = range(before.number + 1, after.number)  # never listed: it may be a thousand million
    numbers = {one.number for one in held}
    same_key = document.successor.key == document.predecessor.key
    faults = [
        (not document.signature_holds(), f"it is not signed by the key of {before}"),
        (same_key, "predecessor and successor have one key"),
        (after.name != before.name, f"{after} has another name than {before}"),
        (after.number <= before.number, f"{after} does not come after {before}"),
        (any(one.name != before.name for one in held), "somebody else's name stands in between"),
        (any(one not in skipped for one in numbers), "a number in between is not in between"),
        (len(numbers) != len(skipped), "numbers are skipped that nobody in between holds"),
    ]
    return next((text for true, text in faults if true), "")
