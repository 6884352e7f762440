"""Pending notes: a fire that is being served, or was not served to its end.

Written before work that may pass a deadline and removed when the savepoint is acknowledged, so what
a kill, a deadline or a missing key leaves is found and finished by the next save. Where the bytes
were read but no key could sign, the draft waits beside the note.
"""

from __future__ import annotations

import os

from savepoint.core import limits, schema
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import names_in, read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Store

_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "session_id": schema.text,
        "transcript": schema.nullable(schema.text),
        "project": schema.text,
        "cwd": schema.text,
        "trigger": schema.text,
        "since": schema.count,
        "reason": schema.text,
    }
)


class Note(NamedTuple):
    """What is to be finished for one session."""

    session_id: str
    transcript: str | None
    project: str
    cwd: str
    trigger: str
    since: int  # Unix seconds of the fire
    reason: str  # `started`, or why it could not be finished

    def save(self, store: Store, key: str) -> None:
        """Write it; a kill does not lose it, a power cut may. Raises DiskError."""
        durable.replace_cache(store.pending_note(key), dump({"v": 1, **self._asdict()}) + b"\n")


def load(store: Store, key: str) -> Note | None:
    """The note of a session; None where there is none that can be read."""
    try:
        data = read_bounded(store.pending_note(key), limits.SMALL_DOCUMENT_BYTES)
        value = parse(data or b"")
        _SHAPE(value, "pending note")
    except SavepointError:
        return None
    assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
    value.pop("v")
    return Note(**value)  # type: ignore[arg-type]  # _SHAPE


def keys(store: Store) -> list[str]:
    """The sessions that have a note. Raises DiskError."""
    listed = names_in(store.pending)
    return [name.removesuffix(".json") for name in listed if name.endswith(".json")]


def stage(store: Store, key: str, now: int, data: bytes) -> None:
    """Keep a draft that no key could sign, durably, beside those before it. now: Unix seconds.
    Raises DiskError.
    """
    while not durable.create_exclusive(_draft(store, key, now), data):
        now += 1  # two of one second


def _draft(store: Store, key: str, now: int) -> str:
    return os.path.join(store.pending, f"{key}.{now:012}{_DRAFT}")


def drafts(store: Store, key: str) -> list[str]:
    """Paths of the drafts of a session, oldest first. Raises DiskError."""
    return [one for one in every_draft(store) if os.path.basename(one).startswith(key + ".")]


def every_draft(store: Store) -> list[str]:
    """Paths of the drafts of all sessions. Raises DiskError."""
    found = [name for name in names_in(store.pending) if name.endswith(_DRAFT)]
    return [os.path.join(store.pending, name) for name in found]


def clear(store: Store, key: str) -> None:
    """The session owes nothing any more."""
    durable.remove(store.pending_note(key))


_DRAFT = ".draft"
