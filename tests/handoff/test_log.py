"""The log: one spelling, one chain; torn it is repaired, altered it is TAMPERED."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import handoff_log, keys, limits, spelling
from savepoint.core.errors import (
    DiskError,
    HandoffError,
    MalformedError,
    RolledBackError,
    SavepointError,
    TamperedError,
    UnsupportedFormatError,
)
from savepoint.core.handoff_log import Author, Chain, Draft
from savepoint.store import durable
from savepoint.store.files import read_bounded
from savepoint.store.layout import THREADS
from succession.handoff import log
from tests.handoff.threads import NOW, SECOND, Threads

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

SEED = bytes(range(32))
AUTHOR = Author("Gabriel #215", SEED)
THREAD = "t-0123456789abcdef"
PREV = "ab" * 32
DIGEST = "cd" * 32
ORIGIN: Json = {
    "signer": spelling.base58(keys.public_key(SEED)),
    "seq": 7,
    "snapshot_hash": f"sha256:{DIGEST}",
}
BODIES: dict[str, dict[str, Json]] = {
    "open": {"project": "/p", "title": "x", "session": None},
    "ask": {},
    "offer": {"item": "OFFER-1", "text": "a"},
    "work": {"item": "ITEM-1", "text": "a"},
    "bind": {
        "item": "BIND-1",
        "text": "a",
        "driver": "none",
        "place": "",
        "key": "",
        "value": "",
        "reason": "b",
    },
    "close": {"item": "OFFER-1", "evidence": "a"},
    "hold_begin": {"stand": "HOLD-1", "text": "a"},
    "hold_end": {"stand": "HOLD-1"},
    "action_begin": {"stand": "ACTION-2", "text": "a", "process": {"pid": 7, "begun": 0}},
    "action_end": {"stand": "ACTION-2"},
    "candidate": {"candidate": "c-0123456789abcdef", "what": "todo", "text": "a", "offset": 0},
    "gather": {"from": ORIGIN, "candidates": 1},
    "map": {"candidate": "c-0123456789abcdef", "item": "OFFER-1"},
    "dismiss": {"candidate": "c-0123456789abcdef", "reason": "a"},
    "settle": {
        "title": "x v1",
        "successor": "t-fedcba9876543210",
        "successor_title": "x v2",
        "number": 1,
        "receipt": DIGEST,
        "from": ORIGIN,
    },
    "accept": {"predecessor": THREAD, "session": SECOND},
    "take": {"item": "OFFER-1", "value": None},
    "leave": {"item": "BIND-1", "reason": "a"},
    "go": {"item": "OFFER-1"},
}


def line(kind: str, **more: Json) -> bytes:
    return handoff_log.make(
        AUTHOR, NOW, 3, PREV, Draft(kind, THREAD, {**BODIES[kind], **more})
    ).line


def test_every_kind_has_an_example() -> None:
    assert BODIES.keys() == handoff_log.BODIES.keys()


@pytest.mark.parametrize("kind", BODIES)
def test_a_line_is_what_it_says(kind: str) -> None:
    one = handoff_log.parse(line(kind))
    assert (one.kind, one.body, one.signature_holds()) == (kind, BODIES[kind], True)
    again = handoff_log.make(
        AUTHOR, one.timestamp, one.seq, one.prev, Draft(one.kind, one.thread, one.body)
    )
    assert again.line == one.line


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_comes_back(text: str) -> None:
    assert handoff_log.parse(line("offer", text=text)).body["text"] == text


@given(kind=st.sampled_from(sorted(BODIES)), data=st.data())
def test_no_second_spelling(kind: str, data: st.DataObject) -> None:
    good = line(kind)
    at = data.draw(st.integers(0, len(good) - 1))
    new = data.draw(st.binary(max_size=3))
    changed = good[:at] + new + good[at + 1 :]
    try:
        one = handoff_log.parse(changed)
    except SavepointError:
        return
    assert changed == good or not one.signature_holds()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("offer", {"item": "OFFER-0"}),
        ("offer", {"item": "offer-1"}),
        ("offer", {"item": 1}),
        ("offer", {"text": None}),
        ("bind", {"driver": "shell"}),
        ("candidate", {"what": "thought"}),
        ("candidate", {"offset": -1}),
        ("candidate", {"candidate": "c-1"}),
        ("settle", {"successor": "t-1"}),
        ("settle", {"number": 0}),
        ("accept", {"session": "../x"}),
        ("action_begin", {"process": {"pid": 0, "begun": 1}}),
        ("take", {"value": 1}),
        ("offer", {"text": "x" * 8192}),
        ("offer", {"more": "x"}),
    ],
)
def test_what_is_no_line_is_not_made(kind: str, more: dict[str, Json]) -> None:
    with pytest.raises(MalformedError):
        line(kind, **more)


def test_a_newer_version_is_not_taken_for_damage(threads: Threads) -> None:
    threads.open()
    newer = threads.file.read_bytes().replace(b'"v":1', b'"v":2', 1)
    threads.file.write_bytes(newer)
    with pytest.raises(UnsupportedFormatError):
        log.read(threads.store)


def _spoil(threads: Threads, how: str) -> None:
    data = threads.file.read_bytes()
    lines = data.splitlines(keepends=True)
    changed = {
        "a letter": data.replace(b"do it", b"do IT", 1),
        "a line cut out": b"".join([*lines[:1], *lines[2:]]),
        "two lines swapped": b"".join([lines[1], lines[0], *lines[2:]]),
        "a line twice": b"".join([*lines, lines[-1]]),
        "a blank line": data + b"\n",
        "rubbish in a line": data + b"{}\n",
    }
    threads.file.write_bytes(changed[how])


@pytest.mark.parametrize(
    "how",
    [
        *("a letter", "a line cut out", "two lines swapped", "a line twice"),
        *("a blank line", "rubbish in a line"),
    ],
)
def test_an_altered_ledger_is_tampered(threads: Threads, how: str) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.owe(thread)
    _spoil(threads, how)
    with pytest.raises(TamperedError) as refused:
        log.read(threads.store)
    assert "savepoint handoff status" in refused.value.hint
    before = threads.file.read_bytes()
    with pytest.raises(TamperedError):
        threads.owe(thread)
    assert threads.file.read_bytes() == before


def test_a_line_of_a_strangers_key_is_tampered(threads: Threads) -> None:
    thread = threads.open()
    stranger = Author("Claude #1", SEED)
    chain = Chain(threads.file.read_bytes())
    forged = handoff_log.make(stranger, NOW, *chain.next, Draft("ask", thread, {}))
    with threads.file.open("ab") as file:
        file.write(forged.line + b"\n")
    with pytest.raises(TamperedError, match="no instance has its key"):
        log.read(threads.store)


def test_a_line_that_the_state_does_not_allow_is_tampered(threads: Threads) -> None:
    thread = threads.open()
    chain = Chain(threads.file.read_bytes())
    draft = Draft("go", thread, {"item": "OFFER-9"})
    forged = handoff_log.make(threads.author, NOW, *chain.next, draft)
    with threads.file.open("ab") as file:
        file.write(forged.line + b"\n")
    with pytest.raises(TamperedError, match="OFFER-9"):
        log.read(threads.store)


@pytest.mark.parametrize("kept", [1, 40, -2])
def test_a_torn_end_is_set_aside_and_gone_on_from(threads: Threads, kept: int) -> None:
    thread = threads.open()
    good = threads.file.read_bytes()
    chain = Chain(good)
    draft = Draft("offer", thread, {"item": "OFFER-1", "text": "never acknowledged"})
    torn = handoff_log.make(threads.author, NOW, *chain.next, draft).line[:kept]
    threads.file.write_bytes(good + torn)
    assert threads.ledger.items == {}
    assert threads.owe(thread) == "OFFER-1"
    (aside,) = threads.file.parent.glob("log.jsonl.torn-*")
    assert aside.read_bytes() == torn
    assert threads.file.read_bytes().startswith(good)
    assert [one.seq for one in threads.entries()] == [1, 2]


def test_a_whole_last_line_without_its_end_counts(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.file.write_bytes(threads.file.read_bytes()[:-1])
    assert list(threads.ledger.items) == ["OFFER-1"]
    assert threads.owe(thread) == "OFFER-2"
    assert threads.file.read_bytes().count(b"\n") == 3


def test_an_older_log_is_rolled_back(threads: Threads) -> None:
    thread = threads.open()
    older = threads.file.read_bytes()
    threads.owe(thread)
    threads.file.write_bytes(older)
    with pytest.raises(RolledBackError, match="ends before record 2"):
        log.read(threads.store)


def test_who_looks_while_another_appends_sees_no_older_log(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was read before its head, which a line in between had raised: ROLLED_BACK."""
    thread = threads.open()
    appended: list[str] = []

    def read_then_append(path: str, limit: int) -> bytes | None:
        data = read_bounded(path, limit)
        if not appended:
            appended.append("")  # it reads the log as well
            appended.append(threads.owe(thread))
        return data

    monkeypatch.setattr(log, "read_bounded", read_then_append)
    assert log.read(threads.store) is not None
    assert len(appended) == 2


