"""A saved conversation as a session that the client loads: where to cut it, what to put right, and
what the client will show of it.

The client follows each record to its parent, from the last one back; where that leads nowhere it
stops, and shows less than there is (claude-code#46603: days-old messages after compactions). A
compaction leaves a boundary without a parent, so what follows the last boundary is loaded.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_facts
from savepoint.core import limits
from savepoint.core.named import NamedTuple
from savepoint.resurrect import transcript_lines
from savepoint.resurrect.transcript_lines import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.resurrect.transcript_lines import Line

_CHAIN = frozenset({"user", "assistant", "system", "attachment", "progress"})
_MESSAGES = ("user", "assistant")


class Link(NamedTuple):
    """Where in the file a record names its parent. A record that names none, not even null, gets a
    name at its beginning.
    """

    offset: int
    length: int

    def to(self, parent: str) -> Edit:
        """The repair that lets it name this one."""
        value = f'"{parent}"' if self.length else f'"parentUuid":"{parent}",'
        return Edit(self.offset, self.length, value.encode())


class Node(NamedTuple):
    """A record that hangs on another."""

    uuid: str
    parent: str | None
    kind: str
    is_side: bool  # a subagent's
    answer: str | None  # id of the answer that the record is a block of
    is_result: bool  # of a tool
    link: Link | None  # where the parent's id stands, or is to stand, if it may need repair

    @property
    def is_message(self) -> bool:
        """Is it the user's or the agent's, in the main conversation?"""
        return self.kind in _MESSAGES and not self.is_side


class Session(NamedTuple):
    """How to bring a transcript back, and what will be seen of it."""

    size: int  # bytes of the saved file that the session begins with
    edits: tuple[Edit, ...]  # in them
    ended: bool  # by an LF
    messages: int  # in these bytes
    shown: int  # messages that the client loads
    hidden: int  # messages that it does not load, and that no compaction of its own had cut
    repairs: dict[str, int]  # what was put right → how often

    def pieces(self, saved: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes of the session's file."""
        yield from transcript_lines.edited(saved, self.edits, self.size)
        if not self.ended:
            yield b"\n"


class _Stretch:
    """What lies between two boundaries."""

    def __init__(self, offset: int) -> None:
        self.offset = offset  # of the boundary it begins with
        self.nodes: dict[str, Node] = {}
        self.messages = 0

    def add(self, node: Node) -> None:
        self.nodes[node.uuid] = node
        self.messages += node.is_message


class _Reading:
    """One pass over the saved file."""

    def __init__(self, *, thread: bool) -> None:
        self._thread = thread
        self.edits: list[tuple[Edit, str]] = []
        self.before: _Stretch | None = None
        self.last = _Stretch(0)
        self.messages = 0  # before the last stretch
        self.size = 0  # bytes of whole lines, or of all if the last one is good
        self.ended = True

    def take(self, line: Line) -> None:
        offset, length, data, ended = line
        self.size = offset + length + ended
        record = transcript_lines.plain(data) if length <= limits.RESTORE_LINE_BYTES else None
        if record is not None:
            self.ended = ended
            self._see(record, line, line)
            return
        told = transcript_lines.tell(line)
        self.ended = ended or not told.records
        if not ended and not told.records:  # torn: it was never whole
            self.size = offset
            return
        alone = line if len(told.records) == 1 and not line.is_long else None
        for one in told.records:
            self._see(one, line, alone)
        self.edits += [(edit, told.repair) for edit in told.edits]

    def _see(self, record: Record, line: Line, alone: Line | None) -> None:
        """alone: the line, if it holds this record as it was saved and nothing else."""
        if claude_facts.is_boundary(record):
            self._pass_boundary(record, line.offset)
        self._add(record, alone)

    def _pass_boundary(self, record: Record, offset: int) -> None:
        if record.get("isSidechain") is not True or self._thread:
            self.messages += self.last.messages
            self.before, self.last = self.last, _Stretch(offset)

    def _add(self, record: Record, line: Line | None) -> None:
        kind, message = _name(record.get("type")), record.get("message")
        if kind in _MESSAGES and not isinstance(message, dict):
            return  # another agent's, perhaps: this client shows no such record
        identity = _name(record.get("uuid")) or self._named(kind, line)
        if identity is None or kind not in _CHAIN:
            return
        parent = _name(record.get("parentUuid"))
        link = None
        if line is not None and parent not in self.last.nodes:
            link = _link(line, missing="parentUuid" not in record)
        answer = message.get("id") if kind == "assistant" and isinstance(message, dict) else None
        is_side = record.get("isSidechain") is True
        if is_side and self._thread and line is not None:
            is_side = not self._made_main(line)
        if record.get("isCompactSummary") is True:
            kind = "summary"  # the client's own words
        result = "toolUseResult" in record or _is_result(message)
        self.last.add(Node(identity, parent, kind, is_side, _name(answer), result, link))

    def _made_main(self, line: Line) -> bool:
        """A subagent's record as one of a conversation of its own."""
        span = transcript_lines.member_span(line.data, "isSidechain")
        if span is None:
            return False
        edit = Edit(line.offset + span[0], span[1] - span[0], b"false")
        self.edits.append((edit, "records of a thread"))
        return True

    def _named(self, kind: str | None, line: Line | None) -> str | None:
        """An id for a message that has none: the client would not load it."""
        at = _beginning(line) if line is not None and kind in _MESSAGES else None
        if line is None or at is None:
            return None
        identity = str(uuid.UUID(bytes=hashlib.sha256(line.data).digest()[:16], version=4))
        if identity in self.last.nodes:
            return None  # the same line twice
        self.edits.append((Edit(at, 0, f'"uuid":"{identity}",'.encode()), "messages without an id"))
        return identity


