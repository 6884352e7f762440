"""What an agent's adapter is: one module an agent, with all the members of Adapter.

Only type checkers read this module: it costs a fire nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.capture.agents import Companions, FileNote, ReadNote, Span, Tokens, Window
    from savepoint.core.strict_json import Json


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
    nameless: int  # records that show a file under a name that no file can have
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

    def newest_first(self, config_dir: str, project_dir: str) -> Iterator[str]:
        """The transcripts of the project, the one written last first."""

    def own_folders(self, config_dir: str, transcript: str) -> tuple[str, ...]:
        """Real paths of the agent's folders, other than projects, whose files may be stored."""

    def environment_window(self, environment: Mapping[str, str]) -> int | None:
        """Window.environment from the variables of a hook."""

    def settings_window(self, config_dir: str, project: str) -> int | None:
        """Window.settings from the agent's settings files."""
