"""Records: the signed, hash-linked lines of an instance's index (docs/format.md, section 3).

A record is its line: the bytes that were signed are the bytes that are stored, hashed and parsed.
"""

from __future__ import annotations

from functools import lru_cache

from savepoint.core import keys, schema, signed_line, spelling
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

VERSION = 1
_LINES_KEPT = 16  # parsed last: a save meets the first, the last and its own several times
EVENTS = {
    "birth": "INSTANCE_BORN",
    "save": "SAVEPOINT_CREATED",
    "restore": "INSTANCE_RESTORED",
    "retire": "KEY_RETIRED",
    "accept": "STATE_ACCEPTED",
}

_digest = schema.spelled(spelling.digest)
_snapshot_hash = schema.spelled(spelling.prefixed_digest)
_key = schema.spelled(spelling.key_bytes)
_word = schema.spelled(spelling.word)
_nullable_count = schema.nullable(schema.count)

ORIGIN = schema.members({"signer": _key, "seq": schema.positive, "snapshot_hash": _snapshot_hash})

_HEAD: dict[str, schema.Check] = {
    "v": schema.one_of(VERSION),
    "seq": schema.positive,
    "prev": _digest,
    "kind": schema.one_of(*EVENTS),
    "event": schema.one_of(*EVENTS.values()),
    "timestamp": schema.spelled(spelling.time_seconds),
    "instance": schema.spelled(spelling.Instance.parse),
}
_BODIES: dict[str, dict[str, schema.Check]] = {
    "birth": {"nonce": schema.hexadecimal(keys.NONCE_BYTES)},
    "save": {
        "session_id": schema.spelled(spelling.session_key),
        "from": schema.nullable(ORIGIN),
        "trigger": _word,
        "snapshot_hash": _snapshot_hash,
        "snapshot_size_bytes": schema.count,
        "snapshot_file": schema.spelled(spelling.snapshot_file),
        "layer_1_status": schema.one_of("SAVED_LOCALLY"),
        "tokens_used_this_session": _nullable_count,
        "tokens_remaining": _nullable_count,
        "context_utilization_percent": _nullable_count,
        "consciousness_preserved": schema.truth,
    },
    "restore": {"from": ORIGIN, "unverified": schema.array(_word)},
    "retire": {},
    "accept": {  # what the owner accepted: a gap, a foreign tip, a trusted head made anew
        "reason": schema.one_of("gap", "remote", "recreated"),
        "first": schema.nullable(schema.positive),
        "last": schema.nullable(schema.positive),
        "tip": schema.nullable(_digest),
    },
}
_SHAPES = {kind: schema.members(_HEAD | body | signed_line.TAIL) for kind, body in _BODIES.items()}


class Record(NamedTuple):
    """One line of the index. `line` has no LF; `body` holds the members of the record's kind."""

    line: bytes
    seq: int
    prev: str
    kind: str
    timestamp: int  # Unix seconds
    instance: str
    signer: bytes  # 32 bytes
    signature: bytes  # 64 bytes
    body: dict[str, Json]

    @property
    def hash(self) -> str:
        """What `prev` of the next record and `rec` of an entry name: SHA-256 of the line."""
        import hashlib  # not for a fire that finds nothing new

        return hashlib.sha256(self.line).hexdigest()

    @property
    def snapshot_hash(self) -> str:
        """Bare hex; of a save only."""
        return str(self.body["snapshot_hash"]).removeprefix("sha256:")

    @property
    def snapshot_file(self) -> str:
        """`logs/precompact-saves/snapshot_….json`, below the instance's folder; of a save only."""
        return str(self.body["snapshot_file"])

    def signature_holds(self) -> bool:
        """Is the line signed by the key that it names?"""
        return signed_line.holds(self.line, self.signer, self.signature, "record")

    def origin(self) -> dict[str, Json]:
        """What `from` of a later record says of this savepoint."""
        return {
            "signer": spelling.base58(self.signer),
            "seq": self.seq,
            "snapshot_hash": self.body["snapshot_hash"],
        }


def make(
    kind: str,
    *,
    seq: int,
    prev: str,
    timestamp: int,
    instance: str,
    seed: bytes,
    body: dict[str, Json],
) -> Record:
    """A new signed record. `body` has the members of its kind in their order.

    Raises MalformedError if what was given cannot be a record.
    """
    members: dict[str, Json] = {
        "v": VERSION,
        "seq": seq,
        "prev": prev,
        "kind": kind,
        "event": EVENTS[kind],
        "timestamp": spelling.time_text(timestamp),
        "instance": instance,
        **body,
        "signer": spelling.base58(keys.public_key(seed)),
    }
    return parse(signed_line.seal(members, seed, "record"))


@lru_cache(maxsize=_LINES_KEPT)
def parse(line: bytes) -> Record:
    """The record of a line without its LF. `make` and `parse` are the only ways to a Record.

    Raises MalformedError, or UnsupportedFormatError for a version above ours. The signature is
    not checked here: `signature_holds` does, since key and chain belong to the same question.
    """
    kind, value = signed_line.read(line, _SHAPES, VERSION, "record")
    return _build(line, kind, value)


def _build(line: bytes, kind: str, value: dict[str, Json]) -> Record:
    seq = value["seq"]
    if value["event"] != EVENTS[kind]:
        raise MalformedError("a record's event does not fit its kind")
    if not isinstance(seq, int) or (kind == "birth") != (seq == 1):
        raise MalformedError("a birth, and nothing else, is record 1")
    if kind == "birth" and value["prev"] != spelling.ZERO_DIGEST:
        raise MalformedError("a birth follows no record")
    body = {name: value[name] for name in _BODIES[kind]}
    if kind == "accept" and not _coherent(**body):
        raise MalformedError("an accept record's first, last and tip do not fit its reason")
    return Record(
        line=line,
        seq=seq,
        prev=str(value["prev"]),
        kind=kind,
        timestamp=spelling.time_seconds(str(value["timestamp"])),
        instance=str(value["instance"]),
        signer=spelling.key_bytes(str(value["signer"])),
        signature=bytes.fromhex(str(value["signature"])),
        body=body,
    )


def _coherent(reason: Json, first: Json, last: Json, tip: Json) -> bool:
    """A gap names its range; a foreign tip itself, and the range set aside for it, if any."""
    ranged = isinstance(first, int) and isinstance(last, int) and first <= last
    nothing = first is None and last is None
    if reason == "remote":
        return ranged or nothing
    return tip is None and (ranged if reason == "gap" else nothing)
