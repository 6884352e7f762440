"""Several files changed as one: all of it, or nothing, whenever the process dies.

    .next-day.md … staged, durable      what is replaced, beside its place
    .journal durable                    from here on it is done, whoever finishes it; it holds what
                                        is appended
    lineage.md, archive.jsonl           appended; a full disk is told here, and all is taken back
    .next-day.md → day.md …             renamed
    .journal removed

`recover` finishes what has a journal and clears away what has none; every reader calls it first.
People edit these files and take no lock: what they wrote while we worked is refused before the
journal is there, and set aside beside the new file after it; it is never overwritten.
"""

from __future__ import annotations

import binascii
import os
from contextlib import suppress

from savepoint.capture.memory import LOCK
from savepoint.core import spelling
from savepoint.core.digest import sha256
from savepoint.core.errors import BusyError, DiskError, MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import open_regular, read_at, read_bounded
from succession.dynasty.constants import FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from savepoint.core.strict_json import Json

JOURNAL = ".journal"
NEXT = ".next-"
_DEPTH = 2  # names of a path: <branch>/day.md
_FOREIGN = {"", ".", "..", LOCK}
_HINT = "nothing was changed; run the same again"


class Change(NamedTuple):
    """What is to be written: file → its new bytes, and file → bytes to append."""

    replace: dict[str, bytes]
    append: dict[str, bytes]


class _Line(NamedTuple):
    """A file in the journal."""

    path: str  # below the folder
    was: str  # SHA-256 before; empty: there was none. Of an append nothing
    size: int  # of what is appended to; -1: it is replaced
    data: str  # what is appended, in base64


def commit(folder: str, before: Mapping[str, bytes | None], change: Change) -> list[str]:
    """Write it all, under the lock. before: what each file held when it was read (None: was not).

    Returns what people's edits were set aside as. Raises BusyError (somebody edited a file
    meanwhile) and DiskError; then nothing is changed, or `recover` finishes it.
    """
    for path in change.replace:
        if _content(folder, path) != before.get(path):
            raise BusyError(f"{path} was edited meanwhile", hint=_HINT)
    lines = [_Line(path, _digest(before.get(path)), -1, "") for path in change.replace]
    for path, data in change.append.items():
        size = _size(os.path.join(folder, path))
        lines.append(_Line(path, "", size, binascii.b2a_base64(data, newline=False).decode()))
    try:
        for path, data in change.replace.items():
            _stage(folder, path, data)
        _sync(folder, change.replace)
        durable.replace(os.path.join(folder, JOURNAL), _dump(lines))
    except BaseException:
        if not os.path.exists(os.path.join(folder, JOURNAL)):
            _clear(folder)
        raise
    appended = [line for line in lines if line.size >= 0]
    try:
        for line in appended:
            _append(folder, line)
    except DiskError:
        _take_back(folder, appended)
        raise
    return _finish(folder, lines)


def recover(folder: str) -> list[str]:
    """Finish or clear away what a process that died has left, under the lock. Returns what people's
    edits were set aside as. Raises DiskError, MalformedError.
    """
    lines = _load(folder)
    if lines is None:
        _clear(folder)
        return []
    for line in lines:
        if line.size >= 0:
            _append(folder, line)
    return _finish(folder, lines)


def is_pending(folder: str) -> bool:
    """Has a process died between its journal and its end?"""
    return os.path.exists(os.path.join(folder, JOURNAL))


