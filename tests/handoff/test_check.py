"""The offline checker: complete, not complete yet, invalid; by a reading of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import handoff_log, handoff_receipt
from savepoint.core.errors import UnsupportedFormatError
from savepoint.core.handoff_log import Author, Chain, Draft
from succession.handoff import check
from tests.handoff.threads import FIRST, NOW, SECOND, Threads
from tests.structure.sources import PROJECT, Source, imported

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json


class Files:
    """What the checker reads."""

    def __init__(self, threads: Threads, thread: str) -> None:
        folder = Path(threads.file.parent, thread, "1")
        self.receipt: bytes | None = (folder / "receipt.json").read_bytes()
        self.page: bytes | None = (folder / "handoff.md").read_bytes()
        self.log: bytes | None = threads.file.read_bytes()

    def check(self) -> check.Checked:
        return check.check(self.receipt, self.page, self.log)

    def fails(self) -> list[str]:
        """The rules that do not hold."""
        return [one.rule for one in self.check().findings if one.verdict != check.COMPLETE]


@pytest.fixture
def thread(threads: Threads) -> str:
    """Settled, with an offer, a binding that moves, one that cannot, and a closed item."""
    (threads.project / "rows.tsv").write_bytes(b"bot\t" + FIRST.encode() + b"\n")
    thread = threads.open()
    threads.owe(thread)
    threads.bind(thread)
    threads.bind(thread, "none", place="", key="", value="", reason="a web form")
    threads.close(threads.owe(thread, "work"))
    threads.settled(thread)
    return thread


def test_complete(threads: Threads, thread: str) -> None:
    threads.accept(thread)
    found = Files(threads, thread).check()
    assert found.verdict == "complete"
    assert [one.rule for one in found.findings] == [f"CHECK-{n}" for n in range(1, 9)]
    assert check.EXIT_CODES[found.verdict] == 0
    assert "took 2 items over and left 1" in found.findings[-1].detail


def test_not_accepted_yet(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    assert files.check().verdict == "partial"
    assert files.fails() == ["CHECK-8"]
    assert check.EXIT_CODES["partial"] == 3


def test_not_everything_taken_over_yet(threads: Threads, thread: str) -> None:
    heir = threads.ledger.threads[thread].successor
    assert heir
    threads.add("accept", heir, predecessor=thread, session=SECOND)
    threads.add("take", heir, item="OFFER-1", value=None)
    files = Files(threads, thread)
    assert (files.check().verdict, files.fails()) == ("partial", ["CHECK-8"])
    assert "BIND-1, BIND-2" in files.check().findings[-1].detail


def test_without_a_log_beside_it(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    files.log = None
    assert (files.check().verdict, files.fails()) == ("partial", ["CHECK-4"])


def test_a_page_whose_receipt_was_never_written(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    files.receipt = None
    assert files.check().verdict == "partial"
    files.page = None
    assert files.check().verdict == "invalid"


def test_a_receipt_that_no_line_names(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    assert files.log
    files.log = b"".join(files.log.splitlines(keepends=True)[:-1])
    assert (files.check().verdict, files.fails()) == ("partial", ["CHECK-5"])


def test_every_byte_of_it_counts(threads: Threads, thread: str) -> None:
    threads.accept(thread)
    for name in ("receipt", "page", "log"):
        data = getattr(Files(threads, thread), name)
        for at in range(0, len(data), 1 + len(data) // 40):
            files = Files(threads, thread)
            setattr(files, name, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert files.check().verdict == "invalid", (name, at)


def _anew(threads: Threads, files: Files, **more: Json) -> None:
    """The receipt says something else, its signature holds, and the log names it."""
    assert files.receipt
    assert files.log
    body = dict(handoff_receipt.parse(files.receipt).body)
    told = {n: one for n, one in body.items() if n not in {"v", "type", "signer", "signature"}}
    made = handoff_receipt.make(threads.author.seed, {**told, **more})
    files.receipt = made.data
    entries = Chain(files.log).entries
    kept = [one for one in entries if one.kind != "settle"]
    last = next(one for one in entries if one.kind == "settle")
    chain = Chain(b"".join(one.line + b"\n" for one in kept))
    draft = Draft("settle", last.thread, {**last.body, "receipt": made.hash})
    line = handoff_log.make(threads.author, NOW, *chain.next, draft).line
    files.log = b"".join(one.line + b"\n" for one in kept) + line + b"\n"


def _items(files: Files) -> list[Json]:
    assert files.receipt
    items = handoff_receipt.parse(files.receipt).body["items"]
    assert isinstance(items, list)
    return list(items)


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items[1:],
        lambda items: [*items, {"item": "OFFER-9", "text": "x", "binding": None}],
        lambda items: [{**items[0], "text": "something else"}, *items[1:]],
        lambda items: [*items, {"item": "ITEM-1", "text": "do it", "binding": None}],
    ],
    ids=["dropped", "invented", "changed", "closed"],
)
def test_a_receipt_that_lists_something_else(
    threads: Threads, thread: str, change: Callable[[list[Json]], list[Json]]
) -> None:
    files = Files(threads, thread)
    _anew(threads, files)
    assert files.fails() == ["CHECK-8"]  # as before: only not accepted
    _anew(threads, files, items=change(_items(files)))
    assert "CHECK-6" in files.fails()
    assert files.check().verdict == "invalid"


def test_a_receipt_of_another_state_of_the_log(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    entries = threads.entries()
    earlier: Json = {"seq": entries[2].seq, "record": entries[2].hash}
    _anew(threads, files, log=earlier)
    assert "CHECK-5" in files.fails()
    _anew(threads, files, log={"seq": 99, "record": "ab" * 32})
    assert "CHECK-5" in files.fails()


def test_a_savepoint_of_another_key(threads: Threads, thread: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = Threads(tmp_path / "elsewhere").savepoint
    files = Files(threads, thread)
    _anew(threads, files, savepoint=other.origin(), record=other.line.decode())
    assert "CHECK-2" in files.fails()


def _later(threads: Threads, *drafts: Draft, author: Author | None = None) -> bytes:
    data = threads.file.read_bytes()
    for draft in drafts:
        made = handoff_log.make(author or threads.author, NOW, *Chain(data).next, draft)
        data += made.line + b"\n"
    return data


def test_lines_that_no_writer_writes(threads: Threads, thread: str) -> None:
    """The writer refuses these before they are signed; who has the key can sign them still."""
    heir = threads.ledger.threads[thread].successor
    assert heir
    accepted = Draft("accept", heir, {"predecessor": thread, "session": SECOND})
    bodies: list[dict[str, Json]] = [
        {"item": "OFFER-1", "value": "read back"},
        {"item": "BIND-1", "value": None},
        {"item": "ITEM-1", "value": None},
    ]
    takes = [Draft("take", heir, body) for body in bodies]
    for lines in ([accepted, accepted], *([accepted, one] for one in takes), takes[:1]):
        files = Files(threads, thread)
        files.log = _later(threads, *lines)
        assert (files.check().verdict, files.fails()) == ("invalid", ["CHECK-8"])


def test_candidates_without_an_answer(threads: Threads) -> None:
    """As a writer without the rule would settle a thread."""
    thread = threads.open()
    threads.settled(thread)
    entries = threads.entries()
    body: dict[str, Json] = {
        "candidate": "c-0123456789abcdef",
        "what": "todo",
        "text": "x",
        "offset": None,
    }
    files = Files(threads, thread)
    drafts = [Draft(entries[0].kind, thread, entries[0].body), Draft("candidate", thread, body)]
    drafts += [Draft(one.kind, thread, one.body) for one in entries[1:-1]]
    data = b""
    for draft in drafts:
        data += handoff_log.make(threads.author, NOW, *Chain(data).next, draft).line + b"\n"
    last = Chain(data).entries[-1]
    settle = Draft("settle", thread, entries[-1].body)
    data += handoff_log.make(threads.author, NOW, *Chain(data).next, settle).line + b"\n"
    files.log = data
    _anew(threads, files, log={"seq": last.seq, "record": last.hash})
    assert "CHECK-7" in files.fails()


def test_a_newer_version_is_no_damage(threads: Threads, thread: str) -> None:
    files = Files(threads, thread)
    assert files.receipt
    assert files.log
    receipt = files.receipt
    files.receipt = receipt.replace(b'"v":1', b'"v":2', 1)
    with pytest.raises(UnsupportedFormatError):
        files.check()
    files.receipt = receipt
    files.log = files.log.replace(b'"v":1', b'"v":2', 1)
    with pytest.raises(UnsupportedFormatError):
        files.check()


def test_it_shares_nothing_with_the_writer_but_core() -> None:
    path = PROJECT / "succession/handoff/check.py"
    source = Source.of("succession/handoff/check.py", path.read_text(encoding="utf-8"))
    ours = {name for _, name in imported(source) if name.startswith(("savepoint", "succession"))}
    assert ours
    assert not [name for name in ours if not name.startswith("savepoint.core.")]
