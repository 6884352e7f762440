"""One walk over new bytes of a Claude Code transcript, line by line.

Most lines are only counted, by their two ends (claude_lines); the few that carry a fact are parsed.
Of answers only the last is looked into, of lines that show a file the newest of each path, both
when the piece is walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from savepoint.capture.agents import FileNote, Span, claude_facts, claude_lines
from savepoint.core import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.capture.agents.claude_lines import Head
    from savepoint.capture.agents.claude_scan import Scan


class Sight(NamedTuple):
    """A line of the piece that shows a file."""

    start: int
    stop: int
    kind: str  # read, attached, written
    repeats: bool = False  # it has no content of its own
    proven: bool = False  # parsed; else only the start of its `toolUseResult` was looked at


class Walk:
    """Takes whole lines of `data`, whose first byte stands at `base` in the file, into `scan`."""

    def __init__(self, scan: Scan, data: bytes, base: int) -> None:
        self._scan, self._data, self._base = scan, data, base
        self._tally: dict[tuple[str | None, str | None], int] = {}  # lines by type and session
        self._answers: list[tuple[int, int]] = []  # assistant lines since a boundary
        self._sights: dict[str, list[Sight]] = {}

    def lines(self, start: int, end: int) -> None:
        """Walk data[start:end], which ends with a line end."""
        data, at = self._data, start
        glue = claude_lines.glued(data, start)
        while at < end:
            stop = data.find(b"\n", at)
            if stop - at > limits.SCAN_LINE_BYTES:
                self._scan.take_long(claude_lines.ends(data[at:stop].rstrip(b"\r")))
            elif glue < stop or not self._tell(at, stop):
                self._parse(at, stop)
            if glue < stop:
                glue = claude_lines.glued(data, stop)
            at = stop + 1
        self._settle(start, end)

    def _tell(self, at: int, stop: int) -> bool:
        """Count a line by its two ends. False, and nothing is changed: it has to be parsed."""
        data = self._data
        head = self._head(at, stop) if data[stop - 1] == _BRACE else None
        if head is None:
            return False
        kind, session = head.kind, head.session
        if kind is None and not head.whole:
            tail = claude_lines.tail_type(data, at, stop, session)
            if tail is None:
                return False
            kind, session = tail
        if session is None and not head.whole:
            session = claude_lines.tail_session(data, at, stop)
            if session is None:
                return False
        look = _LOOKS.get(kind or "")
        if look is not None and not look(self, head, at, stop):
            return False
        self._tally[kind, session] = self._tally.get((kind, session), 0) + 1
        self._scan.torn = 0
        return True

    def _head(self, at: int, stop: int) -> Head | None:
        """The line's head: most lines of a session start alike but for the parent's id."""
        data, place = self._data, at + claude_lines.LINK_END
        linked = data.startswith(claude_lines.LINKED, at)
        if not linked or data.find(b'"', at + len(claude_lines.LINKED), stop) != place:
            return claude_lines.read_head(data, at, stop)
        for shape in self._scan.shapes:
            if data.startswith(shape.text, place):
                return shape
        head = claude_lines.read_head(data, at, stop, claude_lines.LINK_END)
        if head is not None and claude_lines.comes_again(head):
            self._scan.shapes.insert(0, head)
            del self._scan.shapes[limits.SCAN_SHAPES :]
        return head

    def _look_user(self, _head: Head, at: int, stop: int) -> bool:
        data = self._data
        found = data.find(_RESULT, at, stop)
        if found < 0:
            return data.find(_TODOS, at, stop) < 0
        value = found + len(_RESULT)
        result = claude_lines.read_result(data, value, stop)
        if result is not None:
            path = claude_facts.path_of(claude_lines.string(result.path))
            self._see(path, Sight(at, stop, result.kind))
            return path is not None
        dull = claude_lines.is_dull_result(data, value, stop)
        return dull and data.find(_RESULT, value, stop) < 0 and data.find(_TODOS, at, stop) < 0

    def _look_assistant(self, _head: Head, at: int, stop: int) -> bool:
        data = self._data
        found = data.find(_TOOL_USE, at, stop)
        while found >= 0:
            call = claude_lines.read_call(data, found, stop)
            if call is None or (call.path is None and call.tool in claude_facts.TOOLS):
                return False
            if call.path is not None and call.tool == "Read":
                self._scan.learn_call(call.id, claude_lines.string(call.path))
            found = data.find(_TOOL_USE, found + 1, stop)
        self._answers.append((at, stop))
        return True

    def _look_attachment(self, head: Head, at: int, stop: int) -> bool:
        if head.opens != b'"attachment":{':
            return False
        kind = claude_lines.opened_type(self._data, at, stop)
        return kind is not None and not claude_facts.is_attachment_told(kind)

    def _look_system(self, head: Head, _at: int, _stop: int) -> bool:
        if head.subtype == "compact_boundary":
            self._pass_boundary()
        return head.subtype is not None or head.whole

    def _look_backups(self, _head: Head, at: int, stop: int) -> bool:
        found, whole = claude_lines.objects(self._data[at:stop])
        for record in found:
            self._scan.learn_backups(record)
        return whole

    def _parse(self, at: int, stop: int) -> None:
        """Take a line by its JSON."""
        scan, line = self._scan, self._data[at:stop]
        if not line.strip(b" \t\r"):
            return
        found, whole = claude_lines.objects(line)
        scan.records += 1 - len(found)  # each object is in the tally
        scan.glued += len(found) > 1
        scan.unparsable += not whole
        scan.torn = 0 if whole else len(line)
        for record in found:
            key = claude_facts.kind_of(record), claude_facts.name(record.get("sessionId"))
            self._tally[key] = self._tally.get(key, 0) + 1
            self._learn(record, at, stop)

    def _learn(self, record: Record, at: int, stop: int) -> None:
        """Everything that a parsed record says but its type and session."""
        if claude_facts.is_boundary(record):
            self._pass_boundary()
        if record.get("type") == "assistant":
            self._answers.append((at, stop))
        self._scan.learn(record, Span(self._base + at, stop - at))
        for touch in claude_facts.touches(record, self._scan.calls):
            self._see(touch.path, Sight(at, stop, touch.kind, touch.repeats, proven=True))

    def _see(self, path: str | None, sight: Sight) -> None:
        if path is not None:
            self._sights.setdefault(path, []).append(sight)

    def _pass_boundary(self) -> None:
        self._settle_answers()
        self._scan.boundaries += 1
        self._scan.usage = None

    def _settle(self, start: int, end: int) -> None:
        """What is known only when the whole piece was walked."""
        scan = self._scan
        for (kind, session), lines in self._tally.items():
            scan.records += lines
            scan.count(kind, session, lines)
        self._settle_answers()
        self._settle_sights()
        scan.version = self._last("version", start, end) or scan.version
        scan.cwd = self._last("cwd", start, end) or scan.cwd

    def _settle_answers(self) -> None:
        """The last use of tokens and the last model among the answers not looked into yet."""
        usage = model = None
        for at, stop in self._answers[: -limits.SCAN_BACKTRACKS - 1 : -1]:
            for record in reversed(claude_lines.objects(self._data[at:stop])[0]):
                model = model or claude_facts.model(record)
                if usage is None and claude_facts.used_tokens(record) is not None:
                    usage = Span(self._base + at, stop - at)
            if usage and model:
                break
        self._scan.usage = usage or self._scan.usage
        self._scan.model = model or self._scan.model
        self._answers = []

    def _settle_sights(self) -> None:
        """Of each file the newest record, in the order of the piece.

        A long session edits the same few files again and again, and such records are most of its
        bytes: an older one is looked into only if the newer deceived or has no content of its own.
        """
        news = []
        for path, sights in self._sights.items():
            sight = self._newest(path, sights)
            if sight is not None and not (sight.repeats and path in self._scan.files):
                news.append((sight.start, path, sight))
        for start, path, sight in sorted(news):
            note = FileNote(sight.kind, self._base + start, sight.stop - start)
            self._scan.see_file(path, note)

    def _newest(self, path: str, sights: list[Sight]) -> Sight | None:
        repeat = None
        for sight in reversed(sights):
            proven = self._prove(path, sight)
            if proven is not None and not proven.repeats:
                return proven
            repeat = repeat or proven
        return repeat

    def _prove(self, path: str, sight: Sight) -> Sight | None:
        """The sight as the record's JSON has it; None if its looks deceived."""
        line = self._data[sight.start : sight.stop]
        if sight.proven or claude_lines.is_proven_result(line):
            return sight
        for record in claude_lines.objects(line)[0]:
            for touch in claude_facts.touches(record, self._scan.calls):
                if touch.path == path:
                    return sight._replace(kind=touch.kind, repeats=touch.repeats)
        return None

    def _last(self, member: str, start: int, end: int) -> str | None:
        """The last value of a top-level string member in data[start:end]."""
        data, needle = self._data, b'"' + member.encode() + b'"'
        for _ in range(limits.SCAN_BACKTRACKS):
            found = data.rfind(needle, start, end)
            if found < 0:
                return None
            end = max(start, data.rfind(b"\n", start, found) + 1)
            stop = data.find(b"\n", found)
            if stop - end <= limits.SCAN_LINE_BYTES:
                for record in reversed(claude_lines.objects(data[end:stop])[0]):
                    value = claude_facts.name(record.get(member))
                    if value is not None:
                        return value
        return None


_BRACE = ord("}")
_RESULT = b'"toolUseResult":'
_TODOS = b'"todos":'
_TOOL_USE = b'"type":"tool_use"'
_LOOKS: dict[str, Callable[[Walk, Head, int, int], bool]] = {
    "user": Walk._look_user,
    "assistant": Walk._look_assistant,
    "attachment": Walk._look_attachment,
    "system": Walk._look_system,
    "file-history-snapshot": Walk._look_backups,
    "file-history-delta": Walk._look_backups,
}