def replayed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a dynasty that was saved in that moment, as `recover` would have left them."""
    found = dict(files)
    for line in _parse(files[JOURNAL]) if JOURNAL in files else []:
        staged = found.get(_staged("", line.path))
        if line.size >= 0:
            found[line.path] = found.get(line.path, b"")[: line.size] + _appended(line)
        elif staged is not None:
            found[line.path] = staged
    return {
        path: data
        for path, data in found.items()
        if path != JOURNAL and not os.path.basename(path).startswith(NEXT)
    }


def _finish(folder: str, lines: list[_Line]) -> list[str]:
    aside = []
    for line in lines:
        staged, path = _staged(folder, line.path), os.path.join(folder, line.path)
        if line.size >= 0 or not os.path.exists(staged):
            continue
        if _digest(_content(folder, line.path)) != line.was:
            aside.append(f"{line.path}.edited-{os.urandom(8).hex()}")
            durable.set_aside(path, os.path.join(folder, aside[-1]))
        durable.set_aside(staged, path, durable_name=False)
    _sync(folder, [line.path for line in lines])
    durable.remove(os.path.join(folder, JOURNAL))
    durable.sync_directory(folder)  # a journal that came back would undo what is written next
    return aside


def _append(folder: str, line: _Line) -> None:
    """Whatever of it is there already."""
    path, data = os.path.join(folder, line.path), _appended(line)
    size = _size(path)
    tail = _tail(path, line.size) if size > line.size else b""
    if tail == data:
        return
    if tail and data.startswith(tail):
        durable.truncate(path, line.size)
        size = line.size
    durable.append(path, data, size=size)


def _take_back(folder: str, appended: list[_Line]) -> None:
    """After a full disk: nothing was renamed yet, so that it can be as if nothing had been."""
    for line in appended:
        path = os.path.join(folder, line.path)
        if line.size == 0:
            durable.remove(path)
        elif _size(path) > line.size:
            durable.truncate(path, line.size)
    durable.remove(os.path.join(folder, JOURNAL))
    durable.sync_directory(folder)
    _clear(folder)


def _clear(folder: str) -> None:
    for parent, folders, names in os.walk(folder):
        if parent != folder:
            folders.clear()
        for name in names:
            if name.startswith(NEXT):
                with suppress(DiskError):  # the next one clears it
                    durable.remove(os.path.join(parent, name))


def _dump(lines: list[_Line]) -> bytes:
    listed: list[Json] = [dict(line._asdict()) for line in lines]
    return dump({"v": 1, "files": listed}) + b"\n"


def _load(folder: str) -> list[_Line] | None:
    data = _content(folder, JOURNAL)
    return None if data is None else _parse(data)


def _parse(data: bytes) -> list[_Line]:
    match parse(data):
        case {"v": 1, "files": [*files]}:
            return [_line(one) for one in files]
        case _:
            raise MalformedError(f"{JOURNAL} is none of ours")


def _line(value: Json) -> _Line:
    match value:
        case {"path": str(path), "was": str(was), "size": int(size), "data": str(data)}:
            parts = path.split("/")
            is_ours = len(parts) <= _DEPTH and not _FOREIGN.intersection(parts)
            if is_ours and (not was or spelling.digest(was)):
                return _Line(path, was, size, data)
    raise MalformedError(f"{JOURNAL} names no file of a dynasty")


def _stage(folder: str, path: str, data: bytes) -> None:
    """Durable, its name once the folder is synced. What a dead process left has been cleared."""
    staged = _staged(folder, path)
    parent, name = os.path.split(staged)
    durable.make_directories(parent)
    with durable.NewFile(parent) as new:
        new.write(data)
        new.create(name)


def _sync(folder: str, paths: Iterable[str]) -> None:
    """The names of these files, and what became of others in their folders."""
    for parent in {os.path.dirname(os.path.join(folder, path)) for path in paths}:
        durable.sync_directory(parent)


def _appended(line: _Line) -> bytes:
    try:
        return binascii.a2b_base64(line.data, strict_mode=True)
    except ValueError as failure:
        raise MalformedError(f"{JOURNAL} is damaged") from failure


def _staged(folder: str, path: str) -> str:
    parent, _, name = path.rpartition("/")
    return os.path.join(folder, parent, NEXT + name)


def _content(folder: str, path: str) -> bytes | None:
    return _content_of(os.path.join(folder, path))


def _content_of(path: str) -> bytes | None:
    return read_bounded(path, FILE_BYTES)


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except OSError as failure:
        raise DiskError.of(failure, path) from failure


def _tail(path: str, start: int) -> bytes:
    fd = open_regular(path)
    try:
        return read_at(fd, os.fstat(fd).st_size - start, start)
    finally:
        os.close(fd)
