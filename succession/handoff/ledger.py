"""What the log of threads says: threads, what each owes, and what may happen next.

One rule for writing and reading: `apply` refuses what the state does not allow, before a line is
written, and again when it is read. Each item is open in exactly one thread, or closed with
evidence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, TypeVar

from savepoint.core.errors import HandoffError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.handoff_log import Entry
    from savepoint.core.strict_json import Json

OPEN, AWAITED, SETTLED = "open", "awaited", "settled"
CLOSED, LEFT = "closed", "left"
OFFER, WORK, BINDING = "offer", "work", "binding"
PREFIXES = {OFFER: "OFFER", WORK: "ITEM", BINDING: "BIND", "hold": "HOLD", "action": "ACTION"}


class Binding(NamedTuple):
    """What names the thread elsewhere, and how that is re-pointed."""

    driver: str  # of handoff_log.DRIVERS
    place: str  # a file, a branch, the name of a command pair
    key: str  # of the row
    value: str  # what stands there, with {thread}, {title} and {session} for the holder's
    reason: str  # why it cannot be bound; driver "none" only

    def value_for(self, thread: Thread) -> str:
        """What is to stand there when that thread holds it."""
        told = {"thread": thread.id, "title": thread.title, "session": thread.session or ""}
        return re.sub(r"\{(thread|title|session)\}", lambda found: told[found[1]], self.value)


class Item(NamedTuple):
    """Something owed."""

    id: str
    kind: str  # offer, work, binding
    thread: str  # where it is
    text: str
    state: str = OPEN  # open, closed, or left: open, and behind in a settled thread for `note`
    note: str = ""  # evidence of the closing, or why it was left
    binding: Binding | None = None
    value: str | None = None  # of a binding: what was read there when it was last bound
    begun: str = ""  # of an offer: the thread that last acted on it


class Candidate(NamedTuple):
    """Something in a savepoint that may be owed."""

    id: str
    what: str  # of handoff_log.CANDIDATES
    text: str
    offset: int | None  # bytes: the line in the transcript that says so
    answer: str = ""  # the item that it is, or why it is none


class Thread(NamedTuple):
    """A row of the registry."""

    row: int  # from 1
    id: str
    project: str  # its folder
    title: str
    state: str  # open; awaited: somebody is to accept it; settled: handed off
    session: str | None
    predecessor: str | None = None
    successor: str | None = None
    number: int = 0  # of its handoff
    receipt: str = ""  # SHA-256 of that
    savepoint: Json = None  # its origin
    holds: dict[str, str] = {}  # noqa: RUF012  # never changed
    actions: dict[str, tuple[str, Json]] = {}  # noqa: RUF012  # never changed
    candidates: dict[str, Candidate] = {}  # noqa: RUF012  # never changed
    gathered: Json = None  # origin of the savepoint that candidates were last drawn from
    asked: bool = False  # a handoff was asked for and refused


class Ledger:
    """The state after some lines of the log."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.items: dict[str, Item] = {}
        self._stands = 0

    def apply(self, entry: Entry) -> None:
        """Take a line. Raises HandoffError: the state does not allow it, and nothing is changed."""
        thread = self.threads.get(entry.thread)
        if entry.kind == "open":
            self._open(entry)
            return
        if thread is None:
            raise HandoffError(f"there is no thread {entry.thread}")
        self._TAKES[entry.kind](self, thread, entry)

    def next_id(self, kind: str) -> str:
        """The id of the next offer, work item, binding, hold or action."""
        if kind in (OFFER, WORK, BINDING):
            number = sum(one.kind == kind for one in self.items.values())
        else:
            number = self._stands
        return f"{PREFIXES[kind]}-{number + 1}"

    def owed(self, thread: str) -> list[Item]:
        """What is open in a thread, oldest first."""
        return [one for one in self.items.values() if one.thread == thread and one.state != CLOSED]

    def waiting(self, thread: Thread) -> list[Item]:
        """What an accepted thread has still to take over, or to leave, before it may work."""
        if thread.predecessor is None:
            return []
        return [one for one in self.owed(thread.predecessor) if one.state == OPEN]

    def unresolved(self, thread: str) -> list[Candidate]:
        """Candidates that are neither mapped nor dismissed."""
        return [one for one in self.threads[thread].candidates.values() if not one.answer]

    def _open(self, entry: Entry) -> None:
        if entry.thread in self.threads:
            raise HandoffError(f"{entry.thread} is there already")
        body = entry.body
        session = None if body["session"] is None else str(body["session"])
        same = [one for one in self.threads.values() if session and one.session == session]
        if same:
            raise HandoffError(f"session {session} has a thread already: {same[0].id}")
        row = len(self.threads) + 1
        self.threads[entry.thread] = Thread(
            row, entry.thread, str(body["project"]), str(body["title"]), OPEN, session
        )

    def _put(self, thread: Thread) -> None:
        self.threads[thread.id] = thread

    def _working(self, thread: Thread) -> None:
        """Raises HandoffError unless the thread may start something new."""
        _require(thread)
        waiting = self.waiting(thread)
        if waiting:
            raise HandoffError(
                f"{thread.id} has still to take over {', '.join(one.id for one in waiting)}",
                hint="`savepoint handoff accept` goes on with it",
            )

    def _ask(self, thread: Thread, _entry: Entry) -> None:
        _require(thread)
        self._put(thread._replace(asked=True))

    def _add(self, thread: Thread, entry: Entry) -> None:
        self._working(thread)
        kind = {"offer": OFFER, "work": WORK, "bind": BINDING}[entry.kind]
        item, text = str(entry.body["item"]), str(entry.body["text"])
        if item != self.next_id(kind):
            raise HandoffError(f"{item} is not the next of its kind")
        rest = {name: str(one) for name, one in entry.body.items() if name not in ("item", "text")}
        binding = Binding(**rest) if rest else None
        is_set = binding is not None and binding.driver != "none"
        value = binding.value_for(thread) if binding and is_set else None
        self.items[item] = Item(item, kind, thread.id, text, binding=binding, value=value)

    def _close(self, thread: Thread, entry: Entry) -> None:
        item = self._owed_by(thread, entry)
        self.items[item.id] = item._replace(state=CLOSED, note=str(entry.body["evidence"]))

    def _go(self, thread: Thread, entry: Entry) -> None:
        self._working(thread)
        item = self._owed_by(thread, entry)
        if item.kind != OFFER:
            raise HandoffError(f"{item.id} is no offer")
        self.items[item.id] = item._replace(begun=thread.id)

    def _hold_begin(self, thread: Thread, entry: Entry) -> None:
        self._working(thread)
        stand = self._new_stand("hold", entry)
        self._put(thread._replace(holds={**thread.holds, stand: str(entry.body["text"])}))

    def _action_begin(self, thread: Thread, entry: Entry) -> None:
        self._working(thread)
        stand = self._new_stand("action", entry)
        told = (str(entry.body["text"]), entry.body["process"])
        self._put(thread._replace(actions={**thread.actions, stand: told}))

    def _new_stand(self, kind: str, entry: Entry) -> str:
        stand = str(entry.body["stand"])
        if stand != self.next_id(kind):
            raise HandoffError(f"{stand} is not the next of its kind")
        self._stands += 1
        return stand

    def _hold_end(self, thread: Thread, entry: Entry) -> None:
        self._put(thread._replace(holds=_without(thread.holds, str(entry.body["stand"]))))

    def _action_end(self, thread: Thread, entry: Entry) -> None:
        self._put(thread._replace(actions=_without(thread.actions, str(entry.body["stand"]))))

    def _candidate(self, thread: Thread, entry: Entry) -> None:
        _require(thread)
        body = entry.body
        name = str(body["candidate"])
        if name in thread.candidates:
            raise HandoffError(f"candidate {name} is there already")
        offset = body["offset"]
        found = Candidate(
            name,
            str(body["what"]),
            str(body["text"]),
            offset if isinstance(offset, int) else None,
        )
        self._put(thread._replace(candidates={**thread.candidates, name: found}))

    def _gather(self, thread: Thread, entry: Entry) -> None:
        _require(thread)
        self._put(thread._replace(gathered=entry.body["from"]))

    def _map(self, thread: Thread, entry: Entry) -> None:
        item = str(entry.body["item"])
        if item not in self.items:
            raise HandoffError(f"there is no item {item}")
        self._answer(thread, entry, item)

    def _dismiss(self, thread: Thread, entry: Entry) -> None:
        self._answer(thread, entry, str(entry.body["reason"]))

    def _answer(self, thread: Thread, entry: Entry, answer: str) -> None:
        _require(thread)
        name = str(entry.body["candidate"])
        if name not in thread.candidates:
            raise HandoffError(f"{thread.id} has no candidate {name}")
        if thread.candidates[name].answer:
            raise HandoffError(f"candidate {name} is answered already")
        answered = thread.candidates[name]._replace(answer=answer)
        self._put(thread._replace(candidates={**thread.candidates, name: answered}))

    def _settle(self, thread: Thread, entry: Entry) -> None:
        _require(thread)
        body = entry.body
        heir = str(body["successor"])
        if heir in self.threads:
            raise HandoffError(f"{heir} is there already")
        busy = thread.holds or any(process is None for _, process in thread.actions.values())
        drawn = thread.gathered == body["from"]
        if busy or not drawn or self.unresolved(thread.id) or self.waiting(thread):
            raise HandoffError(f"{thread.id} is not reconciled")
        number = body["number"]
        settled = thread._replace(
            state=SETTLED,
            title=str(body["title"]),
            successor=heir,
            number=number if isinstance(number, int) else 0,
            receipt=str(body["receipt"]),
            savepoint=body["from"],
        )
        self._put(settled)
        self.threads[heir] = Thread(
            len(self.threads) + 1,
            heir,
            thread.project,
            str(body["successor_title"]),
            AWAITED,
            None,
            predecessor=thread.id,
        )

    def _accept(self, thread: Thread, entry: Entry) -> None:
        if thread.state != AWAITED or thread.predecessor != entry.body["predecessor"]:
            first = f"session {thread.session} was first" if thread.session else "nobody awaits it"
            raise HandoffError(f"{thread.id} cannot be accepted: {first}")
        session = str(entry.body["session"])
        own = [one for one in self.threads.values() if one.session == session]
        busy = next((one for one in own if not self._owes_nothing(one)), None)
        if busy is not None:
            raise HandoffError(
                f"session {session} has a thread already: {busy.id}",
                hint="where that owes nothing any more it ends with this; `savepoint handoff "
                "status` shows what it owes",
            )
        for one in own:
            self._put(one._replace(state=SETTLED, successor=thread.id))
        self._put(thread._replace(state=OPEN, session=session))

    def _owes_nothing(self, thread: Thread) -> bool:
        """Is it open, and would nothing be dropped if it ended now?"""
        stands = thread.holds or thread.actions
        open_ = self.owed(thread.id) or self.waiting(thread) or self.unresolved(thread.id)
        return thread.state == OPEN and not stands and not open_

    def _take(self, thread: Thread, entry: Entry) -> None:
        item = self._passed_on(thread, entry)
        value = entry.body["value"]
        if (value is None) != (item.kind != BINDING):
            raise HandoffError(f"{item.id} moves with what was read back, if it is a binding")
        shown = None if value is None else str(value)
        self.items[item.id] = item._replace(thread=thread.id, value=shown)

    def _leave(self, thread: Thread, entry: Entry) -> None:
        item = self._passed_on(thread, entry)
        self.items[item.id] = item._replace(state=LEFT, note=str(entry.body["reason"]))

    def _passed_on(self, thread: Thread, entry: Entry) -> Item:
        """An item that the predecessor of an accepted thread still holds."""
        _require(thread)
        item = self.items.get(str(entry.body["item"]))
        if item is None or item.thread != thread.predecessor or item.state != OPEN:
            raise HandoffError(f"{entry.body['item']} does not wait for {thread.id}")
        return item

    def _owed_by(self, thread: Thread, entry: Entry) -> Item:
        name = str(entry.body["item"])
        item = self.items.get(name)
        if item is None:
            raise HandoffError(f"there is no item {name}")
        if item.state == CLOSED:
            raise HandoffError(f"{name} is closed already: {item.note}")
        if item.thread != thread.id:
            raise HandoffError(f"{name} is with {item.thread}, not with {thread.id}")
        return item

    # What each kind of line does.
    _TAKES: ClassVar[dict[str, Callable[[Ledger, Thread, Entry], None]]] = {
        "ask": _ask,
        "offer": _add,
        "work": _add,
        "bind": _add,
        "close": _close,
        "go": _go,
        "hold_begin": _hold_begin,
        "hold_end": _hold_end,
        "action_begin": _action_begin,
        "action_end": _action_end,
        "candidate": _candidate,
        "gather": _gather,
        "map": _map,
        "dismiss": _dismiss,
        "settle": _settle,
        "accept": _accept,
        "take": _take,
        "leave": _leave,
    }


def _require(thread: Thread) -> None:
    """Only an open thread changes. Raises HandoffError."""
    if thread.state == SETTLED:
        pointer = f"its successor is {thread.successor}"
        raise HandoffError(f"{thread.id} is settled: {pointer}")
    if thread.state == AWAITED:
        raise HandoffError(f"{thread.id} is not accepted yet: `savepoint handoff accept`")


def _without(known: dict[str, _V], name: str) -> dict[str, _V]:
    if name not in known:
        raise HandoffError(f"{name} has not begun, or has ended")
    return {one: value for one, value in known.items() if one != name}


_V = TypeVar("_V")
