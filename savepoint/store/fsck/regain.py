"""A new config where a store's own is damaged or lost: it is unsigned, and its records stand."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.store import durable, savepoints
from savepoint.store.config import Config
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store

_DIGITS = 8  # of the damaged file's SHA-256, in its new name


class Regained(NamedTuple):
    """What the records tell, and what became of the damaged file."""

    config: Config  # with no project, no remote and nothing excluded; not yet written
    aside: str | None  # where the damaged file is now; None if there was none


def regain(store: Store) -> Regained:
    """Set the damaged config aside. The current instance is the one with the newest record.

    Raises MalformedError (no instance has a record that can be read), DiskError.
    """
    newest = max(filter(None, map(_newest, savepoints.instances(store))), default=None)
    if newest is None:
        raise MalformedError(f"no record of store {store.id} can be read")
    return Regained(Config(newest[1], (), ()), _set_aside(store))


def _newest(paths: InstancePaths) -> tuple[int, str] | None:
    """Time of the newest record, and slug; None where no record can be read."""
    known = savepoints.records(paths).all
    return (max(one.timestamp for one in known), paths.slug) if known else None


def _set_aside(store: Store) -> str | None:
    if not os.path.lexists(store.config):
        return None
    try:
        data = read_bounded(store.config, limits.SMALL_DOCUMENT_BYTES) or b""
    except MalformedError:  # a link, a folder, or too large
        data = b""
    aside = f"{store.config}.damaged-{hashlib.sha256(data).hexdigest()[:_DIGITS]}"
    durable.set_aside(store.config, aside)
    return aside
