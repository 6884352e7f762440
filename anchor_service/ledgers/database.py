"""ledger.db of an embedded ledger: its accounts, its log of transactions, its count of time."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import (
    DiskError,
    LedgerRefusedError,
    LedgerUnreachableError,
    UnsupportedFormatError,
)
from savepoint.core.named import NamedTuple
from savepoint.store import sqlite_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS cluster(
    id INTEGER PRIMARY KEY CHECK(id = 1),
    genesis BLOB NOT NULL, slot INTEGER NOT NULL, time INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS accounts(
    address BLOB PRIMARY KEY, owner BLOB NOT NULL, lamports INTEGER NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS transactions(
    signature BLOB PRIMARY KEY, slot INTEGER NOT NULL, time INTEGER NOT NULL, bytes BLOB NOT NULL
) STRICT;
"""


class Cluster(NamedTuple):
    """What is one row."""

    genesis: bytes  # 32 random bytes
    slot: int  # of the last transaction that landed
    time: int  # its Unix seconds


class Kept(NamedTuple):
    """An account as it is kept."""

    owner: bytes
    lamports: int
    data: bytes


@contextmanager
def reading(path: str) -> Iterator[sqlite3.Connection]:
    """The file as it is at one moment; made if there is none.

    Raises LedgerUnreachableError (held by another process), LedgerRefusedError (damaged),
    UnsupportedFormatError, DiskError.
    """
    if not _is_made(path):
        with changing(path):
            pass
    with _open(path, _to_read) as db:
        db.execute("BEGIN")
        yield db
        db.execute("ROLLBACK")


@contextmanager
def changing(path: str) -> Iterator[sqlite3.Connection]:
    """The file for this process alone. All that the block does is durable behind it, or none of it
    if the block raises or the process dies. Raises as `reading`.
    """
    with _open(path, sqlite_file.to_write) as db:
        if _version(db, path) == 0:
            _make(db)
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")


def cluster(db: sqlite3.Connection) -> Cluster:
    """Its row."""
    return Cluster(*db.execute("SELECT genesis, slot, time FROM cluster").fetchone())


def account(db: sqlite3.Connection, address: bytes) -> Kept | None:
    """None where nothing was ever put."""
    row = db.execute(
        "SELECT owner, lamports, data FROM accounts WHERE address = ?", (address,)
    ).fetchone()
    return Kept(*row) if row else None


def put(db: sqlite3.Connection, address: bytes, kept: Kept | None) -> None:
    """None removes it."""
    if kept is None:
        db.execute("DELETE FROM accounts WHERE address = ?", (address,))
    else:
        db.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?)", (address, *kept))


def landed(db: sqlite3.Connection, signature: bytes) -> int | None:
    """The slot of a transaction in the log."""
    row = db.execute("SELECT slot FROM transactions WHERE signature = ?", (signature,)).fetchone()
    return int(row[0]) if row else None


def log(
    db: sqlite3.Connection, signature: bytes, transaction: bytes, *, slot: int, now: int
) -> None:
    """A transaction that landed in the next slot."""
    db.execute("INSERT INTO transactions VALUES (?, ?, ?, ?)", (signature, slot, now, transaction))
    db.execute("UPDATE cluster SET slot = ?, time = ?", (slot, now))


@contextmanager
def _open(path: str, opened: Callable[[str], sqlite3.Connection]) -> Iterator[sqlite3.Connection]:
    """Closing it takes back what was not committed."""
    try:
        with closing(opened(path)) as db:
            yield db
    except sqlite3.Error as failure:
        raise _named(failure, path) from failure


def _is_made(path: str) -> bool:
    if not os.path.lexists(path):
        return False
    with _open(path, _to_read) as db:
        return _version(db, path) > 0


def _to_read(path: str) -> sqlite3.Connection:
    return sqlite_file.to_read(path, limits.LOCK_WAIT_SECONDS)


def _version(db: sqlite3.Connection, path: str) -> int:
    """0: its maker died before it was made."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise UnsupportedFormatError(f"{path} is of version {version}")
    return int(version)


def _make(db: sqlite3.Connection) -> None:
    row = (os.urandom(32), 1, int(time.time()))
    db.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";"):
        db.execute(statement)
    db.execute("INSERT OR IGNORE INTO cluster VALUES (1, ?, ?, ?)", row)
    db.execute(f"PRAGMA user_version={_VERSION}")
    db.execute("COMMIT")


def _named(
    failure: sqlite3.Error, path: str
) -> LedgerUnreachableError | LedgerRefusedError | DiskError:
    if sqlite_file.is_busy(failure):
        return LedgerUnreachableError(f"{path}: another process holds it")
    if sqlite_file.is_torn(failure):
        return LedgerRefusedError(
            f"{path}: {failure}",
            hint="move it away: a new ledger begins, and the next savepoints are anchored on that",
        )
    return DiskError(f"{path}: {failure}")
