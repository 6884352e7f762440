"""Several files changed as one: all of it, or nothing, whenever the process dies.

    .next-day.md … staged, durable      what is replaced, beside its place
    .journal durable                    from here on it is done, whoever finishes it; it holds what
                                        is appended
    lineage.md, archive.jsonl           appended; a full disk is told here, and all is taken back
    day.md → day.md.edited-…            whatever stands there by now is moved away
    .next-day.md → day.md …             linked where nothing is; removed, if it is what it was
    .next-day.md …, .journal removed

`recover` finishes what has a journal and clears away what has none; every reader calls it first.
People edit these files and take no lock: what they wrote while we worked is refused before the
journal is there, and stays beside the new file after it. Nothing is ever put over a file: between
a look at it and a rename there would be room for an editor's save.
"""

from __future__ import annotations

import binascii
import os
from contextlib import suppress

from savepoint.capture.memory import LOCK
from savepoint.core import limits, spelling
from savepoint.core.digest import sha256
from savepoint.core.errors import (
    BusyError,
    DiskError,
    DynastyError,
    MalformedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import open_regular, read_at, read_bounded
from savepoint.store.layout import DYNASTY
from succession.dynasty.constants import FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from savepoint.core.strict_json import Json

JOURNAL = ".journal"
NEXT = ".next-"
_ASIDE_DIGITS = 16  # hex digits behind the name of what was set aside, or is temporary
_DEPTH = 2  # names of a path: <branch>/day.md
_FOREIGN = {"", ".", "..", LOCK}
_TOO_LONG = dict.fromkeys(
    ("lineage.md", "archive.jsonl"), "move it out of dynasty/: it begins anew, savepoints have it"
)
_TO_SHORTEN = (
    "`savepoint succession run` makes Day shorter; take out of other files by hand what is old"
)
_HINT = "nothing was changed; run the same again"
_NO_FILE = "move it away, or put a regular file that is shorter in its place"


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
    meanwhile), UsageError (a file would be too long) and DiskError; then nothing is
    changed, or `recover` finishes it.
    """
    for path in change.replace:
        if content(folder, path) != before.get(path):
            raise BusyError(f"{path} was edited meanwhile", hint=_HINT)
    lines = [_Line(path, _digest(before.get(path)), -1, "") for path in change.replace]
    for path, data in change.append.items():
        size = _size(os.path.join(folder, path))
        lines.append(_Line(path, "", size, binascii.b2a_base64(data, newline=False).decode()))
    planned = _planned(lines, change)
    try:
        for path, data in change.replace.items():
            _stage(folder, path, data)
        _sync(folder, change.replace)
        durable.replace(os.path.join(folder, JOURNAL), planned)
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
    aside = []
    for line in lines:
        if line.size >= 0:
            _append(folder, line)
        elif os.path.lexists(os.path.join(folder, _away(line))):  # moved there when it died
            aside += [] if _is_spent(folder, line, _away(line)) else [_away(line)]
    return [*aside, *_finish(folder, lines)]


def read(folder: str, paths: Sequence[str]) -> dict[str, bytes | None]:
    """What these files hold, and would after `recover`: for a disk that cannot be written to.
    Raises DynastyError, MalformedError, DiskError.
    """
    wanted = [JOURNAL, *(one for path in paths for one in (path, _staged("", path)))]
    found = {path: content(folder, path) for path in wanted}
    after = replayed({path: data for path, data in found.items() if data is not None})
    return {path: after.get(path) for path in paths}


def content(folder: str, path: str) -> bytes | None:
    """A file of the dynasty; None where there is none. Raises DynastyError, DiskError."""
    try:
        return read_bounded(os.path.join(folder, path), FILE_BYTES)
    except MalformedError as failure:
        raise DynastyError(failure.message, hint=_NO_FILE) from None


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
    replaced = [line for line in lines if line.size < 0]
    aside = [one for line in replaced for one in _placed(folder, line)]
    _sync(folder, [line.path for line in lines])
    for line in replaced:
        durable.remove(_staged(folder, line.path))
    durable.remove(os.path.join(folder, JOURNAL))
    durable.sync_directory(folder)  # a journal that came back would undo what is written next
    return aside


def _placed(folder: str, line: _Line) -> list[str]:
    """The staged file has its own name as well. Returns the edits that stay beside it."""
    staged, path = _staged(folder, line.path), os.path.join(folder, line.path)
    aside: list[str] = []
    while os.path.exists(staged) and not _is_same(staged, path):
        away = _moved_away(folder, line)
        durable.link(staged, path)  # where somebody saved once more it is not, and that moves away
        aside += [away] if away and not _is_spent(folder, line, away) else []
    return aside


def _moved_away(folder: str, line: _Line) -> str:
    """Whatever stands in the place of the new file has another name; empty where nothing is."""
    path, away = os.path.join(folder, line.path), _away(line)
    if not os.path.lexists(path):
        return ""
    if os.path.lexists(os.path.join(folder, away)):  # an edit of the same text, long ago
        away = f"{line.path}.edited-{os.urandom(_ASIDE_DIGITS // 2).hex()}"
    durable.set_aside(path, os.path.join(folder, away), durable_name=False)
    return away


def _is_spent(folder: str, line: _Line, away: str) -> bool:
    """Was it nothing but what the journal replaces? Then it is removed."""
    try:
        spent = _digest(content(folder, away)) == line.was
    except DynastyError:  # no regular file: nothing of ours
        return False
    if spent:
        durable.remove(os.path.join(folder, away))
    return spent


def _away(line: _Line) -> str:
    """A name that is known again after a kill."""
    return f"{line.path}.edited-{line.was[:_ASIDE_DIGITS] or '0' * _ASIDE_DIGITS}"


def _is_same(staged: str, path: str) -> bool:
    return os.path.lexists(path) and os.path.samestat(os.lstat(staged), os.lstat(path))


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
    """What processes that died had begun to write; nobody else writes, under the lock."""
    for parent, folders, names in os.walk(folder):
        if parent != folder:
            folders.clear()
        for name in names:
            _, mark, digits = name.rpartition(durable.TEMPORARY_PREFIX)
            if name.startswith(NEXT) or (mark and len(digits) == _ASIDE_DIGITS):
                with suppress(DiskError):  # the next one clears it
                    durable.remove(os.path.join(parent, name))


def _planned(lines: list[_Line], change: Change) -> bytes:
    """The journal. Raises UsageError where something could not be read again: a Why of 70 MB was
    acknowledged once, and no command worked from then on.
    """
    listed: list[Json] = [dict(line._asdict()) for line in lines]
    journal = dump({"v": 1, "files": listed}) + b"\n"
    sizes = [(path, len(data), limits.DYNASTY_PAGE_BYTES) for path, data in change.replace.items()]
    grown = [(line.path, line.size) for line in lines if line.size >= 0]
    sizes += [(path, size + len(change.append[path]), FILE_BYTES) for path, size in grown]
    for path, size, most in [*sizes, (JOURNAL, len(journal), FILE_BYTES)]:
        if size > most:
            hint = _TOO_LONG.get(path, _TO_SHORTEN)
            raise UsageError(f"{path} would have {size} bytes, and {most} are written", hint=hint)
    return journal


def _load(folder: str) -> list[_Line] | None:
    data = content(folder, JOURNAL)
    return None if data is None else _parse(data)


def _parse(data: bytes) -> list[_Line]:
    try:
        value = parse(data, FILE_BYTES)
    except MalformedError as failure:
        raise DynastyError(f"{DYNASTY}/{JOURNAL} is damaged: {failure.message}") from None
    match value:
        case {"v": int(version)} if version > 1:
            raise UnsupportedFormatError(f"{DYNASTY}/{JOURNAL} of version {version}")
        case {"v": 1, "files": [*files]}:
            return [_line(one) for one in files]
        case _:
            raise DynastyError(f"{DYNASTY}/{JOURNAL} is none of ours")


def _line(value: Json) -> _Line:
    match value:
        case {"path": str(path), "was": str(was), "size": int(size), "data": str(data)}:
            parts = path.split("/")
            is_ours = len(parts) <= _DEPTH and not _FOREIGN.intersection(parts)
            if is_ours and (not was or spelling.digest(was)):
                return _Line(path, was, size, data)
    raise DynastyError(f"{DYNASTY}/{JOURNAL} names no file of a dynasty")


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
        raise DynastyError(f"{DYNASTY}/{JOURNAL} is damaged") from failure


def _staged(folder: str, path: str) -> str:
    parent, _, name = path.rpartition("/")
    return os.path.join(folder, parent, NEXT + name)


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
