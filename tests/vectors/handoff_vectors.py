"""Vectors of logs of threads and of receipts (docs/format.md, section 17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    ZEROS,
    Identity,
    Members,
    Value,
    base58,
    origin,
    record,
    save_body,
    sha256,
    spell,
    swap,
    vector,
    with_signature,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, SECOND = "t-0123456789abcdef", "t-fedcba9876543210"
SAVE = GABRIEL.line(spell(record("save", 7, "ab" * 32, save_body(7))))
CANDIDATE = "c-00112233445566ff"
BOUND: Members = {
    "driver": "registry",
    "place": "rows.tsv",
    "key": "bot",
    "value": "{session}",
    "reason": "",
}
NOWHERE: Members = {"driver": "none", "place": "", "key": "", "value": "", "reason": "a web form"}
SETTLE: Members = {
    "title": "Fix the parser v1",
    "successor": SECOND,
    "successor_title": "Fix the parser v2",
    "number": 1,
    "receipt": "cd" * 32,
    "from": origin(7),
}
CLOSED: tuple[str, str, Members] = ("close", FIRST, {"item": "OFFER-1", "evidence": "x"})
# kind, thread, body: every kind once at least
STORY: list[tuple[str, str, Members]] = [
    ("open", FIRST, {"project": "/p", "title": "Fix the parser", "session": "0d3a6b1e"}),
    ("offer", FIRST, {"item": "OFFER-1", "text": "Shall I write the docs?"}),
    ("work", FIRST, {"item": "ITEM-1", "text": "\u00e4\u6f22\U0001f9ed"}),
    ("bind", FIRST, {"item": "BIND-1", "text": "a row", **BOUND}),
    ("bind", FIRST, {"item": "BIND-2", "text": "a form", **NOWHERE}),
    ("hold_begin", FIRST, {"stand": "HOLD-1", "text": "benchmark"}),
    ("hold_end", FIRST, {"stand": "HOLD-1"}),
    ("action_begin", FIRST, {"stand": "ACTION-2", "text": "deployment", "process": None}),
    ("ask", FIRST, {}),
    ("action_end", FIRST, {"stand": "ACTION-2"}),
    ("action_begin", FIRST, {"stand": "ACTION-3", "text": "x", "process": {"pid": 7, "begun": 1}}),
    ("candidate", FIRST, {"candidate": CANDIDATE, "what": "todo", "text": "x", "offset": 17}),
    (
        "candidate",
        FIRST,
        {"candidate": "c-" + "0" * 16, "what": "task", "text": "", "offset": None},
    ),
    ("gather", FIRST, {"from": origin(7), "candidates": 2}),
    ("map", FIRST, {"candidate": CANDIDATE, "item": "ITEM-1"}),
    ("dismiss", FIRST, {"candidate": "c-" + "0" * 16, "reason": "done"}),
    ("settle", FIRST, SETTLE),
    ("close", FIRST, {"item": "ITEM-1", "evidence": "commit 1"}),
    ("accept", SECOND, {"predecessor": FIRST, "session": "99999999"}),
    ("take", SECOND, {"item": "OFFER-1", "value": None}),
    ("take", SECOND, {"item": "BIND-1", "value": "99999999"}),
    ("leave", SECOND, {"item": "BIND-2", "reason": "a web form"}),
    ("go", SECOND, {"item": "OFFER-1"}),
]


def _bare(seq: int, prev: str, told: tuple[str, str, Members], who: Identity) -> bytes:
    kind, thread, body = told
    head: Members = {
        "v": 1,
        "seq": seq,
        "prev": prev,
        "kind": kind,
        "timestamp": f"2026-11-30T13:{seq % 60:02}:49Z",
        "instance": who.instance,
        "thread": thread,
    }
    return spell({**head, **body, "signer": base58(who.key)})


def _signed(bare: bytes, who: Identity = GABRIEL, purpose: str = "handoff") -> bytes:
    return with_signature(bare, who.sign(bare, purpose).hex())


def _lines(story: list[tuple[str, str, Members]]) -> list[bytes]:
    """The successor's lines are another instance's."""
    made: list[bytes] = []
    for seq, told in enumerate(story, 1):
        who = STRANGER if told[1] == SECOND else GABRIEL
        prev = sha256(made[-1]) if made else ZEROS
        made.append(_signed(_bare(seq, prev, told, who), who))
    return made


LINES = _lines(STORY)


def logs() -> list[Members]:
    """All of them."""
    return [*_good(), *_broken(), *_disallowed()]


def _file(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _good() -> Iterator[Members]:
    whole = _file(*LINES)
    count = len(LINES)
    yield vector("whole", "ok", whole, lines=count, torn=0)
    yield vector("empty", "ok", b"", lines=0, torn=0)
    yield vector("last_lf_missing", "ok", whole[:-1], lines=count, torn=0)
    cut = _file(*LINES[:-1]) + LINES[-1][:-1]
    yield vector("torn", "ok", cut, lines=count - 1, torn=len(LINES[-1]) - 1)
    for name, story in _joined().items():
        lines = _lines(story)
        yield vector(name, "ok", _file(*lines), lines=len(lines), torn=0)
    other = _signed(_bare(count + 1, "ab" * 32, ("ask", SECOND, {}), GABRIEL))
    yield vector("tail_that_does_not_follow", "ok", whole + other, lines=count, torn=len(other))


THIRD = "t-" + "3" * 16
OWN: tuple[str, str, Members] = (
    "open",
    THIRD,
    {"project": "/p", "title": "mine", "session": "99999999"},
)


def _joined() -> dict[str, list[tuple[str, str, Members]]]:
    """A session accepts that has opened a thread of its own, which owes nothing."""
    close = STORY[17]
    before, after = STORY[:18], STORY[18:]
    added: tuple[str, str, Members] = ("work", THIRD, {"item": "ITEM-2", "text": "x"})
    done: tuple[str, str, Members] = ("close", THIRD, {**close[2], "item": "ITEM-2"})
    return {
        "own_thread_without_anything": [OWN, *before, *after],
        "own_thread_with_all_closed": [*before, OWN, added, done, *after],
    }


def _broken() -> Iterator[Members]:
    one, two, *rest = LINES[:4]
    bare = _bare(2, sha256(one), STORY[1], GABRIEL)
    seconds = {
        "changed": swap(two, "write the docs", "write the code"),
        "domain_of_records": _signed(bare, purpose="record"),
        "by_another_key": _signed(bare, STRANGER),
        "second_spelling": _signed(swap(bare, '"seq":2', '"seq": 2')),
        "blank_line": b"",
        "extra_member": _signed(swap(bare, '"item":', '"event":"X","item":')),
        "member_missing": _signed(swap(bare, '"item":"OFFER-1",', "")),
        "unknown_kind": _signed(swap(bare, '"kind":"offer"', '"kind":"gift"')),
        "kind_of_other_members": _signed(swap(bare, '"kind":"offer"', '"kind":"close"')),
        "thread_in_capitals": _signed(swap(bare, FIRST, FIRST.upper())),
        "item_zero": _signed(swap(bare, "OFFER-1", "OFFER-0")),
        "wrong_prev": _signed(_bare(2, "ab" * 32, STORY[1], GABRIEL)),
        "seq_left_out": _signed(_bare(3, sha256(one), STORY[1], GABRIEL)),
    }
    for name, line in seconds.items():
        yield vector(name, "tampered", _file(one, line))
    yield vector("first_is_not_1", "tampered", _file(two, *rest))
    yield vector("line_cut_out", "tampered", _file(one, *rest))
    yield vector("lines_swapped", "tampered", _file(two, one, *rest))
    yield vector("crlf", "tampered", _file(one + b"\r", two))
    newer = _signed(swap(bare, '"v":1', '"v":2'))
    yield vector("version_2", "unsupported", _file(one, newer))
    yield vector("version_2_after_a_fault", "tampered", _file(one, seconds["changed"], newer))


def _disallowed() -> Iterator[Members]:
    """Well formed, linked and signed, and what stands before does not allow it."""
    offer, accept = STORY[1], STORY[18]
    third = THIRD
    begun = STORY[:17]
    owing: tuple[str, str, Members] = ("work", third, {"item": "ITEM-2", "text": "x"})
    held: tuple[str, str, Members] = ("hold_begin", third, {"stand": "HOLD-4", "text": "x"})
    stories: dict[str, list[tuple[str, str, Members]]] = {
        "thread_that_nobody_opened": [offer],
        "thread_opened_twice": [STORY[0], STORY[0]],
        "session_of_two_threads": [STORY[0], ("open", third, STORY[0][2])],
        "item_out_of_turn": [STORY[0], ("offer", FIRST, {"item": "OFFER-2", "text": "x"})],
        "item_twice": [STORY[0], offer, offer],
        "closed_twice": [STORY[0], offer, CLOSED, CLOSED],
        "closed_elsewhere": [*begun, accept, ("close", SECOND, STORY[17][2])],
        "hold_ended_twice": [STORY[0], STORY[5], STORY[6], STORY[6]],
        "candidate_twice": [STORY[0], STORY[11], STORY[11]],
        "candidate_mapped_to_nothing": [STORY[0], STORY[11], STORY[14]],
        "candidate_answered_twice": [STORY[0], STORY[2], *STORY[11:12], STORY[14], STORY[14]],
        "settled_without_gathering": [STORY[0], STORY[16]],
        "settled_with_a_candidate_open": [STORY[0], STORY[11], STORY[13], STORY[16]],
        "settled_on_another_savepoint": [
            STORY[0],
            STORY[13],
            ("settle", FIRST, {**SETTLE, "from": origin(8)}),
        ],
        "settled_in_an_evaluation": [STORY[0], STORY[5], STORY[13], STORY[16]],
        "settled_twice": [*begun, ("settle", FIRST, {**SETTLE, "successor": third})],
        "added_to_a_settled_thread": [*begun, ("work", FIRST, {"item": "ITEM-2", "text": "x"})],
        "added_before_it_is_accepted": [*begun, ("work", SECOND, {"item": "ITEM-2", "text": "x"})],
        "added_before_all_is_taken": [
            *(*begun, accept),
            ("work", SECOND, {"item": "ITEM-2", "text": "x"}),
        ],
        "accepted_twice": [*begun, accept, ("accept", SECOND, {**accept[2], "session": "7"})],
        "accepted_by_the_same_session": [
            *begun,
            ("accept", SECOND, {**accept[2], "session": "0d3a6b1e"}),
        ],
        "accepted_by_a_session_that_owes": [*begun, OWN, owing, accept],
        "accepted_by_a_session_that_evaluates": [*begun, OWN, held, accept],
        "accepted_by_a_session_with_a_candidate": [
            *begun,
            OWN,
            (*STORY[11][:1], third, STORY[11][2]),
            accept,
        ],
        "added_to_the_thread_that_ended_so": [*begun, OWN, accept, owing],
        "taken_before_it_is_accepted": [*begun, STORY[19]],
        "taken_twice": [*begun, accept, STORY[19], STORY[19]],
        "taken_after_it_was_closed": [
            *STORY[:19],
            ("take", SECOND, {"item": "ITEM-1", "value": None}),
        ],
        "binding_taken_without_a_read_back": [
            *(*begun, accept),
            ("take", SECOND, {"item": "BIND-1", "value": None}),
        ],
        "offer_taken_with_a_read_back": [
            *(*begun, accept),
            ("take", SECOND, {"item": "OFFER-1", "value": "x"}),
        ],
        "go_on_work": [*STORY[:3], ("go", FIRST, {"item": "ITEM-1"})],
        "go_on_what_is_closed": [*STORY[:2], CLOSED, ("go", FIRST, {"item": "OFFER-1"})],
    }
    for name, story in stories.items():
        yield vector(name, "tampered", _file(*_lines(story)))


def _receipt(**more: Value) -> bytes:
    members: Members = {
        "v": 1,
        "type": "HANDOFF_RECEIPT",
        "timestamp": "2026-11-30T13:26:49Z",
        "predecessor": {"thread": FIRST, "title": "Fix the parser v1"},
        "successor": {"thread": SECOND, "title": "Fix the parser v2"},
        "number": 1,
        "items": [
            {"item": "OFFER-1", "text": "Shall I write the docs?", "binding": None},
            {"item": "BIND-1", "text": "a row", "binding": dict(BOUND)},
        ],
        "savepoint": origin(7),
        "record": SAVE.decode(),
        "witnesses": {"local": "VERIFIED", "git": "PENDING", "chain": "OFF"},
        "unverified": ["VERIFY-4"],
        "project": "/p",
        "session": "0d3a6b1e",
        "log": {"seq": 16, "record": sha256(LINES[15])},
        "document": "ef" * 32,
        "instance": GABRIEL.instance,
        "signer": base58(GABRIEL.key),
    }
    return spell(members | more)


def receipts() -> list[Members]:
    """All of them."""
    bare = _receipt()
    good = _signed(bare, purpose="receipt") + b"\n"
    items: list[Value] = [{"item": "OFFER-1", "text": "x", "binding": None}] * 2
    birth = GABRIEL.line(spell(record("birth", 1, ZEROS, {"nonce": GABRIEL.nonce.hex()})))
    wrong = {
        "item_twice": {"items": items},
        "record_of_another_savepoint": {"savepoint": origin(8)},
        "record_that_is_no_save": {"record": birth.decode()},
        "record_with_lf": {"record": SAVE.decode() + "\n"},
        "verdict_unknown": {"witnesses": {"local": "FINE"}},
        "log_of_nothing": {"log": {"seq": 0, "record": ZEROS}},
        "number_zero": {"number": 0},
        "other_type": {"type": "RECEIPT"},
        "extra_member_of_an_item": {"items": [{**dict(items[0]), "state": "open"}]},  # type: ignore[arg-type]  # an object
    }
    made = [
        vector("good", "ok", good),
        vector("of_nothing", "ok", _signed(_receipt(items=[]), purpose="receipt") + b"\n"),
        vector("changed", "tampered", swap(good, "write the docs", "write the code")),
        vector("domain_of_the_log", "tampered", _signed(bare) + b"\n"),
        vector("by_another_key", "tampered", _signed(bare, STRANGER, "receipt") + b"\n"),
        vector("lf_missing", "malformed", good[:-1]),
        vector("second_spelling", "malformed", swap(good, '"number":1', '"number": 1')),
        vector("version_2", "unsupported", _signed(_receipt(v=2), purpose="receipt") + b"\n"),
    ]
    for name, more in wrong.items():
        data = _signed(_receipt(**more), purpose="receipt") + b"\n"  # type: ignore[arg-type]  # members
        made.append(vector(name, "malformed", data))
    return made
