"""outbox.db: the attempts at jobs, so that a worker that starts anew does not hammer a remote.

Nothing in it is needed to know what is owed. A copy without its -wal, or none at all, costs early
retries, nothing else (screenpipe#2907).
"""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Self

from savepoint.core import limits
from savepoint.core.errors import BusyError, DiskError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store import durable

if TYPE_CHECKING:
    from types import TracebackType

    from savepoint.store.layout import Store
    from savepoint.work.jobs import Job

_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts(
    kind TEXT NOT NULL, key TEXT NOT NULL, tries INTEGER NOT NULL, next_at INTEGER NOT NULL,
    name TEXT NOT NULL, error TEXT NOT NULL, PRIMARY KEY(kind, key)
) STRICT
"""


class Attempt(NamedTuple):
    """What became of a job so far."""

    tries: int
    next_at: int  # Unix seconds
    name: str  # of the error class
    error: str  # its message


class Outbox:
    """The table of attempts, open for the worker alone."""

    def __init__(self, store: Store) -> None:
        self._path = store.outbox

    def __enter__(self) -> Self:
        try:
            self._db = _open(self._path)
        except sqlite3.DatabaseError as failure:
            if getattr(failure, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY:
                raise BusyError(f"{self._path} is held by another program") from failure
            # torn or foreign: what it knew is not needed
            for ending in ("", "-wal", "-shm"):
                durable.remove(self._path + ending)
            self._db = _open(self._path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def attempt(self, job: Job) -> Attempt | None:
        """The attempts at a job, or None if there was none."""
        return _attempt(self._db, job)

    def failed(self, job: Job, failure: SavepointError, now: int) -> Attempt:
        """Note a failure and when to try again."""
        before = self.attempt(job)
        tries = before.tries + 1 if before else 1
        attempt = Attempt(
            tries, now + pause(tries, retry=failure.retry), failure.name, failure.message
        )
        self._write(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?)",
            (job.kind, job.key, *attempt),
        )
        return attempt

    def done(self, job: Job) -> None:
        """Nothing is owed any more."""
        self._write("DELETE FROM attempts WHERE kind = ? AND key = ?", (job.kind, job.key))

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            with self._db:
                self._db.execute(statement, values)
        except sqlite3.Error as failure:
            raise DiskError(f"{self._path}: {failure}") from failure


def attempts(store: Store, jobs: list[Job]) -> list[Attempt | None]:
    """What became of these jobs, for people who ask while a worker may run."""
    if not os.path.exists(store.outbox):
        return [None for _ in jobs]
    try:
        with closing(sqlite3.connect(f"file:{store.outbox}?mode=ro", uri=True, timeout=1)) as db:
            return [_attempt(db, job) for job in jobs]
    except sqlite3.Error:
        return [None for _ in jobs]


def pause(tries: int, *, retry: bool) -> int:
    """Seconds until the next attempt: exponential with jitter, so that the workers of many stores
    do not come back together. What will not succeed by itself is looked at once an hour.
    """
    if not retry:
        return limits.RETRY_REFUSED_SECONDS
    seconds = min(
        limits.RETRY_FIRST_SECONDS * 2 ** min(tries - 1, 20), limits.RETRY_LONGEST_SECONDS
    )
    return max(1, int(seconds * random.uniform(0.75, 1.25)))  # noqa: S311  # no secret in it


def _open(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=limits.LOCK_WAIT_SECONDS)
    os.chmod(path, durable.FILE_MODE)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")  # NORMAL loses the last commits in a power cut
    db.execute(_SCHEMA)
    return db


def _attempt(db: sqlite3.Connection, job: Job) -> Attempt | None:
    row = db.execute(
        "SELECT tries, next_at, name, error FROM attempts WHERE kind = ? AND key = ?",
        (job.kind, job.key),
    ).fetchone()
    return Attempt(*row) if row else None
