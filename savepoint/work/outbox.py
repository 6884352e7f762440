"""Table `attempts` of outbox.db, so that a worker that starts anew does not hammer a remote.

Nothing in it is needed to know what is owed: lost, it costs early retries, nothing else
(screenpipe#2907). The file is not so cheap: it holds `submissions` too (store/outbox_file.py).
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import BusyError, DiskError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store import outbox_file

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Job

_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts(
    kind TEXT NOT NULL, key TEXT NOT NULL, tries INTEGER NOT NULL, next_at INTEGER NOT NULL,
    name TEXT NOT NULL, error TEXT NOT NULL, PRIMARY KEY(kind, key)
) STRICT
"""
_ASKED = "SELECT tries, next_at, name, error FROM attempts WHERE kind = ? AND key = ?"


class Attempt(NamedTuple):
    """What became of a job so far."""

    tries: int
    next_at: int  # Unix seconds
    name: str  # of the error class
    error: str  # its message


class Outbox(outbox_file.Table):
    """Open for the worker alone. Raises BusyError, DiskError."""

    schema = _SCHEMA

    def attempt(self, job: Job) -> Attempt | None:
        """The attempts at a job, or None if there was none."""
        return next((Attempt(*row) for row in self._read(_ASKED, (job.kind, job.key))), None)

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


def attempts(store: Store, jobs: list[Job]) -> list[Attempt | None]:
    """What became of these jobs, for people who ask while a worker may run. None also where that
    cannot be read: nothing hangs on it.
    """
    found: list[Attempt | None] = [None for _ in jobs]
    with suppress(BusyError, DiskError):
        for place, job in enumerate(jobs):
            rows = outbox_file.read(store, "attempts", _ASKED, (job.kind, job.key))
            found[place] = Attempt(*rows[0]) if rows else None
    return found


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
