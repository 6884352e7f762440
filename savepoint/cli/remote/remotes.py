"""A store and its remote: does it have everything, and what becomes of that when it is changed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.core import limits
from savepoint.core.errors import RolledBackError, SavepointError
from savepoint.gitlayer.remote import pushed, remote_url, tip
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.remote.tip import Tips
from savepoint.gitlayer.repair import mend
from savepoint.gitlayer.repository import Repository
from savepoint.store import savepoints
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


def refuse_lost(at: place.Place, until: float) -> None:
    """Nothing can be done for a store without a record before what the remote has is back. until:
    of time.monotonic(). Raises RolledBackError, RemoteUnreachableError, KeyFileError, DiskError.
    """
    if at.config.remote is None or not mend.is_lost(at.store):
        return
    remote = _remote(at, until)
    lost = sorted(mend.of_keys(at.store, remote.tips()))
    if lost:
        raise RolledBackError(
            f"{remote.url.shown} has {', '.join(lost)}, of which here are only the keys",
            hint="`savepoint fsck --repair` brings back what the remote has",
        )


def check(at: place.Place, until: float) -> None:
    """Ask the remote, where nothing is owed: it may have been emptied, put back or replaced since
    the last push. until: of time.monotonic().

    Raises RolledBackError, RemoteDivergedError, RemoteUnreachableError, CommitError, DiskError.
    """
    remote = _remote(at, until)
    tips = remote.tips()
    for paths in savepoints.instances(at.store):
        now = Tips(tip.ours(remote, paths), tips.get(paths.slug), tip.seen(remote, paths))
        tip.check(remote, paths, now)


def _remote(at: place.Place, until: float) -> Remote:
    repo = Repository.of(at.store, place.around().environment, until)
    return Remote.of(repo, remote_url.parse(at.config.remote or "", "/"))


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
