"""Which rules, skills and agent definitions a session started with. Not a cache: what the files say
later cannot tell what the session was given.
"""

from __future__ import annotations

import os

from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.strict_json import Json, dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Store

_SHAPE = schema.array(
    schema.members({"path": schema.text, "kind": schema.text, "sha256": schema.text})
)


def save(store: Store, key: str, entries: list[Json]) -> None:
    """Keep what the session with this key starts with. Raises DiskError.

    A session that is resumed mostly starts with what it started with: its bytes are durable since
    they have their name, and that is made sure of again, at the cost of one sync instead of two.
    """
    path, data = store.session_guidance(key), dump(entries) + b"\n"
    if _holds(path, data):
        durable.sync_directory(os.path.dirname(path))
    else:
        durable.replace(path, data)


def load(store: Store, key: str) -> list[Json] | None:
    """`[{"path", "kind", "sha256"}, …]`; None where nobody saw the start. Raises DiskError."""
    try:
        data = read_bounded(store.session_guidance(key), limits.SMALL_DOCUMENT_BYTES)
        if data is None:
            return None
        entries = parse(data)
        _SHAPE(entries, "guidance")
    except MalformedError:
        return None
    return entries if isinstance(entries, list) else None


def _holds(path: str, data: bytes) -> bool:
    try:
        return read_bounded(path, len(data)) == data
    except SavepointError:  # longer, no file, or unreadable: it is replaced, which says why not
        return False
