"""What an agent's adapter gives to a save: one module an agent, all with what adapter.py lists.

Raw bytes are the truth and are stored elsewhere. An adapter only understands them: tolerantly, at
a cost of the new bytes alone, and it never raises on what an agent wrote.
"""

from __future__ import annotations

from savepoint.core.named import NamedTuple


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
    percent: int | None = None  # of the window at which it compacts, if that is to be earlier


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
