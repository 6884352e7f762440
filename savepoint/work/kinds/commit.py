"""Jobs `commit`: records that a save could not commit, because git failed or time was short."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.gitlayer import cursor
from savepoint.gitlayer.commits import commit, plan
from savepoint.store import ending, index, savepoints
from savepoint.store.locks import Lock
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.jobs import Surroundings


class Commit:
    """One job an instance whose index has more than its ref, or is not the one that it holds."""

    name = "commit"
    seconds = limits.COMMIT_SECONDS

    def owed(self, store: Store, around: Surroundings) -> list[Job]:
        """What git lacks. Raises DiskError."""
        found = [self._of(paths, around) for paths in savepoints.instances(store)]
        return [one for one in found if one is not None]

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> None:
        """Commit them in order, giving way to saves after each run. Raises SavepointError."""
        paths = store.instance(job.key)
        while time.monotonic() < deadline:
            with Lock(store.lock, deadline):
                done = commit.commit(paths, around.environment, deadline)
            if done is None or not done.left:
                return

    def _of(self, paths: InstancePaths, around: Surroundings) -> Job | None:
        try:
            at = cursor.read(around.repository(paths.store), paths.slug)
            left = ending.above(paths, at.seq if at else 0)
            end = index.last(paths)
            if at and not index.holds(paths, left[0] if left else end, at.seq, at.record):
                # It was cut or put back: the attempt says so, and stays owed.
                return Job(self.name, paths.slug, end.seq if end else None, int(time.time()))
        except SavepointError:  # the attempt will say what is wrong with ref or index
            return Job(self.name, paths.slug, None, int(time.time()))
        ours = [one for one in left if plan.has_commit(paths, one)]
        if not ours:
            return None
        return Job(self.name, paths.slug, ours[-1].seq, ours[0].timestamp)
