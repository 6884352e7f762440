"""Jobs `repack`: each commit is a git pack of its own, and hundreds of them make git slow."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.gitlayer import packing
from savepoint.gitlayer.repair import leftovers
from savepoint.gitlayer.repository import Repository
from savepoint.store import savepoints
from savepoint.store.locks import Lock
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Surroundings


class Repack:
    """One job for a repository that has many packs."""

    name = "repack"
    seconds = limits.REPACK_SECONDS

    def owed(self, store: Store, around: Surroundings) -> list[Job]:
        """Nothing, up to REPACK_GIT_PACKS packs."""
        if len(packing.packs(around.repository(store))) < limits.REPACK_GIT_PACKS:
            return []
        return [Job(self.name, os.path.basename(store.repository), None, int(time.time()))]

    def do(self, store: Store, _job: Job, around: Surroundings, deadline: float) -> None:
        """Remove what dead processes left, and make few packs of many: that without a lock, since
        no save may wait for it. Raises CommitError, BusyError, DiskError.
        """
        repo = Repository.of(store, around.environment, deadline)
        with Lock(store.lock, deadline):
            for paths in savepoints.instances(store):
                leftovers.remove_leftovers(repo, paths.slug)
        packing.join(repo)
