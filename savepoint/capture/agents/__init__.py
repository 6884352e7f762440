"""What an agent's adapter gives to a save: one module an agent, all with the members of Adapter.

Raw bytes are the truth and are stored elsewhere. An adapter only understands them: tolerantly, at
a cost of the new bytes alone, and it never raises on what an agent wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.strict_json import Json


class Span(NamedTuple):
    """A line of the transcript, without its line end."""

    offset: int  # bytes from the start of the file
    length: int  # bytes


class FileNote(NamedTuple):
    """The newest record that shows a file to the agent."""

    kind: str  # read, attached, written
    offset: int  # of its line, as in Span
    length: int


class ReadNote(NamedTuple):
    """Which content of a file a record showed to the agent."""

    start_line: int  # from 1
    line_count: int
    sha256: str  # of the text as UTF-8, hex
    whole: bool  # all lines of the file as it was then


class Window(NamedTuple):
    """What the caller knows of the context window, in tokens."""

    environment: int | None = None  # the agent's own variable for its compaction window
    settings: int | None = None  # the same from its settings
    status_line: int | None = None  # the model's window, as the agent told a status line


class Tokens(NamedTuple):
    """Use of the context; what is not known is None."""

    budget: int | None  # tokens at which the agent compacts
    used: int | None  # tokens
    remaining: int | None  # tokens; 0 when past the budget
    percent: int | None  # of the budget, rounded down; may be above 100
    source: str  # where the numbers come from, for people


class Companions(NamedTuple):
    """Files that belong to a session beside its transcript."""

    files: list[tuple[str, str]]  # label (relative, with /, stable) and path, sorted by label
    omitted: list[tuple[str, str]]  # label and reason


class Fold(Protocol):
    """What is known of a transcript after its first `size` bytes; bounded, whatever is fed."""

    size: int  # bytes fed
    messages: int  # records that are the user's or the agent's
    records: int  # lines that are not blank
    sessions: dict[str, int]  # records by session id, the first SCAN_SESSIONS ids
    sessions_more: int  # records of further ids
    boundaries: int  # compactions
    glued: int  # lines with more than one object
    unparsable: int  # lines that are not objects throughout
    unended: int  # bytes after the last line end
    torn: int  # bytes of the last line if it is not an object
    session_id: str | None  # of the first record that names one
    version: str | None  # of the agent: last seen
    cwd: str | None
    model: str | None
    skills: dict[str, None]  # names, in the order of first use
    files: dict[str, FileNote]  # by path as the agent wrote it, newest last
    files_more: int  # paths dropped, the oldest first
    backups: dict[str, None]  # names of the copies that the agent keeps of files it changed
    tasks: dict[str, tuple[str, str]]  # subject and status, by id
    usage: Span | None  # the record that says how many tokens are used since the last compaction
    todos: Span | None  # the last record with a list of todos

    @classmethod
    def empty(cls) -> Fold:
        """Nothing fed yet."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; they may start and stop within a line."""

    def end(self) -> Fold:
        """A copy that takes what follows the last line end as a line: for facts, not to be fed."""

    def copy(self) -> Fold:
        """An independent copy."""

    def to_json(self) -> dict[str, Json]:
        """All of it, for a cache."""

    @classmethod
    def from_json(cls, value: Json) -> Fold:
        """The fold that `to_json` wrote. Raises MalformedError for anything else."""


class Adapter(Protocol):
    """The members of an adapter's module. Lines are bytes of a Span; None where there was none."""

    @property
    def NAME(self) -> str:  # noqa: N802 -- a module's constant
        """The agent, as the snapshot names it."""

    @property
    def Scan(self) -> type[Fold]:  # noqa: N802 -- a module's class
        """The agent's fold."""

    def tokens(self, scan: Fold, line: bytes | None, window: Window) -> Tokens:
        """Use of the context, from the line at `scan.usage`."""

    def todos(self, scan: Fold, line: bytes | None) -> list[str]:
        """What is still open, from the line at `scan.todos`; clean strings."""

    def read_note(self, line: bytes, path: str) -> ReadNote | None:
        """What the record at a FileNote showed of `path`; None where it holds no content."""

    def session_id(self, scan: Fold, path_stem: str) -> str | None:
        """The session of a transcript given by path only."""

    def companions(
        self, transcript: str, config_dir: str, session_id: str, scan: Fold
    ) -> Companions:
        """Regular files that belong to the session; links are not followed."""

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str | None:
        """The transcript of that session id, wherever the agent keeps it; never another's."""

    def newest_session(self, config_dir: str, project_dir: str) -> str | None:
        """The transcript of the project written last."""

    def own_folders(self, config_dir: str, transcript: str) -> tuple[str, ...]:
        """Real paths of the agent's folders, other than projects, whose files may be stored."""

    def environment_window(self, environment: Mapping[str, str]) -> int | None:
        """Window.environment from the variables of a hook."""
