"""How full a session's context is, as its status line last heard, and whether the alarm has been
given. Caches: without them the transcript tells, and an alarm is given once more.
"""

from __future__ import annotations

from savepoint.core import limits, schema
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

_FIGURES = schema.members({"v": schema.one_of(1), "window": schema.count, "used": schema.count})
_ALARM = schema.members({"v": schema.one_of(1), "compactions": schema.count})


class Figures(NamedTuple):
    """What a status line is told, in tokens."""

    window: int  # of the model
    used: int


def save_figures(store: Store, key: str, figures: Figures) -> None:
    """Raises DiskError."""
    durable.replace_cache(store.session_context(key), dump({"v": 1, **figures._asdict()}) + b"\n")


def figures(store: Store, key: str) -> Figures | None:
    """None where no status line of ours ran, or what it wrote cannot be read."""
    match _read(store.session_context(key), _FIGURES):
        case {"window": int(window), "used": int(used)}:
            return Figures(window, used)
        case _:
            return None


def save_alarm(store: Store, key: str, compactions: int) -> None:
    """The session has reached its threshold after so many compactions. Raises DiskError."""
    durable.replace_cache(store.session_alarm(key), dump({"v": 1, "compactions": compactions}))


def is_armed(store: Store, key: str, compactions: int) -> bool:
    """Has the session, since that compaction, not yet been saved for its threshold?"""
    match _read(store.session_alarm(key), _ALARM):
        case {"compactions": int(before)}:
            return before != compactions
        case _:
            return True


def _read(path: str, shape: schema.Check) -> Json:
    try:
        value = parse(read_bounded(path, limits.SMALL_DOCUMENT_BYTES) or b"")
        shape(value, "session")
    except SavepointError:
        return None
    return value
