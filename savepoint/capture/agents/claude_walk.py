"""One walk over new bytes of a Claude Code transcript, line by line.

Most lines are only counted, by their two ends (claude_lines); the few that carry a fact are parsed.
Of answers only the last is looked into, when the piece is walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from savepoint.capture.agents import FileNote, Span, claude_facts, claude_lines
from savepoint.capture.agents.claude_facts import Touch
from savepoint.core import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.capture.agents.claude_lines import Head
    from savepoint.capture.agents.claude_scan import Scan


class Walk:
    """Takes whole lines of `data`, whose first byte stands at `base` in the file, into `scan`."""

    def __init__(self, scan: Scan, data: bytes, base: int) -> None:
        self._scan, self._data, self._base = scan, data, base
        self._tally: dict[tuple[str | None, str | None], int] = {}  # lines by type and session
        self._answers: list[tuple[int, int]] = []  # assistant lines since a boundary
        self._odd: set[int] = set()  # starts of lines that are not one object

    def lines(self, start: int, end: int) -> None:
        """Walk data[start:end], which ends with a line end."""
        data, at = self._data, start
        glue = claude_lines.glued(data, start)
        while at < end:
            stop = data.find(b"\n", at)
            if stop - at > limits.SCAN_LINE_BYTES:
                line = data[at:stop].rstrip(b"\r")
                self._scan.take_long(claude_lines.ends(line), len(line))
            elif stop < glue and data[stop - 1] == _BRACE and self._tell(at, stop):
                self._scan.torn = 0
            else:
                self._parse(at, stop)
            if glue < stop:
                glue = claude_lines.glued(data, stop)
            at = stop + 1
        self._settle(start, end)

    def last_line(self) -> None:
        """Take `data`, a line that lacks its end."""
        self._parse(0, len(self._data))
        self._settle(0, len(self._data))

    def _tell(self, at: int, stop: int) -> bool:
        """Count a line by its two ends. False, and nothing is changed: it has to be parsed."""
        head = self._head(at, stop)
        if head is None:
            return False
        key = claude_lines.read_tail(self._data, at, stop, head.key) if head.half else head.key
        if key is None:
            return False
        look = self._LOOKS.get(key[0])
        if look is not None and not look(self, head, at, stop):
            return False
        self._tally[key] = self._tally.get(key, 0) + 1
        return True

    def _head(self, at: int, stop: int) -> Head | None:
        """The line's head: most lines of a session start alike but for the parent's id."""
        data, place = self._data, at + claude_lines.LINK_END
        linked = data.startswith(claude_lines.LINKED, at)
        if not linked or data.find(b'"', at + len(claude_lines.LINKED), stop) != place:
            return claude_lines.read_head(data, at, stop)
        for known in self._scan.heads:
            if data.startswith(known.text, place):
                return known
        head = claude_lines.read_head(data, at, stop, claude_lines.LINK_END)
        if head is not None and claude_lines.comes_again(head):
            self._scan.heads.insert(0, head)
            del self._scan.heads[limits.SCAN_HEADS :]
        return head

    def _look_user(self, _head: Head, at: int, stop: int) -> bool:
        data = self._data
        found = data.find(_RESULT, at, stop)
        if found < 0:
            return data.find(_TODOS, at, stop) < 0 or self._look_todos(at, stop)
        value = found + len(_RESULT)
        result = claude_lines.FILE_RESULT.match(data, value, stop)
        if result is not None:
            path = claude_facts.path_of(claude_lines.string(result[2]))
            if path is None or not claude_lines.follows_message(data, at, found):
                return False
            self._see(Touch(path, "read" if result[1] else "written"), at, stop)
            return True
        dull = claude_lines.is_dull_result(data, value, stop)
        return dull and data.find(_RESULT, value, stop) < 0 and data.find(_TODOS, at, stop) < 0

    def _look_todos(self, at: int, stop: int) -> bool:
        empty = claude_lines.ends_without_todos(self._data, at, stop)
        if empty:
            self._scan.todos = Span(self._base + at, stop - at)
        return empty

    def _look_assistant(self, _head: Head, at: int, stop: int) -> bool:
        data = self._data
        found = data.find(_TOOL_USE, at, stop)
        while found >= 0:
            call = claude_lines.TOOL_USE.match(data, found, stop)
            if call is None:
                return False
            if call[2] == b"Read" and call[3] is not None:
                self._scan.learn_call(call[1], call[3])
            elif call[2] in claude_facts.TOOLS:
                return False
            found = data.find(_TOOL_USE, found + 1, stop)
        self._answers.append((at, stop))
        return True

    def _look_attachment(self, head: Head, at: int, stop: int) -> bool:
        if head.opens != b'"attachment":':
            return False
        kind = claude_lines.opened_type(self._data, at, stop)
        return kind is not None and not claude_facts.is_attachment_told(kind)

    def _look_system(self, head: Head, _at: int, _stop: int) -> bool:
        if head.subtype == "compact_boundary":
            self._pass_boundary()
        return head.subtype is not None

    def _look_backups(self, _head: Head, at: int, stop: int) -> bool:
        names = claude_lines.backup_names(self._data, at, stop)
        if names is not None:
            self._scan.learn_backups(names)
        return names is not None

    # What else a type of record can tell; False, and nothing changed: it has to be parsed. Bound
    # methods kept in each walk would make a cycle, in which the pieces of a long file pile up.
    _LOOKS: ClassVar[dict[str | None, Callable[[Walk, Head, int, int], bool]]] = {
        "user": _look_user,
        "assistant": _look_assistant,
        "attachment": _look_attachment,
        "system": _look_system,
        "file-history-snapshot": _look_backups,
        "file-history-delta": _look_backups,
    }

    def _parse(self, at: int, stop: int) -> None:
        """Take a line by its JSON."""
        scan, line = self._scan, self._data[at:stop]
        if not line.strip(b" \t\r"):
            return
        found, whole = claude_lines.objects(line)
        scan.records += 1 - len(found)  # each object is in the tally
        scan.glued += len(found) > 1
        if len(found) != 1 or not whole:
            self._odd.add(at)
        scan.unparsable += not whole
        scan.torn = 0 if whole else len(line)
        for record in found:
            key = claude_facts.kind_of(record), claude_facts.name(record.get("sessionId"))
            self._tally[key] = self._tally.get(key, 0) + 1
            self._learn(record, at, stop)

    def _learn(self, record: Record, at: int, stop: int) -> None:
        """Everything that a parsed record says but its type and session."""
        kind = record.get("type")
        if claude_facts.is_boundary(record):
            self._pass_boundary()
        elif kind in _TELLING:
            if kind == "assistant":
                self._answers.append((at, stop))
            self._scan.learn(record, Span(self._base + at, stop - at))
            touched = claude_facts.touches(record, self._scan.calls)
            for touch in touched:
                self._see(touch, at, stop)
            self._scan.nameless += not touched and claude_facts.is_nameless(record)
        else:
            self._scan.learn_backups(claude_facts.backups(record))

    def _see(self, touch: Touch, at: int, stop: int) -> None:
        files = self._scan.files
        if not (touch.repeats and touch.path in files):
            self._scan.see_file(touch.path, FileNote(touch.kind, self._base + at, stop - at))

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

    def _last(self, key: str, start: int, end: int) -> str | None:
        """The last string that a record of data[start:end] has at its top under `key`."""
        data, needle = self._data, b'"%s"' % key.encode()
        found = end - 1
        for _ in range(limits.SCAN_BACKTRACKS):
            end = max(start, data.rfind(b"\n", start, found) + 1)
            stop = data.find(b"\n", found)
            value = self._member(key, end, stop if stop >= 0 else len(data))
            found = data.rfind(needle, start, end)
            if value is not None or found < 0:
                return value
        return None

    def _member(self, key: str, at: int, stop: int) -> str | None:
        if stop - at > limits.SCAN_LINE_BYTES:
            return None
        line = self._data[at:stop]
        if at not in self._odd:
            value = claude_lines.member(line, key)
            if value:
                return value
        records = claude_lines.objects(line)[0]
        values = [claude_facts.name(record.get(key)) for record in records]
        return next(filter(None, reversed(values)), None)


_BRACE = ord("}")
_TELLING = ("user", "assistant", "attachment")
_RESULT = b'"toolUseResult":'
_TODOS = b'"todos":'
_TOOL_USE = b'"type":"tool_use"'
