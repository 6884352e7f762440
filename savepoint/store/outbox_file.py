"""outbox.db as a file: open for its writer, read by who asks meanwhile, set aside where it is torn.

Two tables are in it: the attempts at jobs (work/outbox.py), which may be lost, and what was signed
and paid (anchor_service/queue.py), which may not: the owner's cap is counted from it. So the file
is never removed, and left alone unless SQLite says that it is no database any more. It was deleted
because the disk was full, and a transaction that had been sent was forgotten.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import quote

from savepoint.core import limits
from savepoint.core.errors import BusyError, DiskError
from savepoint.store import durable
from savepoint.store.files import names_in
from savepoint.store.layout import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from savepoint.store.layout import Store

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_TORN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_KEEP = "move it away and keep it: a new one begins, and what was sent is asked of the ledger"


class Table:
    """One table, open for the worker alone."""

    schema: ClassVar[str]

    def __init__(self, store: Store) -> None:
        self._path = store.outbox

    def __enter__(self) -> Self:
        """Raises BusyError (another program holds the file), DiskError."""
        try:
            self._db = _open(self._path, self.schema)
        except sqlite3.Error as failure:
            if _code(failure) not in _TORN:
                raise _named(failure, self._path) from failure
            _set_aside(self._path)
            with _naming(self._path):
                self._db = _open(self._path, self.schema)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def _read(self, asked: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """Rows. Raises BusyError, DiskError."""
        with _naming(self._path):
            return self._db.execute(asked, values).fetchall()

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        """Durable when this returns. Raises BusyError, DiskError."""
        with _naming(self._path), self._db:
            self._db.execute(statement, values)


def read(store: Store, table: str, asked: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    """Rows as a worker at work left them; none where there is no file or no such table.

    Raises BusyError, DiskError: what cannot be read is not what is not there.
    """
    path = store.outbox
    if not os.path.lexists(path):
        return []
    with _naming(path), closing(_connect_to_read(path)) as db:
        exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if db.execute(exists, (table,)).fetchone() is None:
            return []
        return db.execute(asked, values).fetchall()


def set_aside(store: Store) -> list[tuple[str, int]]:
    """Paths of files that were torn, and when each was set aside, in Unix seconds. Raises
    DiskError.
    """
    aside = re.compile(re.escape(os.path.basename(store.outbox) + SET_ASIDE) + "([0-9a-f]{16})")
    found = ((name, aside.fullmatch(name)) for name in names_in(store.path))
    return [(os.path.join(store.path, name), int(one[1], 16)) for name, one in found if one]


def _open(path: str, schema: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=limits.LOCK_WAIT_SECONDS)
    try:
        os.chmod(path, durable.FILE_MODE)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")  # NORMAL loses the last commits in a power cut
        db.executescript(schema)
    except BaseException:
        db.close()
        raise
    return db


def _connect_to_read(path: str) -> sqlite3.Connection:
    """SQLite makes a -shm to read what has none; where nobody can write, it need not."""
    mode = "mode=ro"
    if not os.access(os.path.dirname(path), os.W_OK) and not os.path.exists(path + "-wal"):
        mode += "&immutable=1"
    return sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, timeout=1)


def _set_aside(path: str) -> None:
    """It keeps its -wal, under its new name. Both have that before either loses the old one, so a
    death in between loses nothing.
    """
    aside = f"{path}{SET_ASIDE}{int(time.time()):016x}"
    while os.path.lexists(aside):  # two of one second
        aside = f"{path}{SET_ASIDE}{int(aside[-16:], 16) + 1:016x}"
    for ending in ("-wal", ""):
        if os.path.lexists(path + ending):
            durable.link(path + ending, aside + ending)
    durable.sync_directory(os.path.dirname(path))
    for ending in ("-wal", "-shm", ""):
        durable.remove(path + ending)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as failure:
        raise _named(failure, path) from failure


def _named(failure: sqlite3.Error, path: str) -> BusyError | DiskError:
    if _code(failure) in _BUSY:
        return BusyError(f"{path} is held by another program")
    return DiskError(f"{path}: {failure}", hint=_KEEP if _code(failure) in _TORN else "")


def _code(failure: sqlite3.Error) -> int:
    """The primary one: 261, say, is BUSY_RECOVERY, and was taken for a torn file."""
    return getattr(failure, "sqlite_errorcode", 0) & 0xFF
