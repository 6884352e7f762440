"""How much context a session of Claude Code has, by its settings, or by a table that is data."""

from __future__ import annotations

import os

from savepoint.capture.agents import claude_settings

_TABLE = os.path.join(os.path.dirname(__file__), "claude_windows.json")
_LARGER = 1_000_000  # tokens: what a session has that used more than the table says


def of_model(model: str, used: int | None) -> int | None:
    """The window of a model, in tokens, as the table has it; None where no line of it fits.

    A model may have a larger window than usual (`[1m]`), which only its use tells.
    """
    table = claude_settings.read(_TABLE).get("windows")
    known = table if isinstance(table, dict) else {}
    fitting = [start for start in known if model.startswith(start)]
    found = known[max(fitting, key=len)] if fitting else None
    if not isinstance(found, int):
        return None
    return max(found, _LARGER) if used is not None and used > found else found


def settings_window(config_dir: str, project: str) -> int | None:
    """The compaction window that the client's settings name, in tokens."""
    return claude_settings.number(config_dir, project, "autoCompactWindow")
