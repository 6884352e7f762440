"""What follows an acknowledged savepoint: a worker for what is owed, and a wait for the push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.store import config
from savepoint.store.session import sessions
from savepoint.work import start
from savepoint.work.jobs import Surroundings

if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from savepoint.save import Saved


def behind(saved: Saved, request: Request) -> None:
    """As `follow`, of a savepoint that nobody waits for. Raises MalformedError, DiskError."""
    follow(saved, Surroundings(request.environment, request.config_dir), 0.0, wait=False)


def follow(
    saved: Saved, around: Surroundings, started: float, *, wait: bool, ending: bool = False
) -> tuple[str, str] | None:
    """Layer-2 status of a savepoint, and the error that stands in its way, if they had to be waited
    for; else None.

    started: time.monotonic() when the save began; with `wait`, its push is waited for within the
    time that a save may take. A worker is started only if something is owed. ending: the process
    ends after this save. Raises MalformedError, DiskError.
    """
    store, seq = saved.paths.store, saved.record.seq
    chosen = config.load(store)
    if chosen.remote is not None and wait:
        from savepoint.work import push_wait

        until = push_wait.give_up(chosen, started)
        return push_wait.wait_for_push(saved.paths, saved.record, around, until)
    is_owed = (chosen.remote, chosen.ledger) != (None, None) or saved.commit is None
    session = str(saved.record.body["session_id"])
    if is_owed or seq % limits.REPACK_GIT_PACKS == 0 or sessions.is_unaudited(store, session):
        if ending:
            start.leave_behind(store, around)
        else:
            start.start(store, around)
    return None
