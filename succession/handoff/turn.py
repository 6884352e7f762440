"""The end of a Claude Code transcript: does a turn go on, and what did it leave running?

Reads tolerantly, as the adapter does; every answer names the line that says so by its offset.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_facts, claude_lines
from savepoint.core import limits
from savepoint.core.named import NamedTuple
from succession.handoff import shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.capture.agents.claude_facts import Record

NOT_ASKED = ("<local-command-", "[Request interrupted by user")
_ENDED = frozenset({"completed", "failed", "killed", "stopped", "cancelled"})
_SHOWN = 120  # characters of a message or call in evidence


class Reason(NamedTuple):
    """Why a thread cannot be handed off now."""

    what: str  # mid-turn, running, hold, action, not reconciled, not known
    evidence: str
    offset: int | None = None  # bytes: of the line in the transcript


class Blocks(NamedTuple):
    """What a record of the conversation holds."""

    texts: list[str]
    calls: list[tuple[str, str, str]]  # id, name, command line
    results: list[str]  # ids of the calls that are answered


def lines(data: bytes, base: int = 0) -> Iterator[tuple[int, Record]]:
    """Each record with the offset of its line; `base`: of data[0]."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if end - at <= limits.SCAN_LINE_BYTES:
            for record in claude_lines.objects(data[at:end])[0]:
                yield base + at, record
        at = end + 1


def is_spoken(record: Record) -> bool:
    """Is it a message of the session's own conversation, and no text of the client's?"""
    odd = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
    return claude_facts.kind_of(record) in {"user", "assistant"} and not any(
        record.get(name) is True for name in odd
    )


def blocks(record: Record) -> Blocks:
    """The texts, calls and results of a message."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    found = Blocks([], [], [])
    if isinstance(content, str):
        found.texts.append(content)
    for block in content if isinstance(content, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            found.texts.append(block["text"])
        elif kind == "tool_use":
            given = block.get("input")
            command = given.get("command") if isinstance(given, dict) else None
            told = (block.get("id"), block.get("name"), command)
            found.calls.append(tuple(one if isinstance(one, str) else "" for one in told))  # type: ignore[arg-type]  # three
        elif kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
            found.results.append(block["tool_use_id"])
    return found


def open_turn(data: bytes, base: int = 0) -> list[Reason]:
    """Why the session is in the middle of something. data: its transcript, or the end of it."""
    turn = Turn()
    for offset, record in lines(data, base):
        turn.take(offset, record)
    return turn.reasons()


class Turn:
    """Follows the conversation: who is to say something, and what runs."""

    def __init__(self) -> None:
        self._waits: Reason | None = None  # for an answer of the agent
        self.calls: dict[str, tuple[str, str, int]] = {}  # open: name, command line, offset
        self._queue: list[Reason] = []  # messages that the user typed meanwhile
        self.running: dict[str, Reason] = {}  # sent to the background, by id

    def take(self, offset: int, record: Record) -> None:
        """Follow it by one record."""
        kind = claude_facts.kind_of(record)
        if kind == "queue-operation":
            self._take_queued(offset, record)
        self._take_running(offset, record)
        if claude_facts.is_boundary(record):
            self.calls.clear()  # what a compaction cut off gets no result any more
        if not is_spoken(record):
            return
        told = blocks(record)
        if kind == "assistant":
            self._answer(offset, record, told)
        else:
            self._ask(offset, told)

    def reasons(self) -> list[Reason]:
        """Why it is in the middle of something; empty: it is the user's turn, and nothing runs."""
        calls = dict(self.calls)
        own = [one for one, (_, command, _) in calls.items() if _is_own(command)]
        if own:
            del calls[own[-1]]  # this very command; and the message that asked for it is answered
        found = [self._waits] if self._waits else []
        found += [
            Reason("mid-turn", f"the call {one} of {name} has no result", offset)
            for one, (name, _, offset) in calls.items()
        ]
        return [*found, *self._queue, *self.running.values()]

    def _answer(self, offset: int, record: Record, told: Blocks) -> None:
        if record.get("isApiErrorMessage") is True:
            return
        if told.texts or told.calls:
            self._waits = None
        for identity, name, command in told.calls:
            self.calls[identity] = (name, command, offset)

    def _ask(self, offset: int, told: Blocks) -> None:
        for identity in told.results:
            self.calls.pop(identity, None)
            self._waits = Reason("mid-turn", f"nothing followed the result of {identity}", offset)
        text = "\n".join(told.texts).strip()
        if text.startswith(NOT_ASKED):
            self._waits = None
            if not text.startswith("<"):
                self.calls.clear()  # what was interrupted gets no result any more
        elif text:
            if not told.results:
                self.calls.clear()  # of an earlier turn, whose answers were lost
            why = f"the user's message has no answer: {shown(text)}"
            self._waits = Reason("mid-turn", why, offset)

    def _take_queued(self, offset: int, record: Record) -> None:
        operation, content = record.get("operation"), record.get("content")
        if operation == "enqueue":
            text = content if isinstance(content, str) else ""
            why = f"a message of the user is queued: {shown(text)}"
            self._queue.append(Reason("mid-turn", why, offset))
        elif operation == "popAll":
            self._queue.clear()
        elif operation in {"dequeue", "remove"}:
            del self._queue[:1]

    def _take_running(self, offset: int, record: Record) -> None:
        """Commands that were sent to the background, and what is told of them since."""
        result = record.get("toolUseResult")
        if isinstance(result, dict) and isinstance(result.get("backgroundTaskId"), str):
            identity = result["backgroundTaskId"]
            why = f"background task {identity}"
            self.running[identity] = Reason("running", why, offset)
        told = record.get("attachment")
        if isinstance(told, dict) and told.get("type") == "task_status":
            identity = told.get("taskId") or told.get("task_id")
            if told.get("status") in _ENDED and isinstance(identity, str):
                self.running.pop(identity, None)
        for text in blocks(record).texts if claude_facts.kind_of(record) == "user" else []:
            for identity in re.findall(r"<task-id>([^<]+)</task-id>", text):
                self.running.pop(identity, None)


def _is_own(command: str) -> bool:
    """Is it one of ours about threads, and nothing else? What else it ran would be cut off."""
    return {"handoff"} == set(shell.subcommands(command) or ())


def is_ended(status: object) -> bool:
    """Does a task of that status run no more?"""
    return isinstance(status, str) and status.lower() in _ENDED


def shown(text: str) -> str:
    """A text in one line of evidence."""
    line = " ".join(text.split())
    clean = claude_lines.clean(line) or ""
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 1] + "…"
