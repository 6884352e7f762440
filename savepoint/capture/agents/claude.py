"""Claude Code's adapter (members: adapter.py). Clients 2.0.64 to 2.1.332.

What reads records is imported when there are some: most fires find nothing new.
"""

from __future__ import annotations

from savepoint.capture.agents import ReadNote, Tokens
from savepoint.capture.agents.claude_places import (
    NAME,
    companions,
    newest_first,
    own_folders,
    transcript_path,
)
from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits
from savepoint.core.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.capture.agents import Window
    from savepoint.capture.agents.adapter import Fold
    from savepoint.capture.agents.claude_facts import Record

__all__ = [
    "NAME",
    "Scan",
    "companions",
    "environment_percent",
    "environment_window",
    "newest_first",
    "own_folders",
    "read_note",
    "session_id",
    "settings_window",
    "todos",
    "tokens",
    "transcript_path",
]


def tokens(scan: Fold, line: bytes | None, window: Window) -> Tokens:
    """Use of the context against the point where the client compacts.

    Used = input + cache read + cache creation of the last answer since the last compaction; its
    output is not counted, nor is it by the client's own percentage. The budget is
    min(model's window, compaction window) - 33,000 (measured: claude-e2e.md 4); None where the
    caller knows no window and the model's name tells none.
    """
    from savepoint.capture.agents import claude_facts

    counts = [claude_facts.used_tokens(record) for record in _records(line)]
    used = next((count for count in reversed(counts) if count is not None), None)
    size, origin = _window(scan.model, window, used)
    budget = size - _COMPACTION_RESERVE if size and size > _COMPACTION_RESERVE else None
    if budget is not None and size is not None and window.percent is not None:
        budget = min(budget, (size - _OUTPUT_RESERVE) * window.percent // 100)
    source = f"{'transcript usage' if used is not None else 'no usage known'}; {origin}"
    if used is None or budget is None:
        return Tokens(budget, used, None, None, source)
    return Tokens(budget, used, max(0, budget - used), used * 100 // budget, source)


def environment_window(environment: Mapping[str, str]) -> int | None:
    """Window.environment from the variables of a hook."""
    return _number(environment, "CLAUDE_CODE_AUTO_COMPACT_WINDOW")


def environment_percent(environment: Mapping[str, str]) -> int | None:
    """Window.percent from the variables of a hook. It can only lower the point of compaction, and
    often did nothing (claude-code#82761): then an alarm comes early, which does no harm.
    """
    percent = _number(environment, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    return percent if percent is not None and 1 <= percent <= 100 else None


def settings_window(config_dir: str, project: str) -> int | None:
    """Window.settings from the client's settings files."""
    from savepoint.capture.agents import claude_windows

    return claude_windows.settings_window(config_dir, project)


def todos(scan: Fold, line: bytes | None) -> list[str]:
    """What is still open: of the last list of todos, and of the tasks that newer clients keep."""
    from savepoint.capture.agents import claude_facts

    lists = [claude_facts.todo_list(record) for record in _records(line)]
    last = next((listed for listed in reversed(lists) if listed is not None), [])
    items = [claude_facts.open_todo(item) for item in last]
    items += [
        subject for subject, status in scan.tasks.values() if status not in claude_facts.CLOSED
    ]
    cut = (item[: limits.PRIORITY_CHARS] for item in items if item)
    return list(dict.fromkeys(cut))[: limits.PRIORITIES]


def read_note(line: bytes, path: str) -> ReadNote | None:
    """What the record showed of `path`; None where it holds no content of it: an edit, an image, a
    read again of what had not changed (since client 2.1.86).
    """
    import hashlib

    from savepoint.capture.agents import claude_facts

    for record in reversed(_records(line)):
        shown = claude_facts.shown_text(record)
        if shown is not None and shown.path == path:
            text = shown.text.encode("utf-8", "surrogatepass")
            digest = hashlib.sha256(text).hexdigest()
            return ReadNote(shown.start_line, shown.line_count, digest, shown.whole)
    return None


def session_id(scan: Fold, path_stem: str) -> str | None:
    """The stem if it is a UUID, else the first record's session (docs/format.md)."""
    return path_stem if _UUID.fullmatch(path_stem) else scan.session_id


def _records(line: bytes | None) -> list[Record]:
    from savepoint.capture.agents import claude_lines

    return [] if line is None else claude_lines.objects(line)[0]


def _number(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name, "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None


def _window(model: str | None, window: Window, used: int | None) -> tuple[int | None, str]:
    """The tokens against which the client compacts, and how that is known."""
    known = []
    if window.environment:
        known.append((max(window.environment, _LEAST_WINDOW), "window from environment"))
    elif window.settings:
        known.append((max(window.settings, _LEAST_WINDOW), "window from settings"))
    if window.status_line:
        known.append((window.status_line, "window from status line"))
    elif model is not None and model.endswith("[1m]"):
        known.append((1_000_000, "window from model id"))
    if model is not None and not known:
        from savepoint.capture.agents import claude_windows

        size = claude_windows.of_model(model, used)
        known += [(size, "window from the table of models")] if size else []
    return min(known, default=(None, "window unknown"), key=lambda pair: pair[0])


_COMPACTION_RESERVE = 33_000  # tokens: it compacts that far below the window (claude-e2e.md 4)
_OUTPUT_RESERVE = 20_000  # tokens of the window that its percentage does not count (ibid.)
_LEAST_WINDOW = 100_000  # tokens: a lower compaction window is raised to this
_UUID = late("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
