"""The fold over a Claude Code transcript: counts, and where the lines are that say something.

The state is bounded whatever is fed. How a piece of new bytes is walked: claude_walk, which is
imported when there are some: most fires find nothing new.
"""

from __future__ import annotations

from savepoint.capture.agents import claude_state
from savepoint.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from savepoint.capture.agents import FileNote, Span
    from savepoint.capture.agents.claude_facts import Record, Task
    from savepoint.capture.agents.claude_lines import Head
    from savepoint.core.strict_json import Json

    _V = TypeVar("_V")


class Scan:
    """What is known of a transcript after its first `size` bytes (members: adapter.Fold)."""

    def __init__(self) -> None:
        self.size = self.messages = self.records = self.boundaries = 0
        self.glued = self.unparsable = self.unended = self.torn = 0
        self.sessions: dict[str, int] = {}
        self.sessions_more = 0
        self.session_id: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.model: str | None = None
        self.skills: dict[str, None] = {}
        self.files: dict[str, FileNote] = {}
        self.files_more = self.nameless = 0
        self.backups: dict[str, None] = {}  # names in file-history
        self.tasks: dict[str, tuple[str, str]] = {}  # id → subject, status
        self.usage: Span | None = None
        self.todos: Span | None = None
        self.calls: dict[str, str] = {}  # id of a call → path it reads
        self.held: list[bytes] = []  # of the line that has not ended; of a long one, its two ends
        self.heads: list[Head] = []  # seen of late; not in to_json: they only save time

    @classmethod
    def empty(cls) -> Scan:
        """Nothing fed yet."""
        return cls()

    def feed(self, data: bytes) -> None:
        """Take the next bytes; they may start and stop within a line."""
        from savepoint.capture.agents.claude_walk import Walk

        start = 0
        if self.unended:
            start = data.find(b"\n") + 1
            self._hold(data[:start] or data)
            if start == 0:
                return
            self.take_held(ended=True)
        end = max(start, data.rfind(b"\n") + 1)
        if end > start:
            Walk(self, data, self.size - start).lines(start, end)
        self.size += end - start
        self._hold(data[end:])

    def end(self) -> Scan:
        """A copy that takes what follows the last line end as a line: for facts, not to be fed."""
        ended = self.copy()
        ended.take_held(ended=False)
        ended.unended, ended.unparsable = self.unended, self.unparsable
        return ended

    def copy(self) -> Scan:
        """An independent copy."""
        other = Scan()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, (dict, list)) else value)
        return other

    def to_json(self) -> dict[str, Json]:
        """All of it, for a cache."""
        return claude_state.dump(self)

    @classmethod
    def from_json(cls, value: Json) -> Scan:
        """The scan that `to_json` wrote. Raises MalformedError for anything else."""
        return claude_state.load(cls(), value)

    def learn(self, record: Record, span: Span) -> None:
        """What a record says by itself, other than what counts, usage and files are made of."""
        from savepoint.capture.agents import claude_facts

        if claude_facts.todo_list(record) is not None:
            self.todos = span
        told, complete = claude_facts.tasks(record)
        self._learn_tasks(told, complete=complete)
        _add(self.skills, dict.fromkeys(claude_facts.skills(record)), limits.SCAN_SKILLS)
        _add(self.calls, claude_facts.read_calls(record), limits.SCAN_CALLS)

    def learn_call(self, identity: bytes, path: bytes) -> None:
        """The id of a call and the path that it reads, both as JSON strings without quotes."""
        from savepoint.capture.agents import claude_facts, claude_lines

        call = claude_facts.name(claude_lines.string(identity))
        reads = claude_facts.path_of(claude_lines.string(path))
        if call and reads:
            _add(self.calls, {call: reads}, limits.SCAN_CALLS)

    def learn_backups(self, names: list[str]) -> None:
        """Names in file-history that a record refers to."""
        _add(self.backups, dict.fromkeys(names), limits.COMPANION_FILES)

    def count(self, kind: str | None, session: str | None, lines: int) -> None:
        """So many more records of that type and session."""
        if kind in _MESSAGES:
            self.messages += lines
        if not session or len(session) > limits.SCAN_STRING_CHARS:
            return
        if session in self.sessions or len(self.sessions) < limits.SCAN_SESSIONS:
            self.sessions[session] = self.sessions.get(session, 0) + lines
        else:
            self.sessions_more += lines
        if self.session_id is None:
            self.session_id = session

    def see_file(self, path: str, note: FileNote) -> None:
        """A newer record shows that file."""
        self.files.pop(path, None)
        self.files[path] = note
        if len(self.files) > limits.LOADED_FILES:
            del self.files[next(iter(self.files))]
            self.files_more += 1

    def take_long(self, ends: bytes, length: int) -> None:
        """Count a line too long to be kept by its two ends; it tells no facts."""
        from savepoint.capture.agents import claude_lines

        self.records += 1
        self.torn = 0 if ends.endswith(b"}") else length
        kind, session = (None, None) if self.torn else claude_lines.tell(ends)
        self.unparsable += kind is None
        self.count(kind, session, 1)

    def _learn_tasks(self, told: list[Task], *, complete: bool) -> None:
        if complete:
            self.tasks = {}
        for task in told:
            subject, status = self.tasks.get(task.id, (None, "pending"))
            subject = subject if task.subject is None else task.subject[: limits.PRIORITY_CHARS]
            if subject is not None:
                _add(self.tasks, {task.id: (subject, task.status or status)}, limits.SCAN_TASKS)

    def _hold(self, data: bytes) -> None:
        """Keep bytes of a line that has not ended; of a long one only what tells it apart."""
        if not data:
            return
        self.held.append(data)
        self.size += len(data)
        self.unended += len(data)
        if sum(map(len, self.held)) > limits.SCAN_LINE_BYTES:
            self.held = claude_state.shorten(self.held)

    def take_held(self, *, ended: bool) -> None:
        """Take the held line. One that has not ended is not believed without parsing it."""
        from savepoint.capture.agents import claude_lines
        from savepoint.capture.agents.claude_walk import Walk

        line, length = b"".join(self.held), self.unended
        self.held, self.unended = [], 0
        if length > len(line):
            ends = line.rstrip(b"\r\n")
            self.take_long(claude_lines.ends(ends), length - len(line) + len(ends))
        elif ended:
            Walk(self, line, self.size - length).lines(0, length)
        elif line:
            Walk(self, line, self.size - length).last_line()


def _add(into: dict[str, _V], news: Mapping[str, _V], limit: int) -> None:
    """Add, forgetting the oldest above the limit."""
    for key, value in news.items():
        into[key] = value
        if len(into) > limit:
            del into[next(iter(into))]


_MESSAGES = ("user", "assistant")
