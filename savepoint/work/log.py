"""What the worker did, in the logs of the instance that it did it for."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core.errors import SavepointError
from savepoint.store import config, journal, savepoints
from savepoint.work import layer2

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Surroundings
    from savepoint.work.worker import Done

_OF_AN_INSTANCE = ("commit", "push")  # jobs whose key is a slug


def told(store: Store, done: Done, around: Surroundings) -> None:
    """A line about one attempt. What cannot be logged is not: nothing hangs on it."""
    job, failure = done.job, done.failure
    now = int(time.time())
    with suppress(SavepointError):
        if job.kind in _OF_AN_INSTANCE and job.seq is not None:
            paths = store.instance(job.key)
            if job.kind == "commit":  # which was the news, whatever follows
                event = layer2.QUEUED_FOR_COMMIT if failure else layer2.COMMITTED
            elif layer2.is_sent(paths, job.seq, around):
                event = layer2.PUSHED
            else:
                event = layer2.word_of(failure.name if failure else "")
            journal.became(paths, now, job.seq, event, failure.message if failure else "")
            return
        said = failure.message if failure else "done"
        what = f"{job.kind} {job.key}" if job.key else f"what is owed of {job.kind}"
        _say(store, now, f"worker: {what}: {said}")


def ended(store: Store, failure: SavepointError) -> None:
    """A line about a worker that could not go on; its exit code is told to nobody."""
    with suppress(SavepointError):
        _say(store, int(time.time()), f"worker: ended: {failure.message}")


def _say(store: Store, now: int, text: str) -> None:
    """In the log of the store's instance, or of each where a damaged config does not name it."""
    try:
        found = [store.instance(config.load(store).instance)]
    except SavepointError:
        found = savepoints.instances(store)
    for paths in found:
        journal.continuity(paths, now, text)