def _name(value: object) -> str | None:
    """As claude_facts.name, at a third of the time for what most are: each of 100 MB has five."""
    if type(value) is str and value.isascii() and 0 < len(value) <= limits.SCAN_STRING_CHARS:
        return value
    return claude_facts.name(value)


def _is_result(message: object) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        for one in content:
            if isinstance(one, dict) and one.get("type") == "tool_result":
                return True
    return False


def _link(line: Line, *, missing: bool) -> Link | None:
    if missing:
        at = _beginning(line)
        return None if at is None else Link(at, 0)
    span = transcript_lines.member_span(line.data, "parentUuid")
    if span is None or line.data[span[0] : span[1]] == b"null":
        return None
    return Link(line.offset + span[0], span[1] - span[0])


def _beginning(line: Line) -> int | None:
    """Where the first member of its object stands."""
    at = line.data.find(b"{")
    return None if at < 0 else line.offset + at + 1


class Reader:
    """Reads the saved file while it passes by, to say how it comes back.

    full: cut before its last compaction, so that the client loads what was there before. Else it
    comes as it was, and the client loads what follows that compaction. thread: it is a subagent's,
    and becomes a conversation of its own. Memory grows with the number of records between two
    compactions, not with their bytes.
    """

    def __init__(self, *, full: bool, thread: bool = False) -> None:
        self._full = full
        self._reading = _Reading(thread=thread)
        self._bytes = 0

    def passing(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same pieces, each when it was read."""
        cutter, take = transcript_lines.Cutter(), self._reading.take
        for piece in pieces:
            for line in cutter.cut(piece):
                take(line)
            self._bytes += len(piece)
            yield piece
        for line in cutter.rest():
            take(line)

    def is_as_saved(self, session: Session) -> bool:
        """Are the session's bytes just those that passed?"""
        return session.ended and not session.edits and session.size == self._bytes

    def session(self) -> Session:
        """What was found, when all has passed."""
        reading = self._reading
        stretch, size, ended = reading.last, reading.size, reading.ended
        messages, lost = reading.messages + stretch.messages, 0
        if self._full and reading.before is not None:
            size, ended = stretch.offset, True
            messages, lost = reading.messages, stretch.messages
            stretch = reading.before
        edits = [(edit, why) for edit, why in reading.edits if edit.offset < size]
        known = dict(stretch.nodes)
        edits += [(edit, "links that led nowhere") for edit in _relinked(known)]
        shown = _shown(known)
        return Session(
            size=size,
            edits=tuple(sorted(edit for edit, _ in edits)),
            ended=ended,
            messages=messages,
            shown=shown,
            hidden=stretch.messages - shown + lost,
            repairs=dict(Counter(why for _, why in edits)),
        )


def _relinked(known: dict[str, Node]) -> list[Edit]:
    """Each record of the conversation whose parent is nowhere hangs on the one before it, from now
    on.
    """
    edits: list[Edit] = []
    previous: Node | None = None
    for node in list(known.values()):
        one = node
        if one.is_side:
            continue
        link = one.link
        lost = link is not None and (one.parent is None or one.parent not in known)
        if lost and previous is not None and not _leads_to(known, previous, one.uuid):
            assert link is not None  # noqa: S101  # it is lost; for the type checker
            edits.append(link.to(previous.uuid))
            one = one._replace(parent=previous.uuid)
            known[one.uuid] = one
        previous = one
    return edits


def _leads_to(known: dict[str, Node], start: Node, wanted: str) -> bool:
    """Does the way from `start` to its root pass `wanted`? Then a new link would close a circle."""
    return any(one.uuid == wanted for one in _way(known, start))


def _way(known: dict[str, Node], start: Node) -> Iterator[Node]:
    """From a record to its root; a circle is walked once."""
    passed: set[str] = set()
    at: Node | None = start
    while at is not None and at.uuid not in passed:
        passed.add(at.uuid)
        yield at
        at = known.get(at.parent) if at.parent is not None else None


def _shown(nodes: dict[str, Node]) -> int:
    """How many messages the client loads: those on the way from the last one to the root, and the
    other blocks of their answers with the results of these: calls made at once branch off.
    """
    known = {uuid: one for uuid, one in nodes.items() if not one.is_side}
    last = next((one for one in reversed(known.values()) if one.is_message), None)
    if last is None:
        return 0
    way = {one.uuid: one for one in _way(known, last)}
    answers = {one.answer for one in way.values()} - {None}
    off = [one for uuid, one in known.items() if uuid not in way]
    blocks = {one.uuid for one in off if one.answer in answers}
    blocks |= {one.uuid for one in way.values() if one.answer in answers}
    beside = [one for one in off if one.uuid in blocks or (one.is_result and one.parent in blocks)]
    return sum(one.is_message for one in (*way.values(), *beside))
