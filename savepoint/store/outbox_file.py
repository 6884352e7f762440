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

from savepoint.core.errors import BusyError, DiskError
from savepoint.store import durable, sqlite_file
from savepoint.store.files import names_in
from savepoint.store.layout import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from savepoint.store.layout import Store

_WAIT_SECONDS = 1.0  # of who reads: nothing hangs on it
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
            if not sqlite_file.is_torn(failure):
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
        with _naming(self._path):
            self._db.execute(statement, values)


def read(store: Store, table: str, asked: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    """Rows as a worker at work left them; none where there is no file or no such table.

    Raises BusyError, DiskError: what cannot be read is not what is not there.
    """
    path = store.outbox
    if not os.path.lexists(path):
        return []
    with _naming(path), closing(sqlite_file.to_read(path, _WAIT_SECONDS)) as db:
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
    db = sqlite_file.to_write(path)
    try:
        db.executescript(schema)
    except BaseException:
        db.close()
        raise
    return db


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
    if sqlite_file.is_busy(failure):
        return BusyError(f"{path} is held by another program")
    return DiskError(f"{path}: {failure}", hint=_KEEP if sqlite_file.is_torn(failure) else "")
