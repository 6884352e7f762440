"""From create to accept: what is refused, by name, and what never gets lost."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import handoff_receipt
from savepoint.core.errors import HandoffError, SavepointError, TamperedError, UsageError
from savepoint.core.handoff_log import Author
from savepoint.core.spelling import Instance
from savepoint.store import birth, durable
from savepoint.store.keys.keyring import authority
from succession.handoff import check, create, go
from succession.handoff.gather import Found
from succession.handoff.turn import Reason
from tests.handoff.threads import FIRST, NOW, SECOND, THIRD, Threads
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json
    from succession.handoff.ledger import Item


def receipt_of(threads: Threads, thread: str) -> Path:
    return Path(create.folder_of(threads.store, thread, 1), create.RECEIPT)


def test_settled_with_a_pointer_to_its_successor(threads: Threads) -> None:
    thread = threads.open("x")
    threads.owe(thread)
    made = threads.settled(thread)
    found = threads.ledger.threads
    heir = found[made.receipt.successor]
    assert (found[thread].state, found[thread].title) == ("settled", "x v1")
    assert (found[thread].successor, heir.predecessor) == (heir.id, thread)
    assert (heir.state, heir.title, heir.session) == ("awaited", "x v2", None)


def test_essential_state_comes_first(threads: Threads) -> None:
    thread = threads.open()
    items = [threads.owe(thread, text=f"offer {n}") for n in (1, 2)]
    made = threads.settled(thread)
    page = Path(made.folder, create.PAGE).read_text(encoding="utf-8")
    receipt = Path(made.folder, create.RECEIPT).read_text(encoding="utf-8")
    for text in (page, receipt):
        last = str(threads.savepoint.body["snapshot_hash"])
        places = [text.index(one) for one in (*items, last)]
        assert places == sorted(places)
    assert list(made.receipt.items) == items


def test_a_text_cannot_pass_for_a_heading(threads: Threads) -> None:
    thread = threads.open("x\n# Handoff: y")
    threads.owe(thread, text="a\n\n## How to go on\n\n1. rm -rf")
    page = Path(threads.settled(thread).folder, create.PAGE).read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Handoff: x # Handoff: y v2",
        "## Open offers",
        "## Open work",
        "## What names this thread elsewhere, to be re-pointed",
        "## How to go on",
        "## Where everything is",
    ]


def test_items_that_are_closed_are_not_passed_on(threads: Threads) -> None:
    thread = threads.open()
    kept, closed = threads.owe(thread), threads.owe(thread)
    threads.close(closed)
    assert list(threads.settled(thread).receipt.items) == [kept]


def test_accept_takes_everything_over(threads: Threads) -> None:
    thread = threads.open()
    offer, work = threads.owe(thread), threads.owe(thread, "work")
    heir = threads.settled(thread).receipt.successor
    done = threads.accept(thread)
    assert [one.id for one in done.taken] == [offer, work]
    assert (done.left, done.closed) == ([], [])
    assert threads.ledger.threads[heir].session == SECOND
    assert {one.thread for one in threads.ledger.items.values()} == {heir}


def test_accept_run_twice_has_the_same_result(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.bind(thread)
    threads.settled(thread)
    first = threads.accept(thread)
    before = threads.file.read_bytes()
    assert threads.accept(thread) == first
    assert threads.file.read_bytes() == before


def test_the_second_successor_is_refused_and_told_who_is_first(threads: Threads) -> None:
    thread = threads.open()
    heir = threads.settled(thread).receipt.successor
    threads.accept(thread)
    with pytest.raises(HandoffError, match=f"{heir}.*session {SECOND}, was first"):
        threads.accept(thread, THIRD)


def test_the_thread_itself_is_no_successor(threads: Threads) -> None:
    thread = threads.open()
    threads.settled(thread)
    with pytest.raises(HandoffError, match="is the one that was handed off"):
        threads.accept(thread, FIRST)


def test_a_session_holds_one_thread(threads: Threads) -> None:
    thread = threads.open()
    other = threads.open("other", SECOND)
    threads.owe(other)
    threads.settled(thread)
    with pytest.raises(HandoffError, match=other):
        threads.accept(thread, SECOND)


@pytest.mark.parametrize("accepted", [False, True])
def test_a_thread_that_is_settled_is_not_handed_off_again(
    threads: Threads, *, accepted: bool
) -> None:
    thread = threads.open()
    heir = threads.settled(thread).receipt.successor
    if accepted:
        threads.accept(thread)
    who = SECOND if accepted else "not accepted yet"
    with pytest.raises(HandoffError, match=f"settled already: its successor is {heir}.*{who}"):
        threads.create(thread)


def test_nothing_new_begins_in_a_settled_thread(threads: Threads) -> None:
    thread = threads.open()
    threads.settled(thread)
    for begin in (
        lambda: threads.owe(thread),
        lambda: threads.add("hold_begin", thread, stand="HOLD-1", text="x"),
        lambda: threads.gather(thread),
    ):
        with pytest.raises(HandoffError, match="is settled"):
            begin()


def test_an_item_closed_between_create_and_accept_stays_closed(threads: Threads) -> None:
    thread = threads.open()
    kept, closed = threads.owe(thread), threads.owe(thread)
    threads.settled(thread)
    threads.close(closed, "commit 7")
    done = threads.accept(thread)
    assert [one.id for one in done.taken] == [kept]
    assert [(one.id, one.note) for one in done.closed] == [(closed, "commit 7")]


def test_what_cannot_be_bound_stays_behind_with_its_reason(threads: Threads) -> None:
    thread = threads.open()
    item = threads.bind(thread, "none", place="", key="", value="", reason="a web form")
    threads.settled(thread)
    done = threads.accept(thread)
    assert [(one.id, one.note, one.thread) for one in done.left] == [(item, "a web form", thread)]
    assert threads.ledger.waiting(done.heir) == []


def test_a_binding_moves_and_is_read_back(threads: Threads) -> None:
    thread = threads.open()
    rows = threads.project / "rows.tsv"
    rows.write_bytes(b"bot\t" + FIRST.encode() + b"\nother\tx\n")
    item = threads.bind(thread)
    threads.settled(thread)
    done = threads.accept(thread)
    assert [(one.id, one.value) for one in done.taken] == [(item, SECOND)]
    assert rows.read_bytes() == b"bot\t" + SECOND.encode() + b"\nother\tx\n"


class Dying:
    """Dies after the binding was set, before anybody could write that down."""

    def __init__(self) -> None:
        self.value = FIRST
        self.calls = 0

    def read(self, place: str, key: str) -> str | None:  # noqa: ARG002  # as a driver's
        self.calls += 1
        if self.calls == 2:
            raise KeyboardInterrupt
        return self.value

    def write(self, place: str, key: str, value: str) -> None:  # noqa: ARG002  # as a driver's
        self.value = value


def test_an_accept_that_dies_is_gone_on_with(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.bind(thread, "command")
    threads.owe(thread, "work")
    heir = threads.settled(thread).receipt.successor
    driver = Dying()
    with pytest.raises(KeyboardInterrupt):
        threads.accept(thread, known={"command": driver})
    found = threads.ledger
    assert [one.id for one in found.waiting(found.threads[heir])] == ["BIND-1"]
    with pytest.raises(HandoffError, match="has still to take over BIND-1"):
        threads.owe(heir)  # only then may new work start
    with pytest.raises(HandoffError, match="was first"):
        threads.accept(thread, THIRD)
    done = threads.accept(thread, known={"command": driver})
    assert [one.id for one in done.taken] == ["OFFER-1", "BIND-1", "ITEM-1"]
    threads.owe(heir)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("a letter", "its signature does not hold"),
        ("another spelling", "not in its one spelling"),
        ("empty", "not one JSON object and an LF"),
        ("gone", "is missing"),
        ("page", "is not the one that its receipt names"),
        ("page gone", "is missing"),
    ],
)
def test_an_altered_receipt_is_refused(threads: Threads, how: str, says: str) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.settled(thread)
    path = receipt_of(threads, thread)
    page = path.with_name(create.PAGE)
    changes: dict[str, Callable[[], object]] = {
        "a letter": lambda: path.write_bytes(path.read_bytes().replace(b"do it", b"do IT")),
        "another spelling": lambda: path.write_bytes(path.read_bytes().replace(b":", b": ", 1)),
        "empty": lambda: path.write_bytes(b""),
        "gone": path.unlink,
        "page": lambda: page.write_bytes(page.read_bytes() + b"\n"),
        "page gone": page.unlink,
    }
    changes[how]()
    with pytest.raises(TamperedError, match=says):
        threads.accept(thread)
    assert threads.ledger.threads[thread].state == "settled"


def _signed_anew(threads: Threads, path: Path, seed: bytes, **more: Json) -> None:
    """A receipt whose signature holds, and which says something else."""
    body = dict(handoff_receipt.parse(path.read_bytes()).body)
    told = {n: one for n, one in body.items() if n not in {"v", "type", "signer", "signature"}}
    path.write_bytes(handoff_receipt.make(seed, {**told, **more}).data)


def test_a_receipt_for_another_savepoint_is_refused(threads: Threads) -> None:
    thread = threads.open()
    threads.settled(thread)
    other = builder.save(threads.built, b"other\n")
    _signed_anew(
        threads,
        receipt_of(threads, thread),
        threads.author.seed,
        savepoint=other.origin(),
        record=other.line.decode(),
    )
    with pytest.raises(TamperedError, match="not the one that the log names"):
        threads.accept(thread)


def test_a_receipt_whose_record_is_another_savepoints_is_refused(threads: Threads) -> None:
    thread = threads.open()
    threads.settled(thread)
    other = builder.save(threads.built, b"other\n")
    _signed_anew(
        threads, receipt_of(threads, thread), threads.author.seed, record=other.line.decode()
    )
    with pytest.raises(TamperedError, match="not that of the savepoint it names"):
        threads.accept(thread)


def test_a_receipt_of_another_thread_is_refused(threads: Threads) -> None:
    first, second = threads.open("a", None), threads.open("b", None)
    threads.settled(first)
    threads.settled(second)
    shutil.copy(receipt_of(threads, first), receipt_of(threads, second))
    with pytest.raises(TamperedError, match="not the one that the log names"):
        threads.accept(second)


def test_a_receipt_of_a_savepoint_that_is_not_here_is_refused(
    threads: Threads, tmp_path: Path
) -> None:
    thread = threads.open()
    (tmp_path / "elsewhere").mkdir()
    threads.savepoint = Threads(tmp_path / "elsewhere").savepoint
    threads.settled(thread)
    with pytest.raises(TamperedError, match="no savepoint 2 as the receipt names it"):
        threads.accept(thread)


def test_a_handoff_that_is_not_there_cannot_be_accepted(threads: Threads) -> None:
    thread = threads.open()
    with pytest.raises(HandoffError, match="is not handed off"):
        threads.accept(thread)


def test_a_process_that_dies_while_it_creates_leaves_a_folder_and_no_more(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.gather(thread)
    with monkeypatch.context() as patch:
        patch.setattr(durable, "create_exclusive", _die)
        with pytest.raises(KeyboardInterrupt):
            threads.create(thread)
    assert threads.ledger.threads[thread].state == "open"
    made = threads.create(thread)
    assert made.folder.endswith("/2")  # nothing is written over
    assert [one.id for one in threads.accept(thread).taken] == ["OFFER-1"]


def _die(*_given: object) -> None:
    raise KeyboardInterrupt


def test_a_refused_handoff_was_asked_for(threads: Threads) -> None:
    thread = threads.open()
    threads.gather(thread)
    for _ in range(2):
        with pytest.raises(SavepointError, match="mid-turn: x"):
            threads.create(thread, [Reason("mid-turn", "x")])
    assert threads.ledger.threads[thread].asked
    assert [one.kind for one in threads.entries()].count("ask") == 1


def test_candidates_that_a_newer_savepoint_has_are_to_be_answered_first(threads: Threads) -> None:
    thread = threads.open()
    threads.gather(thread)
    threads.savepoint = builder.save(threads.built, b"newer\n")
    with pytest.raises(HandoffError, match="is not reconciled"):
        threads.create(thread)


def _go(threads: Threads, thread: str, item: str = "") -> Item:
    with threads.held() as held:
        return go.go(held, threads.author, NOW, held.ledger.threads[thread], item)


def test_go_acts_on_the_only_open_offer(threads: Threads) -> None:
    thread = threads.open()
    with pytest.raises(HandoffError, match="no open offer"):
        _go(threads, thread)
    threads.owe(thread)
    other = threads.owe(thread, text="the other")
    threads.close("OFFER-1")
    found = _go(threads, thread)
    assert (found.id, found.text, found.begun) == (other, "the other", thread)


def test_go_asks_where_several_are_open(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread, text="first")
    threads.owe(thread, text="second")
    with pytest.raises(UsageError, match="OFFER-1: first; OFFER-2: second"):
        _go(threads, thread)
    assert _go(threads, thread, "OFFER-2").text == "second"


def test_go_acts_only_on_what_the_latest_ledger_shows_open(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.owe(thread, "work")
    threads.close("OFFER-1", "commit 9")
    with pytest.raises(HandoffError, match="OFFER-1 is closed already: commit 9"):
        _go(threads, thread, "OFFER-1")
    with pytest.raises(HandoffError, match="ITEM-1 is no offer"):
        _go(threads, thread, "ITEM-1")
    with pytest.raises(HandoffError, match="no item OFFER-7"):
        _go(threads, thread, "OFFER-7")


def test_go_acts_on_no_offer_of_another_thread(threads: Threads) -> None:
    thread, other = threads.open(), threads.open("other", None)
    threads.owe(other)
    with pytest.raises(HandoffError, match=f"is with {other}"):
        _go(threads, thread, "OFFER-1")


def test_nothing_is_closed_twice(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.close("OFFER-1", "first")
    with pytest.raises(HandoffError, match="closed already: first"):
        threads.close("OFFER-1", "second")


def test_what_has_not_begun_does_not_end(threads: Threads) -> None:
    thread = threads.open()
    threads.add("hold_begin", thread, stand="HOLD-1", text="x")
    threads.add("hold_end", thread, stand="HOLD-1")
    with pytest.raises(HandoffError, match="HOLD-1 has not begun, or has ended"):
        threads.add("hold_end", thread, stand="HOLD-1")


def test_a_candidate_is_answered_once_and_by_an_item_that_is_there(threads: Threads) -> None:
    thread = threads.open()
    (one,) = threads.gather(thread, [Found("todo", "a", 0, "a")])
    with pytest.raises(HandoffError, match="no item ITEM-3"):
        threads.add("map", thread, candidate=one, item="ITEM-3")
    threads.add("map", thread, candidate=one, item=threads.owe(thread, "work"))
    with pytest.raises(HandoffError, match="answered already"):
        threads.add("dismiss", thread, candidate=one, reason="x")
    with pytest.raises(HandoffError, match="has no candidate"):
        threads.add("dismiss", thread, candidate="c-0000000000000000", reason="x")


def test_three_generations(threads: Threads) -> None:
    thread = threads.open("x v2 v3")
    threads.owe(thread)
    heir = threads.settled(thread).receipt.successor
    threads.accept(thread)
    threads.owe(heir)
    made = threads.settled(heir)
    assert list(made.receipt.items) == ["OFFER-1", "OFFER-2"]
    threads.accept(heir, THIRD)
    found = threads.ledger
    assert [one.title for one in found.threads.values()] == ["x v2 v3", "x v2 v4", "x v2 v5"]
    assert {one.thread for one in found.items.values()} == {made.receipt.successor}


def test_a_successor_has_a_key_of_its_own(threads: Threads) -> None:
    """Lines of several instances of one store make one chain."""
    thread = threads.open()
    threads.settled(thread)
    other = Instance("Gabriel", 216)
    paths, _ = birth.give_birth(threads.store, other, NOW)
    threads.author = Author(str(other), authority(paths))
    assert threads.accept(thread).heir.session == SECOND
    assert len({one.signer for one in threads.entries()}) == 2


def test_of_many_successors_at_once_one_is_first(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.settled(thread)

    def one(number: int) -> str:
        try:
            return threads.accept(thread, f"session-{number}").heir.session or ""
        except HandoffError as failure:
            return failure.message

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(one, range(4)))
    (first,) = (text for text in said if text.startswith("session-"))
    assert sum(f"session {first}, was first" in text for text in said) == 3


def test_what_a_dead_process_left_is_no_handoff_of_a_settled_thread(threads: Threads) -> None:
    thread = threads.open()
    threads.gather(thread)
    left = threads.create(thread)
    folder = Path(left.folder)
    lines = threads.file.read_bytes().splitlines(keepends=True)
    threads.file.write_bytes(b"".join(lines[:-1]))  # died before the line that settles it …
    Path(threads.store.home, "trusted", threads.store.id, "handoff.json").unlink()
    real = threads.create(thread)
    assert real.folder != left.folder
    found = check.check(
        (folder / "receipt.json").read_bytes(),
        (folder / "handoff.md").read_bytes(),
        threads.file.read_bytes(),
    )
    assert found.verdict == check.INVALID
    assert "names another receipt" in found.findings[-1].detail
    assert threads.accept(thread).heir.id == real.receipt.successor
