"""A store changes its remote: what was seen at the old one is not expected at the new one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.gitlayer import pushed, remote_url
from savepoint.gitlayer.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import savepoints
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


def leave(at: place.Place, old: str | None) -> None:
    """Before another remote is used, or none. The caller holds the store lock.

    History that this machine lacks is fetched from the old remote, else the owner is told that a
    new one will lack it. Raises DiskError.
    """
    around = place.around()
    repo = Repository.of(at.store, around.environment, time.monotonic() + limits.FETCH_SECONDS)
    instances = savepoints.instances(at.store)
    if old is not None and os.path.exists(os.path.join(repo.path, "shallow")):
        _complete(Remote.of(repo, remote_url.parse(old, "/")), instances)
    with Outbox(at.store) as box:
        for paths in instances:
            pushed.forget(repo, paths)
            box.done(Job("push", paths.slug, None, 0))  # the old one's refusals are not the new's


def _complete(remote: Remote, instances: list[InstancePaths]) -> None:
    for paths in instances:
        try:
            remote.complete(paths.slug)
        except SavepointError as failure:
            terminal.note(
                f"another remote will lack the history of {paths.slug} that only "
                f"{remote.url.shown} has: {failure.message}"
            )
