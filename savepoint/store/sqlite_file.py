"""A file of SQLite: looked at before it is opened, changed by nobody who only reads."""

from __future__ import annotations

import os
import sqlite3
import stat
from urllib.parse import quote

from savepoint.core import limits
from savepoint.core.errors import DiskError
from savepoint.store import durable

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_TORN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def to_write(path: str) -> sqlite3.Connection:
    """Made if there is none. Each statement outside a BEGIN is durable when it is done.

    Raises sqlite3.Error, DiskError.
    """
    _look(path)
    db = sqlite3.connect(path, timeout=limits.LOCK_WAIT_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA user_version").fetchone()  # what is no database keeps its mode
        os.chmod(path, durable.FILE_MODE)
        db.execute("PRAGMA journal_mode=WAL")  # stays in the file
        db.execute("PRAGMA synchronous=FULL")  # NORMAL loses the last commits in a power cut
    except BaseException:
        db.close()
        raise
    return db


def to_read(path: str, wait: float) -> sqlite3.Connection:
    """SQLite makes a -shm to read what has none; where nobody can write, it need not. wait: for
    who holds it, in seconds. Raises sqlite3.Error, DiskError.
    """
    _look(path)
    mode = "mode=ro"
    if not os.access(os.path.dirname(path), os.W_OK) and not _size(path + "-wal"):
        mode += "&immutable=1"
    return sqlite3.connect(
        f"file:{quote(path)}?{mode}", uri=True, timeout=wait, isolation_level=None
    )


def is_busy(failure: sqlite3.Error) -> bool:
    """Does another program hold it?"""
    return _code(failure) in _BUSY


def is_torn(failure: sqlite3.Error) -> bool:
    """Is it no database any more?"""
    return _code(failure) in _TORN


def _look(path: str) -> None:
    """SQLite waits at a FIFO for good, whatever alarm is set, and changes what a link names."""
    for ending in ("", "-wal", "-shm", "-journal"):
        try:
            mode = os.lstat(path + ending).st_mode
        except FileNotFoundError:
            continue
        except OSError as failure:
            raise DiskError.of(failure, path + ending) from failure
        if not stat.S_ISREG(mode):
            raise DiskError(f"{path}{ending} is not a regular file", hint="move it away")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _code(failure: sqlite3.Error) -> int:
    """The primary one: 261, say, is BUSY_RECOVERY, and was taken for a torn file."""
    return getattr(failure, "sqlite_errorcode", 0) & 0xFF
