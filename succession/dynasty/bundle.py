"""The dynasty out of a savepoint: what capture/memory.py put together, taken apart and put back."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from savepoint.capture.memory import LOCK
from savepoint.core import limits
from savepoint.core.errors import MalformedError, OutputExistsError
from savepoint.core.strict_json import parse
from savepoint.store import durable
from savepoint.store.files import read_bounded
from savepoint.store.layout import DYNASTY
from savepoint.store.locks import Lock
from succession.dynasty import journal
from succession.dynasty.constants import FILE_BYTES
from succession.dynasty.journal import Change

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

_APPENDED = ("archive.jsonl",)  # what only grows: a longer one that begins so is kept


def unpack(data: bytes) -> dict[str, bytes]:
    """Path below the dynasty's folder → bytes, as between two changes. Raises MalformedError."""
    if not data.endswith(b"\n"):
        raise MalformedError("no bundle of a dynasty")
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    files: dict[str, bytes] = {}
    at = 0
    for path, size in map(_listed, _table(data[start:-1])):
        files[path] = data[at : at + size]
        at += size
    if start == 0 or at != start - 1:
        raise MalformedError("the bundle's list does not fit its bytes")
    return journal.replayed(files)


def put_back(store: Store, data: bytes, *, force: bool) -> list[str]:
    """The dynasty of a bundle in the place of what is there; what the bundle does not know stays.
    Returns the paths that changed.

    Raises OutputExistsError (a file that differs, without `force`), MalformedError, BusyError,
    DiskError; then nothing is changed.
    """
    wanted = unpack(data)
    folder = os.path.join(store.path, DYNASTY)
    durable.make_directories(folder)
    with Lock(os.path.join(folder, LOCK), time.monotonic() + limits.LOCK_WAIT_SECONDS):
        journal.recover(folder)
        before = {path: read_bounded(os.path.join(folder, path), FILE_BYTES) for path in wanted}
        changed = {path: one for path, one in wanted.items() if not _has(path, before[path], one)}
        taken = [path for path in changed if before[path] is not None]
        if taken and not force:
            raise OutputExistsError(
                f"the dynasty here differs: {', '.join(taken[: limits.LISTED])}",
                hint="--force puts the other one in its place; save first: `savepoint create`",
            )
        journal.commit(folder, before, Change(changed, {}))
    return sorted(changed)


def _has(path: str, held: bytes | None, wanted: bytes) -> bool:
    return held == wanted or (path in _APPENDED and (held or b"").startswith(wanted))


def _table(line: bytes) -> list[Json]:
    match parse(line):
        case {"v": 1, "files": [*files]}:
            return files
        case _:
            raise MalformedError("no bundle of a dynasty that this version knows")


def _listed(value: Json) -> tuple[str, int]:
    match value:
        case {"path": str(path), "bytes": int(size)} if size >= 0 and _PATH.fullmatch(path):
            return path, size
        case _:
            raise MalformedError("a bundle names what is no file of a dynasty")


_PATH = re.compile(r"(?:[a-z0-9~_-]{1,64}/)?[a-z.][A-Za-z0-9._-]{0,99}")
