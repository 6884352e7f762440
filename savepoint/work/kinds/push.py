"""Jobs `push`: commits that the remote has not been seen to have."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.gitlayer import cursor, repository
from savepoint.gitlayer.remote import push, pushed, remote_url
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import config, ending, savepoints
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.gitlayer.remote.push import Progress
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.jobs import Surroundings

NAME = "push"


class Push:
    """One job an instance whose ref is not where the remote-tracking ref is."""

    name = NAME
    seconds = limits.PUSH_SECONDS

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def owed(self, store: Store, around: Surroundings) -> list[Job]:
        """What is not pushed; nothing where there is no remote. Raises SavepointError."""
        if config.load(store).remote is None:
            return []
        found = [owed_by(paths, around) for paths in savepoints.instances(store)]
        return [one for one in found if one is not None]

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> None:
        """Push as much as there is time for: the rest is still owed. Raises SavepointError."""
        url = config.load(store).remote
        if url is None:
            return
        repo = Repository.of(store, around.environment, deadline)
        repository.ensure(repo)
        remote = Remote.of(repo, remote_url.parse(url, "/"))
        push.push(remote, store.instance(job.key), self._progress)


def owed_by(paths: InstancePaths, around: Surroundings) -> Job | None:
    """The job of an instance, if there is one."""
    repo = around.repository(paths.store)
    try:
        ours = repository.read_ref(repo, repository.branch(paths.slug))
        theirs = pushed.commit(repo, paths.slug)
        if ours == theirs or ours is None:
            return None
        at, before = cursor.read(repo, paths.slug), pushed.read(repo, paths.slug)
        left = ending.above(paths, before.seq if before else 0)
    except SavepointError:  # the attempt will say what is wrong with refs or index
        return Job(NAME, paths.slug, None, int(time.time()))
    since = next((one.timestamp for one in left if one.kind == "save"), int(time.time()))
    return Job(NAME, paths.slug, at.seq if at else None, since)
