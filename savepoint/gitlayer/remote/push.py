"""Pushing an instance's branch: look, compare, push a step, look again, until all is there.

What the remote has is never taken from what a push says, only from looking. So a run that dies
anywhere is continued by the next, and nothing is pushed twice.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import (
    CommitError,
    PushRefusedError,
    RemoteDivergedError,
    RemoteUnreachableError,
    SavepointError,
)
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor
from savepoint.gitlayer.remote import pushed, tip
from savepoint.store import config, trusted
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.remote.tip import Tips
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

    Progress = Callable[[int, int], None]  # bytes pushed, of how many

_LISTING_BYTES = 256 * limits.MIB  # of the names of all objects of a backlog


class Step(NamedTuple):
    """What one push takes along: everything up to a commit."""

    commit: str
    size: int  # bytes on our disk


def push(remote: Remote, paths: InstancePaths, progress: Progress) -> bool:
    """Push what the remote lacks, and remember that it has it. False where the time was too short
    for all of it: the rest is another run's.

    Raises RolledBackError, RemoteDivergedError, PushRefusedError, RemoteUnreachableError,
    CommitError, BusyError, DiskError.
    """
    done = 0
    tips = _looked(remote, paths)
    while tips.ours is not None and tips.remote != tips.ours:
        step, left = next_step(remote.repo, tips.remote, tips.ours)
        progress(done, done + left)
        refused = _pushed(remote, paths, step)
        before, tips = tips.remote, _looked(remote, paths)
        if tips.remote == before:
            raise refused
        done += step.size
        if tips.remote != tips.ours and _is_late(remote.repo):
            return False
    return True


def _pushed(remote: Remote, paths: InstancePaths, step: Step) -> SavepointError:
    """Push a step. What to raise if the remote then has nothing new: a refusal can mean as well
    that the git of a worker that died was faster. Raises RemoteUnreachableError.
    """
    try:
        remote.push(paths.slug, step.commit, step.size)
    except (PushRefusedError, RemoteDivergedError) as refused:
        return refused
    return PushRefusedError(f"{remote.url.shown} took {step.commit}, and does not have it")


def next_step(repo: Repository, start: str | None, end: str) -> tuple[Step, int]:
    """What to push next of the commits after `start`, up to `end`: as many whole ones as stay
    below PUSH_STEP_BYTES, at least one. And the bytes of all of them.

    Raises CommitError, DiskError.
    """
    wanted = (end, *([f"^{start}"] if start else []))
    total = int(repo.run("rev-list", "--objects", "--disk-usage", *wanted))
    if total <= limits.PUSH_STEP_BYTES:
        return Step(end, total), total
    step: Step | None = None
    done = 0
    leading_on = _leading_on(repo, wanted)
    for commit, size in _sizes(repo, wanted):
        done += size
        if step is not None and done > limits.PUSH_STEP_BYTES:
            break
        if commit in leading_on:
            step = Step(commit, done)
    if step is None:
        raise CommitError(f"git lists no commit up to {end}")
    return step, total


def _looked(remote: Remote, paths: InstancePaths) -> Tips:
    """What the remote has, if it may be pushed to; and that is remembered."""
    tips = tip.look(remote, paths)
    tip.check(remote, paths, tips)
    if tips.remote is None or _is_noted(remote, paths, tips.remote):
        return tips
    try:
        at = cursor.at_commit(remote.repo, tips.remote)
    except CommitError:
        if tips.remote == tips.ours:
            raise
        return tips  # no savepoint: somebody else's, which was accepted; ours is pushed over it
    with Lock(paths.store.lock, remote.repo.deadline):
        if config.load(paths.store).remote != remote.url.text:
            raise RemoteUnreachableError(f"{remote.url.shown} is no longer the remote")
        pushed.note(remote.repo, paths, at)
    return tips


def _is_noted(remote: Remote, paths: InstancePaths, commit: str) -> bool:
    head = trusted.load(paths)
    known = head is None or (head.remote_tip, head.recreated) == (commit, False)
    return known and pushed.commit(remote.repo, paths.slug) == commit


def _is_late(repo: Repository) -> bool:
    """Is there no time for another step?"""
    return time.monotonic() + limits.PUSH_STEP_SECONDS > repo.deadline


def _leading_on(repo: Repository, wanted: tuple[str, ...]) -> set[str]:
    """The commits that descend from where the remote is: where an accepted foreign tip was joined,
    ours from before do not.
    """
    only = ["--ancestry-path"] if len(wanted) > 1 else []
    listed = repo.run("rev-list", *only, *wanted, limit=_LISTING_BYTES)
    return set(listed.decode("ascii", "replace").split())


def _sizes(repo: Repository, wanted: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Each commit, parents first, with the bytes of what it has and those before it have not."""
    order = ("--topo-order", "--reverse", "--objects", "--in-commit-order")
    listing = repo.run("rev-list", *order, *wanted, limit=_LISTING_BYTES).split(b"\n")[:-1]
    names = b"".join(
        line[: line.find(b" ")] + b"\n" if b" " in line else line + b"\n" for line in listing
    )
    asked = "--batch-check=%(objectsize:disk)"
    sizes = repo.run("cat-file", asked, "--buffer", stdin=names, limit=_LISTING_BYTES).split()
    commit, total = "", 0
    for line, size in zip(listing, sizes, strict=True):
        if b" " not in line:  # a commit; trees and blobs come with their path
            if commit:
                yield commit, total
            commit, total = line.decode(), 0
        total += int(size)
    if commit:
        yield commit, total
