"""The bytes of an index that is whole, ways to write others, and the verdict on them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from savepoint.core import keys, record, spelling
from savepoint.core.spelling import Instance
from savepoint.core.verdicts import Lack, Verdict, Witness
from savepoint.core.verify_index import INDEX_RULES, Index, Names

if TYPE_CHECKING:
    from savepoint.core.chain import Gap
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

NOW = 1_790_000_000
SEED = bytes(range(32))
OTHER_SEED = bytes(range(1, 33))
NAME = "Gabriel #215"
SLUG = Instance.parse(NAME).slug(keys.public_key(SEED))
NAMES = Names(SLUG, f"instances/{SLUG}/index.jsonl", f"trusted/{SLUG}.json")


class Head(NamedTuple):
    seq: int
    record: str
    recreated: bool = False
    gaps: tuple[Gap, ...] = ()


def make(
    kind: str,
    seq: int,
    prev: str,
    body: dict[str, Json],
    *,
    seed: bytes = SEED,
    instance: str = NAME,
) -> Record:
    return record.make(
        kind, seq=seq, prev=prev, timestamp=NOW + seq, instance=instance, seed=seed, body=body
    )


def birth(seed: bytes = SEED, instance: str = NAME) -> Record:
    body: dict[str, Json] = {"nonce": "00" * 16}
    return make("birth", 1, spelling.ZERO_DIGEST, body, seed=seed, instance=instance)


def save(seq: int, prev: str, *, seed: bytes = SEED, text: str = "a") -> Record:
    body: dict[str, Json] = {
        "session_id": "s",
        "from": None,
        "trigger": "manual",
        "snapshot_hash": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "snapshot_size_bytes": 1,
        "snapshot_file": "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z.json",
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": True,
    }
    return make("save", seq, prev, body, seed=seed)


def accept(seq: int, prev: str, gap: Gap | None, *, seed: bytes = SEED) -> Record:
    first, last = gap or (None, None)
    reason = "gap" if gap else "recreated"
    body: dict[str, Json] = {"reason": reason, "first": first, "last": last, "tip": None}
    return make("accept", seq, prev, body, seed=seed)


def chain(count: int) -> list[Record]:
    """A birth and savepoints up to `count` records."""
    made = [birth()]
    while len(made) < count:
        made.append(save(len(made) + 1, made[-1].hash))
    return made


CHAIN = chain(6)


def lines(*records: Record | bytes) -> bytes:
    return b"".join((o if isinstance(o, bytes) else o.line) + b"\n" for o in records)


def head(one: Record, *gaps: Gap, recreated: bool = False) -> Head:
    return Head(one.seq, one.hash, recreated, gaps)


WHOLE = lines(*CHAIN)
SEEN = head(CHAIN[-1])


def judge(data: bytes | Lack, seen: Head | Lack | None = SEEN) -> tuple[Verdict, set[str]]:
    """The verdict of the whole index, and the rules that did not pass."""
    found = Index(data, seen, NAMES).findings()
    assert {one.rule for one in found} == set(INDEX_RULES)
    return Witness(found).verdict, {one.rule for one in found if one.result != "pass"}


def verdicts(data: bytes, seen: Head | Lack | None = SEEN) -> dict[int, Verdict]:
    """The verdict of each savepoint by its sequence."""
    index = Index(data, seen, NAMES)
    return {one.seq: Witness(index.findings(line)).verdict for one, line in index.saves}


def rewritten(one: Record, **members: Json) -> bytes:
    """Its line with other members, the old signature kept."""
    value = json.loads(one.line)
    value.update(members)
    return json.dumps(value, separators=(",", ":")).encode()
