"""What `doctor` checks of git: the remote, the worker, and what waits to be committed or pushed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.cli.doctor.checks import Check, good, tried, warn
from savepoint.cli.view import status
from savepoint.cli.worker.worker import is_running
from savepoint.core import limits
from savepoint.gitlayer.remote import remote_url
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

_CHOOSE = "`savepoint config remote URL` chooses one; without it this disk is the only copy"


def run(at: place.Place) -> list[Check]:
    """All of them, for a folder that has a store. Asks the remote, with a deadline."""
    return [tried("remote", lambda: _remote(at)), tried("worker", lambda: _worker(at)), *_owed(at)]


def strangers(at: place.Place) -> list[str]:
    """Slugs of instances that the remote has and this store has not: perhaps another machine's, or
    this one's before it lost its store (entireio/cli#1374). Raises RemoteUnreachableError.
    """
    if at.config.remote is None:
        return []
    repo = Repository.of(
        at.store, place.around().environment, time.monotonic() + limits.REMOTE_ANSWER_SECONDS
    )
    held = Remote.of(repo, remote_url.parse(at.config.remote, "/")).tips()
    return sorted(set(held) - {paths.slug for paths in savepoints.instances(at.store)})


def told(slugs: list[str]) -> str:
    """What the owner should know of them."""
    return (
        f"the remote also holds {', '.join(slugs[: limits.LISTED])}: where they were lost, "
        "`savepoint bootstrap --remote URL --keys FILE`, with another SAVEPOINT_HOME, brings them "
        "back"
    )


def _remote(at: place.Place) -> Check:
    if at.config.remote is None:
        return warn("remote", "none", _CHOOSE)
    shown = remote_url.parse(at.config.remote, "/").shown
    others = strangers(at)
    return good("remote", f"{shown} answers{f'; {told(others)}' if others else ''}")


def _worker(at: place.Place) -> Check:
    return good("worker", "running" if is_running(at.store) else "none needed right now")


def _owed(at: place.Place) -> list[Check]:
    owed = status.jobs(at, int(time.time()))
    key = at.paths.slug[-8:]
    at_work = is_running(at.store)
    return [_job(one, key, at_work=at_work) for one in owed if isinstance(one, dict)] or [
        good("jobs", "nothing owed")
    ]


def _job(one: dict[str, Json], key: str, *, at_work: bool) -> Check:
    age = terminal.span(int(str(one["age_seconds"])))
    why = f": {one['error']}" if one["error"] else ""
    todo = str(one["hint"]) if one["kind"] == "anchor" and one["hint"] else "`savepoint sync`"
    newest = f"{one['seq']}{status.whose(one, key)}"
    told = f"{one['state']} up to {newest}, for {age}{why}"
    if at_work and not why:
        return good("jobs", f"{told}: the worker is at it")
    return warn("jobs", told, todo)
