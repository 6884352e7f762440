"""Waiting for the worker's push, as hook and `create` do within their time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.store import config
from savepoint.work import layer2, start
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.config import Config
    from savepoint.store.layout import InstancePaths
    from savepoint.work.jobs import Surroundings
    from savepoint.work.outbox import Attempt


def give_up(chosen: Config, started: float) -> float:
    """Until when a save that began at `started` waits for its push; both of time.monotonic()."""
    now = time.monotonic()
    return min(now + chosen.push_wait, max(now, started + limits.SAVE_AND_PUSH_SECONDS))


def wait_for_push(
    paths: InstancePaths, one: Record, around: Surroundings, until: float
) -> tuple[str, str]:
    """Start a worker, and wait until it has pushed savepoint `one`, has failed to, or `until` of
    time.monotonic() has passed. Layer-2 status and error of the savepoint.

    Where no attempt is due before `until`, nothing is waited for. Raises MalformedError, DiskError
    (the config).
    """
    before = _attempt(paths)
    start.start(paths.store, around)
    status, error = layer2.status_of(paths, one, around)
    if config.load(paths.store).remote is None or _is_far(before, until):
        return status, error
    while status != layer2.PUSHED and time.monotonic() < until:
        time.sleep(limits.PUSH_POLL_SECONDS)
        has_failed = _attempt(paths) not in (None, before)
        status, error = layer2.status_of(paths, one, around)
        if has_failed:
            break
    return status, error


def _is_far(attempt: Attempt | None, until: float) -> bool:
    """Will the next attempt come too late to be waited for?"""
    return attempt is not None and attempt.next_at - time.time() > until - time.monotonic()


def _attempt(paths: InstancePaths) -> Attempt | None:
    from savepoint.work import outbox  # sqlite3 costs a hook 5 ms, and is not needed without a wait

    (found,) = outbox.attempts(paths.store, [Job("push", paths.slug, None, 0)])
    return found
