"""Signing keys that were lost: derived again where the root seed is still there."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core.errors import KeyFileError
from savepoint.store import birth, savepoints
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store


def restore_lost(store: Store, deadline: float) -> list[InstancePaths]:
    """Derive the missing signing keys of all instances again; returns those that have theirs back.

    A file that is there is left as it is, whatever is wrong with it, and so is one whose root is
    gone. deadline: time.monotonic() until which the store lock is waited for. Raises BusyError,
    DiskError.
    """
    lost = [one for one in savepoints.instances(store) if not os.path.lexists(one.authority)]
    if not lost:
        return []
    with Lock(store.lock, deadline):
        for paths in lost:
            with suppress(KeyFileError):  # doctor names it
                birth.restore_authority(paths)
    return [one for one in lost if os.path.lexists(one.authority)]
