"""A store with threads in it, and a transcript that goes on as a session does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from savepoint.core import handoff_log
from savepoint.core.handoff_log import Author, Draft, Entry
from succession import handoff
from succession.handoff import accept, create, drivers, gather, log, running
from succession.handoff.create import Created, Standing
from succession.handoff.ledger import BINDING, OFFER, WORK, Ledger
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from succession.handoff.accept import Accepted
    from succession.handoff.drivers import Driver
    from succession.handoff.gather import Found
    from succession.handoff.ledger import Thread
    from succession.handoff.log import Log
    from succession.handoff.turn import Reason

NOW = builder.NOW
FIRST, SECOND, THIRD = (f"{n * 8}-2222-4333-8444-555555555555" for n in ("1", "2", "3"))
LINES = {OFFER: "offer", WORK: "work", BINDING: "bind"}


class Nobody:
    """A driver of the caller's that is not there."""

    def read(self, place: str, key: str) -> str | None:
        raise AssertionError(place + key)

    def write(self, place: str, key: str, value: str) -> None:
        raise AssertionError(place + key + value)


class Threads:
    """One store; `add` writes a line of the log as a command does."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.built = builder.new(folder / "home", self.project)
        self.store = self.built.paths.store
        self.author = Author(str(builder.INSTANCE), self.built.seed)
        self.savepoint: Record = builder.save(self.built, b"{}\n")

    @property
    def file(self) -> Path:
        """The log."""
        return Path(log.folder_of(self.store), handoff.LOG)

    @property
    def ledger(self) -> Ledger:
        """As the file has it."""
        found = log.read(self.store)
        assert found is not None
        return found

    def held(self) -> AbstractContextManager[Log]:
        return log.opened(self.store, time.monotonic() + 120, make_it=True)

    def add(self, kind: str, thread: str, **body: Json) -> Entry:
        with self.held() as held:
            (made,) = held.add(self.author, NOW, [Draft(kind, thread, body)])
        return made

    def open(self, title: str = "x", session: str | None = FIRST) -> str:
        new = create.new_thread()
        self.add("open", new, project=str(self.project), title=title, session=session)
        return new

    def ledger_thread(self) -> Thread:
        """A new thread, as the ledger has it."""
        new = self.open()
        return self.ledger.threads[new]

    def owe(self, thread: str, kind: str = OFFER, text: str = "do it", **binding: Json) -> str:
        item = self.ledger.next_id(kind)
        self.add(LINES[kind], thread, item=item, text=text, **binding)
        return item

    def bind(self, thread: str, driver: str = "registry", **more: Json) -> str:
        bound: dict[str, Json] = {
            "driver": driver,
            "place": "rows.tsv",
            "key": "bot",
            "value": "{session}",
            "reason": "",
        }
        return self.owe(thread, BINDING, "a row", **{**bound, **more})

    def close(self, item: str, evidence: str = "commit 1") -> None:
        self.add("close", self.ledger.items[item].thread, item=item, evidence=evidence)

    def gather(self, thread: str, found: Sequence[Found] = ()) -> list[str]:
        """The candidates that are unresolved after it."""
        with self.held() as held:
            own = held.ledger.threads[thread]
            gather.write(held, self.author, NOW, own, self.savepoint.origin(), found)
            return [one.id for one in held.ledger.unresolved(thread)]

    def create(self, thread: str, reasons: Sequence[Reason] = ()) -> Created:
        standing = Standing(self.savepoint, {"local": "VERIFIED", "git": "OFF", "chain": "OFF"}, [])
        with self.held() as held:
            own = held.ledger.threads[thread]
            return create.create(held, self.author, NOW, own, standing, list(reasons))

    def settled(self, thread: str) -> Created:
        """Gathered and handed off."""
        self.gather(thread)
        return self.create(thread)

    def accept(
        self, thread: str, session: str = SECOND, known: Mapping[str, Driver] | None = None
    ) -> Accepted:
        ledger = self.ledger
        offer = accept.offered(self.store, ledger, ledger.threads[thread])
        drivers = known or self.drivers
        return accept.accept(self.store, self.author, NOW, offer, session, drivers)

    @property
    def drivers(self) -> Mapping[str, Driver]:
        return drivers.all_of(str(self.project), Nobody(), Nobody())

    def is_idle(self, session: str = FIRST) -> None:
        """A Stop that told that nothing runs."""
        running.keep(self.store, session, b'{"background_tasks":[],"session_crons":[]}')

    def entries(self) -> list[Entry]:
        return handoff_log.Chain(self.file.read_bytes()).entries


def said(kind: str, *blocks: dict[str, Any] | str, **more: Any) -> bytes:  # noqa: ANN401
    """A line of a transcript."""
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    message = {"role": kind, "content": content}
    return json.dumps({"type": kind, "message": message, **more}).encode() + b"\n"


def user(text: str, **more: Any) -> bytes:  # noqa: ANN401
    return said("user", text, **more)


def agent(*blocks: dict[str, Any] | str, **more: Any) -> bytes:  # noqa: ANN401
    return said("assistant", *blocks, **more)


def call(identity: str, name: str = "Bash", **given: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def result(identity: str, **more: Any) -> bytes:  # noqa: ANN401
    block = {"type": "tool_result", "tool_use_id": identity, "content": "done"}
    return said("user", block, **more)
