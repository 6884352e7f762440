"""`savepoint worker`: is one at work, what is owed, and what became of the last attempts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import anchoring
from savepoint.core.errors import BusyError, UsageError
from savepoint.store.locks import Lock
from savepoint.work import outbox

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Job
    from savepoint.work.outbox import Attempt


def worker(
    status: Annotated[bool, typer.Option("--status", help="Show what it does.")] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show with --status what the worker does.

    It starts by itself, and ends when nothing is owed.
    """
    if not status:
        raise UsageError("a worker starts by itself", hint="`savepoint worker --status` shows it")
    at = place.find(project)
    around = place.around()
    owed = [job for kind in anchoring.all_kinds() for job in kind.owed(at.store, around)]
    attempts = outbox.attempts(at.store, owed)
    running = is_running(at.store)
    now = int(time.time())
    jobs = [_job(*pair, now) for pair in zip(owed, attempts, strict=True)]
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.store import WorkerStatus

        value: Json = {"running": running, "jobs": list(jobs)}
        terminal.document(shaped(WorkerStatus, value))
    else:
        terminal.say("a worker is running" if running else "no worker is running")
        for one in jobs:
            terminal.say(_line(one))


def is_running(store: Store) -> bool:
    """Does a worker, or `sync`, work for this store right now?"""
    try:
        with Lock(store.worker_lock, 0.0):
            return False
    except BusyError:
        return True


def _job(job: Job, attempt: Attempt | None, now: int) -> dict[str, Json]:
    return {
        "kind": job.kind,
        "key": job.key,
        "seq": job.seq,
        "age_seconds": max(0, now - job.since),
        "tries": attempt.tries if attempt else 0,
        "next_in_seconds": max(0, attempt.next_at - now) if attempt else 0,
        "error": attempt.error if attempt else None,
    }


def _line(one: dict[str, Json]) -> str:
    text = f"{one['kind']} of {one['key']}"
    text += f", up to {one['seq']}" if one["seq"] else ""
    text += f", for {terminal.span(int(str(one['age_seconds'])))}"
    if one["error"]:
        pause = terminal.span(int(str(one["next_in_seconds"])))
        tries = terminal.counted(int(str(one["tries"])), "attempt")
        text += f"; {tries}, the next in {pause}: {one['error']}"
    return text
