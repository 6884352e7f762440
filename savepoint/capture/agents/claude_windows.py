"""How much context a session of Claude Code has, by its settings, or by a table that is data."""

from __future__ import annotations

import json
import os

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.store.files import read_bounded

_TABLE = os.path.join(os.path.dirname(__file__), "claude_windows.json")
_BOM = b"\xef\xbb\xbf"
_LARGER = 1_000_000  # tokens: what a session has that used more than the table says


def of_model(model: str, used: int | None) -> int | None:
    """The window of a model, in tokens, as the table has it; None where no line of it fits.

    A model may have a larger window than usual (`[1m]`), which only its use tells.
    """
    table = _object(_TABLE).get("windows")
    known = table if isinstance(table, dict) else {}
    fitting = [start for start in known if model.startswith(start)]
    found = known[max(fitting, key=len)] if fitting else None
    if not isinstance(found, int):
        return None
    return max(found, _LARGER) if used is not None and used > found else found


def settings_window(config_dir: str, project: str) -> int | None:
    """The compaction window that the client's settings name, in tokens. Of several files the one
    counts that the client prefers: the project's local one, the project's, the user's.
    """
    own = os.path.join(project, ".claude")
    for path in (
        os.path.join(own, "settings.local.json"),
        os.path.join(own, "settings.json"),
        os.path.join(config_dir, "settings.json"),
    ):
        found = _object(path).get("autoCompactWindow")
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None


def _object(path: str) -> dict[str, object]:
    """The object that a file holds; an empty one where it holds none."""
    try:
        data = read_bounded(os.path.realpath(path), limits.SMALL_DOCUMENT_BYTES)
        value = json.loads((data or b"{}").removeprefix(_BOM))  # its codec costs an import
    except (SavepointError, OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