def test_a_head_made_anew_behind_a_line_says_so(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    assert log.unseen(threads.store) == ""
    Path(threads.store.instance(THREADS).trusted).unlink()
    assert "is missing" in log.unseen(threads.store)
    threads.owe(thread)
    assert "was made anew" in log.unseen(threads.store)


def test_another_log_of_the_same_length_is_tampered(threads: Threads) -> None:
    thread = threads.open()
    older = threads.file.read_bytes()
    threads.owe(thread, text="one")
    chain = Chain(older)
    draft = Draft("offer", thread, {"item": "OFFER-1", "text": "two"})
    other = handoff_log.make(threads.author, NOW, *chain.next, draft)
    threads.file.write_bytes(older + other.line + b"\n")
    with pytest.raises(TamperedError, match="another than it was"):
        log.read(threads.store)


def test_nothing_is_written_if_one_of_several_is_refused(threads: Threads) -> None:
    thread = threads.open()
    before = threads.file.read_bytes()
    good = Draft("offer", thread, {"item": "OFFER-1", "text": "x"})
    with pytest.raises(HandoffError), threads.held() as held:
        held.add(threads.author, NOW, [good, Draft("go", thread, {"item": "OFFER-2"})])
    assert threads.file.read_bytes() == before


@pytest.mark.parametrize("can_be_undone", [True, False])
def test_what_is_not_acknowledged_is_taken_back(
    threads: Threads, monkeypatch: pytest.MonkeyPatch, *, can_be_undone: bool
) -> None:
    """On a full disk the line was written, its trusted head was not, and the hint was to run it
    again: then it was there twice.
    """
    thread = threads.open()
    before = threads.file.read_bytes()
    head = Path(threads.store.instance(THREADS).trusted)
    head.unlink()
    head.mkdir()  # nothing can be put in its place
    if not can_be_undone:
        monkeypatch.setattr(durable, "truncate", _failing)
    with pytest.raises(DiskError) as told:
        threads.owe(thread)
    assert (threads.file.read_bytes() == before) == can_be_undone
    assert ("handoff status" in told.value.hint) == (not can_be_undone)
    head.rmdir()
    monkeypatch.undo()
    threads.owe(thread)
    assert list(threads.ledger.items) == ["OFFER-1", "OFFER-2"][: 1 if can_be_undone else 2]


def _failing(path: str, size: int) -> None:
    raise DiskError(f"{path}: {size}: no space left")


def test_full(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = threads.open()
    monkeypatch.setattr(limits, "HANDOFF_LOG_BYTES", threads.file.stat().st_size + 100)
    with pytest.raises(HandoffError, match="is full"):
        threads.owe(thread)


def test_no_log_is_no_failure(threads: Threads) -> None:
    assert log.read(threads.store) is None
    with pytest.raises(HandoffError, match="no threads"):
        log.opened(threads.store, 0.0).__enter__()  # it raises


def test_a_log_that_was_taken_away_is_rolled_back(threads: Threads) -> None:
    threads.open()
    os.unlink(threads.file)  # of a test
    with pytest.raises(RolledBackError):
        log.read(threads.store)
    with pytest.raises(RolledBackError), threads.held():
        pass


def test_the_snapshot_has_it(threads: Threads, tmp_path: Path) -> None:
    from savepoint.capture import memory

    thread = threads.open()
    made = threads.settled(thread)
    data = memory.read(threads.store.path, float("inf"), THREADS).data
    assert data is not None
    assert data.startswith(threads.file.read_bytes())
    assert Path(made.folder, "receipt.json").read_bytes() in data
    shutil.rmtree(log.folder_of(threads.store))
    assert memory.read(threads.store.path, float("inf"), THREADS).data is None
