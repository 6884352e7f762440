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
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump
from savepoint.store.files import read_bounded
from savepoint.store.layout import DYNASTY, SET_ASIDE, THREADS
from savepoint.store.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json

LOCK = ".lock"
ENDING = ".bundle"  # of the path that a snapshot gives it, behind the folder's name
_FIRST = ("log.jsonl", "lineage.md", "archive.jsonl")
_DEPTH = 3  # names of a path: handoff/<thread>/<N>/receipt.json
_NO_NAME = {"", ".", "..", LOCK}
_TEMPORARY = ".tmp-"


class Bundle(NamedTuple):
    """A folder as one file."""

    data: bytes | None  # None: there is nothing
    left_out: str = ""  # what it lacks, and why; empty: nothing


def read(store: str, deadline: float, name: str = DYNASTY) -> Bundle:
    """A folder of the store at that path, as it is between two changes of it. deadline: of
    time.monotonic(). Raises BusyError, MalformedError, DiskError.
    """
    folder = os.path.join(store, name)
    if not os.path.isdir(folder):
        return Bundle(None)
    # threads are only appended to, and new files: whole at any moment, and held for long
    if name == THREADS or not is_writable(folder):
        return _bundle(folder)
    patience = time.monotonic() + limits.DYNASTY_WAIT_SECONDS
    with Lock(os.path.join(folder, LOCK), min(deadline, patience)):
        return _bundle(folder)


def is_writable(folder: str) -> bool:
    """False on a read-only disk: nobody can change what is there, nor take a lock."""
    return os.access(folder, os.W_OK)


def is_kept(path: str) -> bool:
    """Can a bundle hold a file of that path below its folder? Whatever people put beside ours can
    be there, the backups of an editor first of all, and must not keep the rest from coming back.
    """
    parts = path.split("/")
    names = all(one not in _NO_NAME and not one.startswith(_TEMPORARY) for one in parts)
    return names and len(parts) <= _DEPTH and is_plain(path)


def _bundle(folder: str) -> Bundle:
    lacking: list[str] = []
    paths = sorted(_paths(folder, "", lacking), key=lambda path: (_rank(path), path))
    files = {path: _content(os.path.join(folder, path)) for path in paths}
    more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    left_out = f"without {min(lacking)}{more}" if lacking else ""
    return Bundle(pack(files) if files else None, left_out)


def pack(files: dict[str, bytes]) -> bytes:
    """The bundle of these files, in their order."""
    listed: list[Json] = [{"path": path, "bytes": len(data)} for path, data in files.items()]
    return b"".join(files.values()) + b"\n" + dump({"v": 1, "files": listed}) + b"\n"


def _paths(folder: str, below: str, lacking: list[str]) -> Iterator[str]:
    """Files of the folder and of the folders in it, by their path; what cannot be told goes into
    `lacking`.
    """
    for one in os.scandir(os.path.join(folder, below)):
        path = below + one.name
        if one.name == LOCK or one.name.startswith(_TEMPORARY) or SET_ASIDE in one.name:
            continue  # the lock holds nothing, a temporary is of a process that died, damage no use
        if one.is_dir(follow_symlinks=False) and path.count("/") < _DEPTH - 1:
            yield from _paths(folder, f"{path}/", lacking)
        elif one.is_file(follow_symlinks=False) and is_kept(path):
            yield path
        else:
            shown = path.encode("utf-8", "backslashreplace").decode()
            lacking.append(f"{shown}: {_why(one)}")


def _why(one: os.DirEntry[str]) -> str:
    if one.is_symlink():
        return "it is a link"
    if one.is_dir():
        return "it lies too deep"
    return "its name is not UTF-8" if one.is_file() else "it is no regular file"


def _content(path: str) -> bytes:
    data = read_bounded(path, limits.DYNASTY_FILE_BYTES)
    if data is None:
        raise MalformedError(f"{path} went away while it was read")
    return data


def _rank(path: str) -> int:
    return _FIRST.index(path) if path in _FIRST else len(_FIRST)
