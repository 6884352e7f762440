"""What outlives a session, the dynasty or the log of threads, as one file of a savepoint: the bytes
of its files in order, then a line listing them.

What is only ever appended to comes first, so that its segments are stored once (format.md 5).
"""

from __future__ import annotations

import os
import time

from savepoint.capture.payload import is_plain
from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.strict_json import dump
from savepoint.store.files import read_bounded
from savepoint.store.layout import DYNASTY, THREADS
from savepoint.store.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json

LOCK = ".lock"
ENDING = ".bundle"  # of the path that a snapshot gives it, behind the folder's name
_FIRST = ("log.jsonl", "lineage.md", "archive.jsonl")
_DEPTH = 3  # names of a path: handoff/<thread>/<N>/receipt.json
_NOT_KEPT = (LOCK, ".tmp-")  # the lock holds nothing; a temporary is of a process that died


def read(store: str, deadline: float, name: str = DYNASTY) -> bytes | None:
    """A folder of the store at that path, as it is between two changes of it; None where there is
    nothing. deadline: of time.monotonic(). Raises BusyError, MalformedError, DiskError.
    """
    folder = os.path.join(store, name)
    if not os.path.isdir(folder):
        return None
    if name == THREADS:  # only appended to, and new files: whole at any moment, and held for long
        return _bundle(folder)
    patience = time.monotonic() + limits.DYNASTY_WAIT_SECONDS
    with Lock(os.path.join(folder, LOCK), min(deadline, patience)):
        return _bundle(folder)


def _bundle(folder: str) -> bytes | None:
    paths = sorted(_paths(folder), key=lambda path: (_rank(path), path))
    files = {path: _content(os.path.join(folder, path)) for path in paths}
    return pack(files) if files else None


def pack(files: dict[str, bytes]) -> bytes:
    """The bundle of these files, in their order."""
    listed: list[Json] = [{"path": path, "bytes": len(data)} for path, data in files.items()]
    return b"".join(files.values()) + b"\n" + dump({"v": 1, "files": listed}) + b"\n"


def _paths(folder: str, depth: int = _DEPTH) -> Iterator[str]:
    """Files of the folder and of the folders in it, by their path below it."""
    for one in os.scandir(folder) if depth > 1 else ():
        if one.is_dir(follow_symlinks=False):
            yield from (f"{one.name}/{name}" for name in _paths(one.path, depth - 1))
    yield from _names(folder)


def _names(folder: str) -> Iterator[str]:
    """Regular files that a bundle can name, without those that hold nothing."""
    for one in os.scandir(folder):
        is_file = one.is_file(follow_symlinks=False) and is_plain(one.name)
        if is_file and not one.name.startswith(_NOT_KEPT):
            yield one.name


def _content(path: str) -> bytes:
    data = read_bounded(path, limits.DYNASTY_FILE_BYTES)
    if data is None:
        raise MalformedError(f"{path} went away while it was read")
    return data


def _rank(path: str) -> int:
    return _FIRST.index(path) if path in _FIRST else len(_FIRST)
