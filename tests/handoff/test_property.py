"""For any sequence of offer, close, gather, create, accept and crash: every item is open in exactly
one place, or closed with evidence.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from savepoint.core.errors import HandoffError
from savepoint.store import durable
from succession.handoff import check, create
from succession.handoff.gather import Found
from succession.handoff.ledger import CLOSED, LEFT, OPEN, SETTLED
from tests.handoff.threads import FIRST, Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from succession.handoff.ledger import Ledger, Thread

ROWS = b"bot\t" + FIRST.encode() + b"\n"


class _CrashError(BaseException):
    """The process is dead."""


@contextmanager
def dying(after: int, kept: int) -> Iterator[None]:
    """Die at the write number `after`, of which `kept` percent reach the disk."""
    left = after

    def write(
        real: Callable[..., object], data: bytes, torn: Callable[[bytes], object]
    ) -> Callable[[], object]:
        def run() -> object:
            nonlocal left
            left -= 1
            if left >= 0:
                return real()
            if kept == 100:
                real()
            elif kept:
                torn(data[: len(data) * kept // 100])
            raise _CrashError

        return run

    append, exclusive = durable.append, durable.create_exclusive
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            durable,
            "append",
            lambda path, data, *, size: write(
                lambda: append(path, data, size=size),
                data,
                lambda part: append(path, part, size=size),
            )(),
        )
        patch.setattr(  # all or nothing: its bytes have another name until they are whole
            durable,
            "create_exclusive",
            lambda path, data: write(lambda: exclusive(path, data), data, lambda _part: None)(),
        )
        yield


class Life(RuleBasedStateMachine):
    """Threads of one line, and what a person remembers of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="savepoint-handoff-")
        self.threads = Threads(Path(self.folder))
        (self.threads.project / "rows.tsv").write_bytes(ROWS)
        self.threads.open()
        self.owed: set[str] = set()  # acknowledged
        self.closed: dict[str, str] = {}
        self.doubtful: set[str] = set()  # died while it was closed
        self.sessions = 0
        self.crash: tuple[int, int] | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _try(self, act: Callable[[], object]) -> object:
        """Run it, with the crash that was drawn for it; None: it was refused, or died."""
        crash, self.crash = self.crash, None
        try:
            if crash is None:
                return act() or True
            with dying(*crash):
                return act() or True
        except (HandoffError, _CrashError):
            return None

    @property
    def ledger(self) -> Ledger:
        return self.threads.ledger

    def current(self) -> Thread:
        """The last of the line: open, or waiting to be accepted."""
        return list(self.ledger.threads.values())[-1]

    @precondition(lambda self: self.crash is None)
    @rule(after=st.integers(0, 3), kept=st.sampled_from([0, 30, 80, 100]))
    def crash_in_the_next(self, after: int, kept: int) -> None:
        self.crash = (after, kept)

    @rule(kind=st.sampled_from(["offer", "work"]))
    def owe(self, kind: str) -> None:
        item = self.ledger.next_id(kind)
        if self._try(lambda: self.threads.owe(self.current().id, kind)):
            self.owed.add(item)

    @rule(driver=st.sampled_from(["registry", "none"]))
    def bind(self, driver: str) -> None:
        item = self.ledger.next_id("binding")
        if self._try(lambda: self.threads.bind(self.current().id, driver, reason="none")):
            self.owed.add(item)

    @precondition(lambda self: self.owed - self.closed.keys())
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.owed - self.closed.keys())))
        evidence = f"commit {len(self.closed)}"
        self.doubtful.add(item)
        if self._try(lambda: self.threads.close(item, evidence)):
            self.closed[item] = evidence
            self.doubtful.discard(item)

    @rule(names=st.sets(st.sampled_from("abc"), max_size=2))
    def gather(self, names: set[str]) -> None:
        found = [Found("todo", name, 0, name) for name in sorted(names)]
        self._try(lambda: self.threads.gather(self.current().id, found))

    @rule(is_item=st.booleans())
    def answer(self, *, is_item: bool) -> None:
        ledger, own = self.ledger, self.current().id
        for one in ledger.unresolved(own):
            if is_item and ledger.items:
                item = next(iter(ledger.items))
                self._try(lambda: self.threads.add("map", own, candidate=one.id, item=item))  # noqa: B023  # called at once
            else:
                self._try(lambda: self.threads.add("dismiss", own, candidate=one.id, reason="x"))  # noqa: B023  # called at once

    @rule()
    def create(self) -> None:
        self._try(lambda: self.threads.create(self.current().id))

    @rule(again=st.booleans())
    def accept(self, *, again: bool) -> None:
        before = self.current().predecessor
        if before is None:
            return
        session = self.current().session
        if session is None or not again:
            self.sessions += 1
        named = session if session and again else f"session-{self.sessions}"
        self._try(lambda: self.threads.accept(before, named))

    @invariant()
    def every_item_is_in_one_place_or_closed_with_evidence(self) -> None:
        ledger = self.ledger
        places = [item.id for one in ledger.threads for item in ledger.owed(one)]
        assert len(places) == len(set(places))
        for item in self.owed:
            found = ledger.items[item]
            if item in self.closed:
                assert (found.state, found.note) == (CLOSED, self.closed[item])
            elif found.state == CLOSED:
                assert item in self.doubtful
                assert found.note
            else:
                assert places.count(item) == 1
                assert found.state == OPEN or (found.state == LEFT and found.note)

    @invariant()
    def nothing_open_is_dropped(self) -> None:
        """What is open is with the thread that goes on, with the one that it goes on from until it
        has accepted, or left behind with a reason.
        """
        ledger, last = self.ledger, self.current()
        for item in ledger.items.values():
            if item.state == OPEN:
                assert item.thread in {last.id, last.predecessor}

    @invariant()
    def every_handoff_can_be_checked(self) -> None:
        for one in self.ledger.threads.values():
            if one.state == SETTLED:
                folder = Path(create.folder_of(self.threads.store, one.id, one.number))
                found = check.check(
                    (folder / "receipt.json").read_bytes(),
                    (folder / "handoff.md").read_bytes(),
                    self.threads.file.read_bytes(),
                )
                assert found.verdict != check.INVALID, found.findings


Life.TestCase.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
TestLife = pytest.mark.timeout(300)(Life.TestCase)


def test_the_machine_gets_somewhere() -> None:
    """Else the invariants would hold of nothing."""
    life = Life()
    try:
        life.owe("offer")
        life.bind("registry")
        life.bind("none")
        life.gather(set())
        life.crash_in_the_next(2, 30)
        life.create()
        assert life.current().predecessor is None
        life.create()
        life.crash_in_the_next(2, 30)
        life.accept(again=False)
        assert [one.id for one in life.ledger.waiting(life.current())] == ["BIND-1", "BIND-2"]
        life.accept(again=True)
        assert life.ledger.waiting(life.current()) == []
        assert life.ledger.items["BIND-2"].state == LEFT
        life.every_item_is_in_one_place_or_closed_with_evidence()
        life.nothing_open_is_dropped()
        life.every_handoff_can_be_checked()
    finally:
        life.teardown()
