"""Jobs `save`: fires that a kill, a deadline or a missing key left unfinished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint import save
from savepoint.core import limits
from savepoint.store.session import pending
from savepoint.work import requests
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Surroundings


class Pending:
    """One job a session that has a note, unless it is being served right now."""

    name = "save"
    seconds = limits.PENDING_SECONDS

    def owed(self, store: Store, _around: Surroundings) -> list[Job]:
        """What fires have left. Raises DiskError."""
        left = ((key, pending.load(store, key)) for key in pending.keys(store))
        return [
            Job(self.name, key, None, note.since)
            for key, note in left
            if note is not None and not save.is_at_work(store, key)
        ]

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> None:
        """Make it a savepoint. Raises SavepointError."""
        save.finish(requests.of_worker(store, around, deadline), store, job.key)
