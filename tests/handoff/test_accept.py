"""A binding moves where it can, stays behind with its reason where not, and holds nobody up."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import HandoffError, TamperedError
from succession.handoff import create, drivers, go, texts, titles
from succession.handoff.ledger import Binding
from tests.handoff.threads import FIRST, NOW, SECOND, THIRD, Nobody, Threads

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


class Pair:
    """A pair of the owner's commands, whose read-back fails so many times after a value was set."""

    def __init__(self, value: str = FIRST, failures: int = 0) -> None:
        self.value = value
        self.failures = failures
        self.was_set = False

    def read(self, place: str, key: str) -> str | None:
        if self.was_set and self.failures:
            self.failures -= 1
            raise HandoffError(f"{place} {key} gave no answer")
        return self.value

    def write(self, place: str, key: str, value: str) -> None:  # noqa: ARG002  # as a driver's
        self.value, self.was_set = value, True


def rows(threads: Threads, value: str = FIRST) -> Path:
    path = threads.project / "rows.tsv"
    path.write_text(f"bot\t{value}\nother\tx\n", encoding="utf-8")
    return path


def test_a_value_that_no_line_takes_for_the_successor_stays_behind(threads: Threads) -> None:
    """It was set, its line was refused, and every run after that ended so."""
    thread = threads.open()
    short = "a" * (limits.HANDOFF_TEXT_BYTES // 100)
    path = rows(threads, FIRST * 100)
    item = threads.bind(thread, value="{session}" * 100)
    threads.owe(thread)
    threads.settled(thread)
    before = path.read_bytes()
    done = threads.accept(thread, short + "a")
    assert [(one.id, one.note) for one in done.left] == [
        (item, "its value for the successor has more than 4096 bytes")
    ]
    assert [one.id for one in done.taken] == ["OFFER-1"]
    assert path.read_bytes() == before
    assert threads.ledger.waiting(done.heir) == []


def test_a_reason_is_cut_to_what_its_line_takes(threads: Threads) -> None:
    """1900 backslashes are 3800 bytes in JSON, and twice as many in a reason that quotes them."""
    thread = threads.open()
    value = "\\" * 1900
    threads.bind(thread, "command", value=value)
    threads.settled(thread)
    (left,) = threads.accept(thread, known={"command": Pair("something else")}).left
    assert left.note.startswith("it was changed meanwhile")
    assert texts.size(left.note) <= limits.HANDOFF_TEXT_BYTES


@pytest.mark.parametrize("letter", ["t", "ä", "\x01", '"', "\ud800"])
def test_a_text_is_cut_by_its_spelling(letter: str) -> None:
    for count in (1, 39, 40, 41, 5000):
        found = texts.cut(letter * count, 40)
        assert texts.size(found) <= 40
        assert texts.cut(found, 40) == found
        assert len(found) == min(count, len(found)) or found.endswith("…")


@pytest.mark.parametrize("letter", ["t", "\x01"])
@pytest.mark.parametrize("suffix", ["", " v7"])
def test_no_title_is_too_long_to_be_handed_off(threads: Threads, letter: str, suffix: str) -> None:
    """The line that settles a thread has its title and its successor's."""
    title = letter * 100_000 + suffix
    thread = threads.open(titles.fitting(title))
    made = threads.settled(thread)
    heir = threads.ledger.threads[made.receipt.successor]
    own = threads.ledger.threads[thread].title
    assert (own[-3:], heir.title[-3:]) == ((" v7", " v8") if suffix else (" v1", " v2"))
    threads.accept(thread)
    assert threads.settled(heir.id).receipt.body["predecessor"] == {
        "thread": heir.id,
        "title": heir.title,
    }


def test_a_thread_with_a_long_title_from_before_is_handed_off(threads: Threads) -> None:
    thread = threads.open("t" * 4000)
    made = threads.settled(thread)
    heir = threads.ledger.threads[made.receipt.successor]
    assert heir.title.endswith("t… v2")


def test_more_than_a_receipt_takes_is_refused_before_anything_is_written(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = threads.open()
    threads.owe(thread, text="x" * 4000)
    threads.gather(thread)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "SMALL_DOCUMENT_BYTES", 5000)
        patch.setattr("savepoint.core.handoff_receipt.parse", _too_long)
        with pytest.raises(HandoffError, match="no receipt takes all"):
            threads.create(thread)
    assert list((threads.file.parent / thread).iterdir()) == []
    threads.close("OFFER-1")
    assert threads.create(thread).folder.endswith("/1")


def _too_long(_data: bytes) -> None:
    from savepoint.core.errors import MalformedError

    raise MalformedError("JSON of 5001 bytes where at most 5000 are allowed")


def test_somebody_elses_row_is_left(threads: Threads) -> None:
    thread = threads.open()
    rows(threads)
    item = threads.bind(thread)
    threads.settled(thread)
    path = rows(threads, "t-ffffffffffffffff")
    before = path.read_bytes()
    (left,) = threads.accept(thread).left
    assert (left.id, "it says 't-ffffffffffffffff'" in left.note) == (item, True)
    assert path.read_bytes() == before


def test_a_row_that_has_the_title_moves_though_the_title_got_its_number(threads: Threads) -> None:
    thread = threads.open("shop")
    path = rows(threads, "shop")
    threads.bind(thread, value="{title}")
    heir = threads.settled(thread).receipt.successor
    threads.accept(thread)
    assert b"bot\tshop v2\n" in path.read_bytes()
    threads.settled(heir)
    threads.accept(heir, THIRD)
    assert b"bot\tshop v3\n" in path.read_bytes()


def test_what_was_left_for_a_passing_reason_is_tried_again(threads: Threads) -> None:
    thread = threads.open()
    path = rows(threads)
    threads.bind(thread)
    threads.bind(thread, "none", place="", key="", value="", reason="a web form")
    heir = threads.settled(thread).receipt.successor
    path.rename(path.with_name("away"))
    first = threads.accept(thread)
    assert [one.id for one in first.left] == ["BIND-1", "BIND-2"]
    assert threads.accept(thread) == first
    path.with_name("away").rename(path)
    again = threads.accept(thread)
    assert [one.id for one in again.left] == ["BIND-2"]
    (closed,) = again.closed
    assert (closed.id, closed.note.endswith("is BIND-3 now")) == ("BIND-1", True)
    new = threads.ledger.items["BIND-3"]
    assert (new.thread, new.value, new.binding) == (heir, SECOND, first.left[0].binding)
    before = threads.file.read_bytes()
    assert threads.accept(thread) == again
    assert threads.file.read_bytes() == before
    assert list(threads.settled(heir).receipt.items) == ["BIND-3"]


def test_a_binding_that_moved_although_its_read_back_failed_is_found_to_have(
    threads: Threads,
) -> None:
    thread = threads.open()
    threads.bind(thread, "command")
    threads.settled(thread)
    known = {"command": Pair(failures=1)}
    (left,) = threads.accept(thread, known=known).left
    assert left.note == "it may have moved, or not: rows.tsv bot gave no answer"
    assert threads.accept(thread, known=known).left == []


def test_nothing_is_moved_for_a_successor_that_was_settled_meanwhile(threads: Threads) -> None:
    thread = threads.open()
    threads.bind(thread)
    heir = threads.settled(thread).receipt.successor
    left = threads.accept(thread).left
    threads.settled(heir)
    path = rows(threads)
    before = path.read_bytes()
    assert threads.accept(thread).left == left
    assert path.read_bytes() == before


class Slow(Pair):
    """Waits until somebody else has used the log."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read, self.may_go = threading.Event(), threading.Event()

    def read(self, place: str, key: str) -> str | None:
        self.is_read.set()
        assert self.may_go.wait(60)
        return super().read(place, key)


def test_nobody_waits_for_the_commands_of_an_accept(threads: Threads) -> None:
    thread = threads.open()
    threads.bind(thread, "command")
    threads.owe(thread)
    heir = threads.settled(thread).receipt.successor
    slow = Slow()
    accepting = threading.Thread(
        target=threads.accept, args=(thread, SECOND, {"command": slow}), daemon=True
    )
    accepting.start()
    assert slow.is_read.wait(60)
    threads.close("OFFER-1")
    threads.close("BIND-1", "nobody looks at it any more")
    slow.may_go.set()
    accepting.join(60)
    found = threads.ledger
    assert {one.state for one in found.items.values()} == {"closed"}
    assert found.waiting(found.threads[heir]) == []


def test_a_missing_receipt_is_named_once(threads: Threads) -> None:
    thread = threads.open()
    path = Path(threads.settled(thread).folder, create.RECEIPT)
    path.unlink()
    with pytest.raises(TamperedError) as told:
        threads.accept(thread)
    assert told.value.message.count(str(path)) == 1


def test_a_handoff_that_nobody_accepted_is_not_handed_off_again(threads: Threads) -> None:
    heir = threads.settled(threads.open()).receipt.successor
    with pytest.raises(HandoffError, match="is not accepted yet: `savepoint handoff accept`"):
        threads.create(heir)


def _go(threads: Threads, thread: str, item: str = "") -> str:
    with threads.held() as held:
        return go.go(held, threads.author, NOW, held.ledger.threads[thread], item).id


def test_an_offer_is_acted_on_once_by_a_thread(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    assert _go(threads, thread) == "OFFER-1"
    for item in ("", "OFFER-1"):
        with pytest.raises(HandoffError, match=f"OFFER-1 was begun by {thread} already"):
            _go(threads, thread, item)
    threads.owe(thread)
    assert _go(threads, thread) == "OFFER-2"
    heir = threads.settled(thread).receipt.successor
    threads.accept(thread)
    assert _go(threads, heir, "OFFER-1") == "OFFER-1"  # what its predecessor had begun


@pytest.mark.parametrize("item", ["OFFER-0", "offer", "", "x" * 9000])
def test_a_mistyped_offer_is_no_damage(threads: Threads, item: str) -> None:
    thread = threads.open()
    with pytest.raises(HandoffError):
        _go(threads, thread, item)


@pytest.mark.parametrize("place", ["../outside", "link", "/etc/hostname", "."])
def test_a_binding_stays_in_its_project(threads: Threads, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"bot\tx\n")
    (threads.project / "link").symlink_to(outside)
    known = drivers.all_of(str(threads.project), Nobody(), Nobody())
    bound = Binding("registry", place, "bot", "x", "")
    with pytest.raises(HandoffError):
        drivers.refuse_unlike(known, bound, threads.ledger_thread())
    assert drivers.move(known, bound, ["x"], "y")[0] is None
    assert outside.read_bytes() == b"bot\tx\n"


def test_a_read_only_file_is_not_written(threads: Threads) -> None:
    path = rows(threads)
    path.chmod(0o444)
    found, why = drivers.move(
        threads.drivers, Binding("registry", "rows.tsv", "bot", "", ""), [FIRST], SECOND
    )
    assert (found, "is read-only" in why) == (None, True)
    assert path.stat().st_mode & 0o777 == 0o444


def test_the_page_says_what_a_binding_says(threads: Threads) -> None:
    thread = threads.open()
    rows(threads)
    threads.bind(thread)
    page = Path(threads.settled(thread).folder, create.PAGE).read_text(encoding="utf-8")
    assert f"(registry: rows.tsv bot; it says {FIRST})" in page


def test_rows_count_threads(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.owe(thread)
    threads.open("other", None)
    threads.settled(thread)
    found: list[Json] = [one.row for one in threads.ledger.threads.values()]
    assert json.dumps(found) == "[1, 2, 3]"
