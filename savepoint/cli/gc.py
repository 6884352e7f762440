"""`savepoint gc`: what nothing refers to any more; said first, removed with --yes."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits
from savepoint.core.errors import CommitError
from savepoint.gitlayer import packing
from savepoint.gitlayer.repair import leftovers
from savepoint.gitlayer.repository import Repository
from savepoint.store import savepoints
from savepoint.store.fsck import garbage
from savepoint.store.locks import Lock
from savepoint.work.kinds.commit import Commit

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.fsck.garbage import Garbage


def gc(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it.")] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what nothing refers to any more; with --yes, remove it.

    Packs and snapshots that no savepoint, no index that was set aside and no draft names, and
    temporaries of dead processes; nothing that is younger than an hour.
    """
    at = place.find(project)
    with terminal.busy("looking through all savepoints"):
        found = (
            garbage.remove(at.store, time.time()) if yes else garbage.find(at.store, time.time())
        )
    git = _tidy(at) if yes else _unreached(at)
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.store import Collected

        value = _document(found, git, removed=yes)
        terminal.document(shaped(Collected, value))
    else:
        _print(at, found, git, removed=yes)


def _tidy(at: place.Place) -> list[str]:
    """What dead git processes left goes as well; what went."""
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    repo = Repository.of(at.store, place.around().environment, deadline)
    if not os.path.isdir(repo.path):
        return []
    with Lock(at.store.lock, deadline):
        instances = savepoints.instances(at.store)
        gone = [one for paths in instances for one in leftovers.remove_leftovers(repo, paths.slug)]
        packs = _unreached(at)
        for name in packs:
            packing.remove(repo, name)
    return gone + packs


def _unreached(at: place.Place) -> list[str]:
    """Git packs that nothing leads to, where all that was saved is committed."""
    repo = place.repository(at.store)
    if not os.path.isdir(repo.path) or Commit().owed(at.store, place.around()):
        return []
    try:
        return packing.unreached(repo, time.time() - limits.GC_AGE_SECONDS)
    except CommitError as failure:
        terminal.note(f"git packs stay: {failure.message}")
        return []


def _document(found: Garbage, git: list[str], *, removed: bool) -> dict[str, Json]:
    return {
        "removed": removed,
        "bytes": sum(one.size for one in found.orphans),
        "orphans": [dict(one._asdict()) for one in found.orphans],
        "git": list(git),
        "unknown": found.unknown or None,
    }


def _print(at: place.Place, found: Garbage, git: list[str], *, removed: bool) -> None:
    for one in found.orphans[: limits.LISTED]:
        path = os.path.relpath(one.path, at.store.path)
        terminal.say(f"{one.what:14}  {terminal.size(one.size):>8}  {path}")
    more = len(found.orphans) - limits.LISTED
    if more > 0:
        terminal.say(f"and {more} more")
    counts = Counter(one.what for one in found.orphans) + Counter(["git leftover"] * len(git))
    told = ", ".join(terminal.counted(count, what) for what, count in counts.items()) or "nothing"
    size = terminal.size(sum(one.size for one in found.orphans))
    terminal.say(f"removed {told}, {size}" if removed else f"{told} can go, {size}")
    if (found.orphans or git) and not removed:
        terminal.advise("`savepoint gc --yes` removes it")
    if found.unknown:
        terminal.note(f"packs and snapshots stay: {found.unknown}")
