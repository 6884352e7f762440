"""Records, indexes and snapshots that are as they must be, for the tests of core to spoil."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from savepoint.core import record, segments, spelling
from savepoint.core.segments import Segment
from tests.core.values import counts, digests, session_keys, words

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

SEED = hashlib.sha256(b"a seed of the tests").digest()
OTHER_SEED = hashlib.sha256(b"another one").digest()
INSTANCE = "Gabriel #215"
NOW = 1_796_045_209  # Unix seconds


def _ordered(shape: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of these members in this order, which `fixed_dictionaries` does not keep."""
    return st.tuples(*shape.values()).map(lambda values: dict(zip(shape, values, strict=True)))


hashes = digests.map("sha256:{}".format)
keys = st.binary(min_size=32, max_size=32).map(spelling.base58)
origins = _ordered({"signer": keys, "seq": st.integers(1, 2**64 - 1), "snapshot_hash": hashes})
_ranges = st.tuples(st.integers(1, 2**32), st.integers(0, 2**32)).map(lambda p: (p[0], sum(p)))
bodies: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "save": _ordered(
        {
            "session_id": session_keys,
            "from": st.none() | origins,
            "trigger": words,
            "snapshot_hash": hashes,
            "snapshot_size_bytes": counts,
            "snapshot_file": st.integers(1, 2**32).map(
                "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z_{}.json".format
            ),
            "layer_1_status": st.just("SAVED_LOCALLY"),
            "tokens_used_this_session": st.none() | counts,
            "tokens_remaining": st.none() | counts,
            "context_utilization_percent": st.none() | counts,
            "consciousness_preserved": st.booleans(),
        }
    ),
    "restore": _ordered({"from": origins, "unverified": st.lists(words, max_size=3)}),
    "retire": st.just({}),
    "accept": st.one_of(
        _ranges.map(lambda r: {"reason": "gap", "first": r[0], "last": r[1], "tip": None}),
        st.tuples(_ranges | st.just((None, None)), st.none() | digests).map(
            lambda p: {"reason": "remote", "first": p[0][0], "last": p[0][1], "tip": p[1]}
        ),
        st.just({"reason": "recreated", "first": None, "last": None, "tip": None}),
    ),
}


def birth(seed: bytes = SEED) -> Record:
    """The first record."""
    return record.make(
        "birth",
        seq=1,
        prev=spelling.ZERO_DIGEST,
        timestamp=NOW,
        instance=INSTANCE,
        seed=seed,
        body={"nonce": "a0" * 16},
    )


def save(before: Record, seq: int = 0, prev: str = "", seed: bytes = SEED) -> Record:
    """A savepoint behind `before`."""
    return record.make(
        "save",
        seq=seq or before.seq + 1,
        prev=prev or before.hash,
        timestamp=NOW + before.seq,
        instance=INSTANCE,
        seed=seed,
        body={
            "session_id": "a-session",
            "from": None,
            "trigger": "auto",
            "snapshot_hash": f"sha256:{before.seq:064x}",
            "snapshot_size_bytes": 4096,
            "snapshot_file": "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z.json",
            "layer_1_status": "SAVED_LOCALLY",
            "tokens_used_this_session": None,
            "tokens_remaining": None,
            "context_utilization_percent": 85,
            "consciousness_preserved": True,
        },
    )


def lines(count: int) -> list[bytes]:
    """An index of that many records, without the LFs."""
    records = [birth()]
    while len(records) < count:
        records.append(save(records[-1]))
    return [one.line for one in records]


def segment(raw: bytes) -> Segment:
    """A segment whose place is made up."""
    digest = hashlib.sha256(raw).hexdigest()
    return Segment(digest, len(raw), raw.count(b"\n"), "cd" * 32, 24, len(raw) + 9)


def stored(path: Json, *pieces: bytes) -> dict[str, Json]:
    """A file of these segments, as a snapshot lists it."""
    listed = [segment(one) for one in pieces]
    return {
        "path": path,
        "bytes": sum(one.bytes for one in listed),
        "root": segments.root_of(listed),
        "segments": [one.to_json() for one in listed],
    }


def document() -> dict[str, Json]:
    """A snapshot without its integrity, nearly nothing in it."""
    return {
        "format": 1,
        "type": "PRECOMPACT_SAVEPOINT",
        "timestamp_iso8601": spelling.time_text(NOW),
        "instance_id": INSTANCE,
        "instance_number": 215,
        "salt": "00" * 16,
        "session_token_budget": None,
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": 85,
        "token_source": None,
        "conversation_history": {
            "agent": "claude",
            "client_version": None,
            "session_id": "a-session",
            "scope": "main",
            "message_count": 2,
            "records": 3,
            "sessions": {"a-session": 3},
            "compactions": 0,
            "torn_tail_bytes": 0,
            "prefix_check": "full",
            "transcript": stored("a.jsonl", b"one\n", b"two\n"),
            "companions": [stored("a/agent.jsonl", b"three\n")],
        },
        "session_state": None,
        "session_current": None,
        "loaded_files": {},
        "git_state": {
            "current_commit": None,
            "branch": None,
            "remotes": {},
            "status": "none",
            "last_push": "unknown",
            "object_format": None,
            "operation": None,
            "roots": {"project": "/p", "worktree": None},
            "changes": {"files": [], "deleted": [], "excluded": [], "omitted": None},
        },
        "omitted": [],
        "notes": [],
        "checkpoint_verification": {
            "modulo_zero": True,
            "bootstrap_confirmed": True,
            "contextual_priming": "COMPLETE",
            "standing_verified": True,
        },
    }
