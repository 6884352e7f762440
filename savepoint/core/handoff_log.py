"""The log of threads and of what they owe: signed, hash-linked lines (docs/format.md, section 17).

The rules are those of the index: a record is its line, one spelling, and what was signed is what is
stored, hashed and parsed. Here instances share one chain, since what one owes the next takes over;
so each line is signed by the key that it names.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import keys, record, schema, signed_line, spelling
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late

if TYPE_CHECKING:
    import re

    from savepoint.core.strict_json import Json

VERSION = 1
DRIVERS = ("registry", "schedule", "upstream", "command", "none")
CANDIDATES = (
    *("todo", "question", "offer", "task", "cron", "pull_request"),
    *("unpushed", "uncommitted"),
)

_THREAD = late(r"t-[0-9a-f]{16}")
_ITEM = late(r"(?:OFFER|ITEM|BIND)-[1-9][0-9]{0,8}")
_STAND = late(r"(?:HOLD|ACTION)-[1-9][0-9]{0,8}")
_CANDIDATE = late(r"c-[0-9a-f]{16}")


def _fitting(pattern: re.Pattern[str], what: str) -> schema.Check:
    def check(value: Json, where: str) -> None:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise MalformedError(f"{where} is not {what}")

    return check


_digest = schema.spelled(spelling.digest)
thread_id = _fitting(_THREAD, "the id of a thread")
item_id = _fitting(_ITEM, "the id of an item")
_stand_id = _fitting(_STAND, "the id of a hold or an action")
_candidate_id = _fitting(_CANDIDATE, "the id of a candidate")
_session = schema.nullable(schema.spelled(spelling.session_key))

_HEAD: dict[str, schema.Check] = {
    "v": schema.one_of(VERSION),
    "seq": schema.positive,
    "prev": _digest,
    "kind": schema.text,
    "timestamp": schema.spelled(spelling.time_seconds),
    "instance": schema.spelled(spelling.Instance.parse),
    "thread": thread_id,
}
BINDING: dict[str, schema.Check] = {
    "driver": schema.one_of(*DRIVERS),
    "place": schema.text,
    "key": schema.text,
    "value": schema.text,
    "reason": schema.text,
}
BODIES: dict[str, dict[str, schema.Check]] = {
    "open": {"project": schema.text, "title": schema.text, "session": _session},
    "ask": {},
    "offer": {"item": item_id, "text": schema.text},
    "work": {"item": item_id, "text": schema.text},
    "bind": {"item": item_id, "text": schema.text, **BINDING},
    "close": {"item": item_id, "evidence": schema.text},
    "hold_begin": {"stand": _stand_id, "text": schema.text},
    "hold_end": {"stand": _stand_id},
    "action_begin": {
        "stand": _stand_id,
        "text": schema.text,
        "process": schema.nullable(schema.members({"pid": schema.positive, "begun": schema.count})),
    },
    "action_end": {"stand": _stand_id},
    "candidate": {
        "candidate": _candidate_id,
        "what": schema.one_of(*CANDIDATES),
        "text": schema.text,
        "offset": schema.nullable(schema.count),
    },
    "gather": {"from": record.ORIGIN, "candidates": schema.count},
    "map": {"candidate": _candidate_id, "item": item_id},
    "dismiss": {"candidate": _candidate_id, "reason": schema.text},
    "settle": {
        "title": schema.text,
        "successor": thread_id,
        "successor_title": schema.text,
        "number": schema.positive,
        "receipt": _digest,
        "from": record.ORIGIN,
    },
    "accept": {"predecessor": thread_id, "session": schema.spelled(spelling.session_key)},
    "take": {"item": item_id, "value": schema.nullable(schema.text)},
    "leave": {"item": item_id, "reason": schema.text},
    "go": {"item": item_id},
}
_SHAPES = {kind: schema.members(_HEAD | body | signed_line.TAIL) for kind, body in BODIES.items()}


class Entry(NamedTuple):
    """One line. `line` has no LF; `body` holds the members of its kind."""

    line: bytes
    seq: int
    prev: str
    kind: str
    timestamp: int  # Unix seconds
    instance: str
    thread: str
    signer: bytes  # 32 bytes
    signature: bytes  # 64 bytes
    body: dict[str, Json]

    @property
    def hash(self) -> str:
        """What `prev` of the next line names."""
        return hashlib.sha256(self.line).hexdigest()

    def signature_holds(self) -> bool:
        """Is the line signed by the key that it names?"""
        return signed_line.holds(self.line, self.signer, self.signature, "handoff")


class Author(NamedTuple):
    """Who signs: an instance and its key."""

    instance: str  # `NAME #N`
    seed: bytes  # 32


class Draft(NamedTuple):
    """What a line is to say."""

    kind: str
    thread: str
    body: dict[str, Json]


def make(author: Author, timestamp: int, seq: int, prev: str, draft: Draft) -> Entry:
    """A new signed line. Raises MalformedError if what was given cannot be one."""
    members: dict[str, Json] = {
        "v": VERSION,
        "seq": seq,
        "prev": prev,
        "kind": draft.kind,
        "timestamp": spelling.time_text(timestamp),
        "instance": author.instance,
        "thread": draft.thread,
        **draft.body,
        "signer": spelling.base58(keys.public_key(author.seed)),
    }
    return parse(signed_line.seal(members, author.seed, "handoff"))


def parse(line: bytes) -> Entry:
    """The entry of a line without its LF; its signature is not checked here.

    Raises MalformedError, or UnsupportedFormatError for a version above ours.
    """
    kind, value = signed_line.read(line, _SHAPES, VERSION, "line of the log of threads")
    return Entry(
        line=line,
        seq=value["seq"],  # type: ignore[arg-type]  # _SHAPES saw to it
        prev=str(value["prev"]),
        kind=kind,
        timestamp=spelling.time_seconds(str(value["timestamp"])),
        instance=str(value["instance"]),
        thread=str(value["thread"]),
        signer=spelling.key_bytes(str(value["signer"])),
        signature=bytes.fromhex(str(value["signature"])),
        body={name: value[name] for name in BODIES[kind]},
    )


class Chain:
    """A log read whole: `entries` as far as it holds, the first `fault`, and the `torn` tail.

    As in an index, bytes behind the last LF count as a line if they are a whole good one that
    belongs there; else they are a torn tail, and were never acknowledged.
    """

    def __init__(self, data: bytes) -> None:
        *lines, self.torn = data.split(b"\n")
        self.entries: list[Entry] = []
        self.fault: SavepointError | None = None
        for line in lines:
            try:
                self.entries.append(self._next(line))
            except SavepointError as failure:
                where = f"line {len(self.entries) + 1} of the log of threads"
                self.fault = type(failure)(f"{where}: {failure.message}")
                return
        try:
            self.entries.append(self._next(self.torn))
        except SavepointError:
            return
        self.torn = b""

    @property
    def next(self) -> tuple[int, str]:
        """Sequence and `prev` of the line after the last."""
        last = self.entries[-1] if self.entries else None
        return (last.seq + 1, last.hash) if last else (1, spelling.ZERO_DIGEST)

    def _next(self, line: bytes) -> Entry:
        one = parse(line)
        if (one.seq, one.prev) != self.next:
            raise MalformedError(f"record {one.seq} does not follow the one before it")
        if not one.signature_holds():
            raise MalformedError(f"the signature of record {one.seq} does not hold")
        return one
