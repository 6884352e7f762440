"""Vectors of trusted heads, and of what one says of an index (docs/format.md, section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    ZEROS,
    Members,
    Value,
    base58,
    birth,
    record,
    save_body,
    sha256,
    spell,
    swap,
    vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LOST = "cd" * 32  # hash of a record that was lost
_GENESIS = base58(bytes(range(32)))


def _head(seq: int, record_hash: str, *gaps: tuple[int, int], **more: Value) -> bytes:
    members: Members = {
        "v": 1,
        "seq": seq,
        "record": record_hash,
        "recreated": False,
        "gaps": [{"first": first, "last": last} for first, last in gaps],
        "remote_tip": None,
        "ledgers": {},
    }
    return spell(members | more) + b"\n"


def heads() -> list[Members]:
    """Files, and whether a reader may take them for a head."""
    entry: Members = {"seq": 3, "entry": "ef" * 32}
    full = _head(7, "ab" * 32, (3, 4), remote_tip="c0ffee", ledgers={_GENESIS: entry})
    made = [
        vector("full", "ok", full),
        vector("of_nothing", "ok", _head(0, ZEROS)),
        vector("recreated", "ok", _head(7, "ab" * 32, recreated=True)),
        vector("empty", "malformed", b""),
        vector("cut", "malformed", full[:-9]),
        vector("lf_missing", "malformed", full[:-1]),
        vector("two_lf", "malformed", full + b"\n"),
        vector("zeros", "malformed", b"\0" * len(full)),
    ]
    for name, old, new in (
        ("second_spelling", '"recreated":false', '"recreated": false'),
        ("version_0", '{"v":1', '{"v":0'),
        ("negative", '"seq":7', '"seq":-7'),
        ("recreated_is_a_number", "false", "0"),
        ("hash_in_capitals", "ab" * 32, "AB" * 32),
        ("gap_in_another_order", '"first":3,"last":4', '"last":4,"first":3'),
        ("gaps_are_null", '[{"first":3,"last":4}]', "null"),
        ("entry_without_hash", f',"entry":"{"ef" * 32}"', ""),
        ("remote_tip_is_a_number", '"c0ffee"', "7"),
        ("extra_member", '"v":1', '"v":1,"x":1'),
        ("member_missing", '"recreated":false,', ""),
    ):
        made.append(vector(name, "malformed", swap(full, old, new)))
    newer = swap(full, '"v":1', '"v":2,"x":1')
    return [*made, vector("version_2", "unsupported", newer)]


def verdicts() -> list[Members]:
    """`index` is whole lines that hold by themselves; `verdict` is what `head` makes of it."""
    return [
        {"name": name, "verdict": verdict, "head": head.decode(), "index": index.decode()}
        for name, verdict, head, index in [*_whole(), *_gaps()]
    ]


def _file(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _lines(count: int) -> list[bytes]:
    found = [GABRIEL.line(spell(birth()))]
    for seq in range(2, count + 1):
        found.append(GABRIEL.line(spell(record("save", seq, sha256(found[-1]), save_body(seq)))))
    return found


def _whole() -> Iterator[tuple[str, str, bytes, bytes]]:
    lines = _lines(4)
    index = _file(*lines)
    yield "newest", "VERIFIED", _head(4, sha256(lines[3])), index
    yield "lags", "VERIFIED", _head(2, sha256(lines[1])), index
    yield "seen_nothing", "VERIFIED", _head(0, ZEROS), index
    yield "ends_below", "ROLLED_BACK", _head(5, LOST), index
    yield "fork_at_the_end", "ROLLED_BACK", _head(4, LOST), index
    yield "fork_before", "ROLLED_BACK", _head(2, LOST), index


def _gaps() -> Iterator[tuple[str, str, bytes, bytes]]:
    """Records 3 and 4 are missing, record 5 names the lost one, and record 6 may accept that."""
    before = _lines(2)
    after = GABRIEL.line(spell(record("save", 5, LOST, save_body(5))))
    index, seen = _file(*before, after), sha256(after)
    yield "gap_unknown", "TAMPERED", _head(5, seen), index
    yield "gap_listed", "ROLLED_BACK", _head(5, seen, (3, 4)), index
    yield "gap_listed_in_part", "TAMPERED", _head(5, seen, (3, 3)), index
    yield "gap_listed_wider", "TAMPERED", _head(5, seen, (2, 4)), index
    yield "gone_on_from", "ROLLED_BACK", _head(4, LOST), index
    yield "gone_on_from_another", "TAMPERED", _head(4, "ab" * 32), index
    yield "gap_ends_elsewhere", "TAMPERED", _head(3, LOST), index
    for name, verdict, last, gaps in (
        ("gap_accepted", "VERIFIED", 4, [(3, 4)]),
        ("gap_accepted_and_unknown", "VERIFIED", 4, []),
        ("gap_accepted_in_part", "ROLLED_BACK", 3, [(3, 4)]),
        ("gap_accepted_in_part_and_unknown", "TAMPERED", 3, []),
    ):
        body: Members = {"reason": "gap", "first": 3, "last": last, "tip": None}
        accept = GABRIEL.line(spell(record("accept", 6, seen, body)))
        yield name, verdict, _head(6, sha256(accept), *gaps), _file(*before, after, accept)
        if name == "gap_accepted":
            lost = _head(7, LOST, *gaps)
            yield "gap_accepted_and_ends_below", "ROLLED_BACK", lost, _file(*before, after, accept)
