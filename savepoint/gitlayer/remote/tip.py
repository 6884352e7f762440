"""The tip of an instance's branch at the remote, against what we have and what was seen there.

Only one relation lets a push go on: the remote's tip is where it was last seen, or further, and our
branch leads on from it. A plain push would hide the others: it moves a branch that went back
forward again, and a plain fetch lets our memory go back with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import (
    MalformedError,
    RemoteDivergedError,
    RolledBackError,
    UnsupportedFormatError,
)
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import history, repository
from savepoint.gitlayer.remote import pushed, theirs
from savepoint.store import index, trusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.remote.theirs import Theirs
    from savepoint.store.layout import InstancePaths

    Comparison = Callable[[Remote, InstancePaths, "Tips"], None]  # raises what does not hold

_ACCEPT = "`savepoint sync --accept-remote` goes on from what it has now"


class Tips(NamedTuple):
    """The three that are compared; each a commit, or None."""

    ours: str | None  # the instance's ref
    remote: str | None  # the remote's branch, just asked
    seen: str | None  # the newest commit ever read back from it


def look(remote: Remote, paths: InstancePaths) -> Tips:
    """Ask the remote; before that, what was seen there, and ours after it: a push meanwhile makes
    neither look newer than the remote, nor the remote than ours. Raises RemoteUnreachableError,
    BrokenRefError, DiskError.
    """
    before = seen(remote, paths)
    theirs_now = remote.tip(paths.slug)
    return Tips(ours(remote, paths), theirs_now, before)


def ours(remote: Remote, paths: InstancePaths) -> str | None:
    """The newest commit of the instance here. Raises BrokenRefError, DiskError."""
    return repository.read_ref(remote.repo, repository.branch(paths.slug))


def seen(remote: Remote, paths: InstancePaths) -> str | None:
    """The newest commit that the remote is known to have had: from the trusted head, which lies
    outside the store, else from the remote-tracking ref.
    """
    head = trusted.load(paths)
    known = head.remote_tip if head is not None else None
    return known or pushed.commit(remote.repo, paths.slug)


def check(remote: Remote, paths: InstancePaths, tips: Tips) -> None:
    """May our branch be pushed? What the remote has and we have not is fetched to tell.

    Raises RolledBackError: the remote is emptied, replaced, went back, or is ahead of us;
    RemoteDivergedError: it has commits that are not ours; RemoteUnreachableError, CommitError,
    DiskError.
    """
    bring(remote, paths, tips)
    check_seen(remote, paths, tips)
    check_ours(remote, paths, tips)


def bring(remote: Remote, paths: InstancePaths, tips: Tips) -> None:
    """What the remote has is here, to be compared. Raises as `check`, but for RolledBackError."""
    if tips.remote is not None and not history.has(remote.repo, tips.remote):
        remote.fetch(paths.slug, tips.remote)


def check_seen(remote: Remote, paths: InstancePaths, tips: Tips) -> None:
    """What was once there is still there. Raises RolledBackError, CommitError, DiskError."""
    tip, before = tips.remote, tips.seen
    if before is None or before == tip:
        return
    where = remote.url.shown
    if tip is None:
        lost = f"{where} has no branch of {paths.slug} any more; it had {before}"
        raise RolledBackError(lost, hint=_ACCEPT)
    known = history.has(remote.repo, before)
    if known and history.leads_to(remote.repo, before, tip):
        return
    went_back = known and history.leads_to(remote.repo, tip, before)
    what = "went back to" if went_back else "was replaced: it has"
    raise RolledBackError(f"{where} {what} {tip}; it had {before}", hint=_ACCEPT)


def check_ours(remote: Remote, paths: InstancePaths, tips: Tips) -> None:
    """What is there comes before what we have. Raises RolledBackError (it is ahead of us),
    RemoteDivergedError, CommitError, DiskError.
    """
    if tips.remote is None:
        return
    if tips.ours is not None and history.leads_to(remote.repo, tips.remote, tips.ours):
        return
    if tips.ours is None or history.leads_to(remote.repo, tips.ours, tips.remote):
        raise _ahead(remote, paths, tips.remote)
    where = remote.url.shown
    raise RemoteDivergedError(f"{where} has commits of {paths.slug} that do not come from ours")


def _ahead(remote: Remote, paths: InstancePaths, tip: str) -> RolledBackError:
    """What to say of a tip that comes after ours: more savepoints of this instance, or whatever
    somebody else has put there.
    """
    where = remote.url.shown
    try:
        found = read(remote, paths, tip)
    except UnsupportedFormatError as newer:
        return RolledBackError(f"{where} has a newer format: {newer.message}", hint=newer.hint)
    except MalformedError as failure:
        foreign = f"{where} has commits that are no savepoints of {paths.slug}: {failure.message}"
        return RemoteDivergedError(foreign)
    end = index.read(paths).count(b"\n")
    return RolledBackError(
        f"{where} has records up to {found.last.seq} of {paths.slug}; here are {end}"
    )


def read(remote: Remote, paths: InstancePaths, tip: str) -> Theirs:
    """The savepoint that the remote's tip is. Raises as `theirs.read`."""
    return theirs.read(remote.repo, paths.slug, tip)
