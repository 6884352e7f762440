"""Claude Code's settings files, as far as they matter to a save: read only, and never trusted."""

from __future__ import annotations

import json
import os

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.store.files import read_bounded

_BOM = b"\xef\xbb\xbf"


def number(config_dir: str, project: str, name: str) -> int | None:
    """A whole number above 0. Of several files the one counts that the client prefers: the
    project's local one, the project's, the user's.
    """
    own = os.path.join(project, ".claude")
    for path in (
        os.path.join(own, "settings.local.json"),
        os.path.join(own, "settings.json"),
        os.path.join(config_dir, "settings.json"),
    ):
        found = read(path).get(name)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None


def read(path: str) -> dict[str, object]:
    """The object that a file holds; an empty one where it holds none."""
    try:
        data = read_bounded(os.path.realpath(path), limits.SMALL_DOCUMENT_BYTES)
        value = json.loads((data or b"{}").removeprefix(_BOM))  # its codec costs an import
    except (SavepointError, OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
