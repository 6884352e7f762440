"""A memory out of a savepoint, the dynasty's or the threads', taken apart into its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.strict_json import parse
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths


def held_by(paths: InstancePaths, one: Record, part: str) -> bytes | None:
    """A savepoint's memory; part: `succession` or `handoff`. None: it has none. Raises
    MalformedError, UnsupportedFormatError, DiskError.
    """
    document = savepoints.open_snapshot(paths, one).document
    for file in savepoints.files(paths.store, document):
        if file.part == part:
            return b"".join(savepoints.content(paths.store, file))
    return None


def unpack(data: bytes) -> dict[str, bytes]:
    """Path → bytes, as capture/memory.py put them together. What paths a memory may have is for who
    writes them. Raises MalformedError, UnsupportedFormatError.
    """
    if not data.endswith(b"\n"):
        raise MalformedError("no memory out of a savepoint")
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    files: dict[str, bytes] = {}
    at = 0
    for path, size in map(_listed, _table(data[start:-1])):
        if path in files:
            raise MalformedError("the list at the end of the memory names a file twice")
        files[path] = data[at : at + size]
        at += size
    if start == 0 or at != start - 1:
        raise MalformedError("the list at the end of the memory does not fit its bytes")
    return files


def _table(line: bytes) -> list[Json]:
    match parse(line):
        case {"v": 1, "files": [*files]}:
            return files
        case {"v": int(version)} if version > 1:
            raise UnsupportedFormatError(f"a memory of version {version}")
        case _:
            raise MalformedError("no memory out of a savepoint")


def _listed(value: Json) -> tuple[str, int]:
    match value:
        case {"path": str(path), "bytes": int(size)} if size >= 0:
            return path, size
        case _:
            raise MalformedError("the list at the end of the memory names what is no file")
