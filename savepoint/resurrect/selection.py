"""A part of a conversation: one thread of it, or a span of its messages or of time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_facts
from savepoint.core import spelling
from savepoint.core.errors import SelectorError
from savepoint.core.named import NamedTuple
from savepoint.resurrect import transcript_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.core.snapshot import StoredFile

_FOLDERS = ("subagents/", "")  # a client before 2.1.2 has them beside the transcript


class Span(NamedTuple):
    """Which messages: by number, counted from 1, and by time. None: no bound on that side."""

    first: int | None = None
    last: int | None = None
    since: float | None = None  # Unix seconds
    until: float | None = None

    def holds(self, number: int, moment: float | None) -> bool:
        """Is a message within it? One without a time is, by time."""
        by_number = (self.first or 1) <= number and (self.last is None or number <= self.last)
        if moment is None:
            return by_number
        early = self.since is not None and moment < self.since
        return by_number and not early and (self.until is None or moment <= self.until)


class Part(NamedTuple):
    """What of a conversation comes back; nothing given: all of it."""

    full: bool = False  # from before its last compaction
    thread: str = ""  # id of a subagent
    span: Span | None = None


def thread(files: Iterable[StoredFile], identity: str) -> StoredFile:
    """The transcript of a subagent among the files of a conversation. Raises SelectorError."""
    known = {str(one.path): one for one in files if one.part == "companion"}
    name = f"agent-{identity.removeprefix('agent-')}.jsonl"
    for path in (folder + name for folder in _FOLDERS):
        if path in known:
            return known[path]
    there = [path for path in known if path.rpartition("/")[2].startswith("agent-")]
    names = [
        path.rpartition("/")[2].removesuffix(".jsonl")[6:] for path in there if ".meta" not in path
    ]
    hint = f"it has: {', '.join(sorted(names)) or 'none'}"
    raise SelectorError(f"the savepoint has no thread {identity}", hint=hint)


class Cut(NamedTuple):
    """A span in a transcript: where it begins and ends, bytes, and the number of its first message,
    counted from 1.
    """

    start: int
    end: int
    first: int


def cut(pieces: Iterable[bytes], span: Span) -> Cut:
    """Where a span lies in a transcript. It begins with the prompt that its first
    message answers: the API takes no answer without one. Raises SelectorError: nothing is in it.
    """
    number, end = 0, 0
    prompt, start = (0, 1), None  # offset and number
    moment: float | None = None
    times: list[float] = []  # of the earliest and the latest message
    for line in transcript_lines.lines(pieces):
        for record in transcript_lines.tell(line).records:
            if claude_facts.kind_of(record) not in ("user", "assistant"):
                continue
            number += 1
            moment = _moment(record, moment)
            if moment is not None:
                times = [min([moment, *times]), max([moment, *times])]
            if _is_prompt(record):
                prompt = line.offset, number
            if span.holds(number, moment):
                start = prompt if start is None else start
                end = line.offset + line.length + line.ended
    if start is None:
        when = f", from {' to '.join(map(_time, times))}" if times else ""
        hint = f"there are {number} messages{when}"
        raise SelectorError("no message is in that span", hint=hint)
    return Cut(start[0], end, start[1])


def _time(moment: float) -> str:
    return spelling.time_text(int(moment))


def sliced(pieces: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file from `start` up to `end`."""
    position = 0
    for piece in pieces:
        low, high = max(0, start - position), max(0, end - position)
        if high == 0:
            return
        if low < len(piece):
            yield piece[low:high]
        position += len(piece)


def _is_prompt(record: Record) -> bool:
    """Did the user say it, or is it a result of a tool?"""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if record.get("type") != "user":
        return False
    blocks = content if isinstance(content, list) else []
    return not any(isinstance(b, dict) and b.get("type") == "tool_result" for b in blocks)


def _moment(record: Record, before: float | None) -> float | None:
    """When it was said; a record without a time was said with the one before."""
    text = claude_facts.name(record.get("timestamp"))
    try:
        return datetime.fromisoformat(text).timestamp() if text else before
    except ValueError:
        return before
