"""One savepoint out of a remote, into a store that has nothing: one commit, and what it holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import RolledBackError, SelectorError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import tree
from savepoint.gitlayer.remote import clone, theirs
from savepoint.gitlayer.repair import restore
from savepoint.gitlayer.witness.held import held
from savepoint.store import border, durable, trusted

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths
    from savepoint.store.trusted import TrustedHead


class Brought(NamedTuple):
    """An instance whose newest commits are here."""

    paths: InstancePaths
    commit: str
    records: list[Record]  # its index, every signature and link of it verified

    @property
    def newest(self) -> Record | None:
        """The newest savepoint; None: it was born and has none yet."""
        return next((one for one in reversed(self.records) if one.kind == "save"), None)


def bring(
    remote: Remote, paths: InstancePaths, tip: str, seen: TrustedHead | None = None
) -> Brought:
    """The newest savepoint's commit on the branch of an instance that ends at `tip`, what comes
    after it, and the index, which comes last: with it the instance is there. seen: what was known
    of it before it was lost; the remote must still have it.

    Raises MalformedError, TamperedError (it is not what the key has signed), RolledBackError,
    RemoteUnreachableError, RemoteDivergedError, CommitError, DiskError.
    """
    clone.bring(remote, paths.slug, tip, depth=1)
    found = theirs.read(remote.repo, paths.slug, tip)
    if seen is not None:
        _check_seen(found.records, seen, f"{remote.url.shown}: {paths.slug}")
    brought = Brought(paths, tip, found.records)
    _reach_newest(remote, brought)
    durable.make_directories(paths.snapshots)
    if tree.BOOTSTRAP in found.files:
        blob = found.files[tree.BOOTSTRAP]
        (data,) = tree.contents(remote.repo, [blob], limits.SMALL_DOCUMENT_BYTES)
        durable.replace(paths.bootstrap, data)
    if os.path.exists(os.path.join(remote.repo.path, "shallow")):
        newest = (brought.newest or found.last).seq
        durable.replace(paths.border, border.to_bytes(newest))
    head = seen or trusted.first(0, "0" * 64, recreated=False)
    trusted.make_folder(paths)
    trusted.save(paths, head.raised(found.last.seq, found.last.hash)._replace(remote_tip=tip))
    durable.replace(paths.index_file, found.data)
    return brought


def _reach_newest(remote: Remote, brought: Brought) -> None:
    """A RETIRE and an accept record have commits of their own, after that of the savepoint."""
    one = brought.newest
    after = sum(one is not None and other.seq > one.seq for other in brought.records)
    if after:
        remote.fetch(brought.paths.slug, brought.commit, depth=1 + after)


def _check_seen(records: list[Record], seen: TrustedHead, where: str) -> None:
    """An older copy of the branch, put in its place, is a whole good chain."""
    if seen.seq == 0:
        return
    last = records[-1]
    if last.seq < seen.seq:
        message = f"{where} ends at record {last.seq}; record {seen.seq} was seen"
        raise RolledBackError(message, hint=OLDER)
    if not any((one.seq, one.hash) == (seen.seq, seen.record) for one in records):
        message = f"{where} has another record {seen.seq} than the one that was seen"
        raise RolledBackError(message, hint=OLDER)


OLDER = "look for another copy of the remote; nothing was written here"


def put(remote: Remote, brought: Brought, one: Record, identities: list[Identity]) -> None:
    """Savepoint `one` stands in the store as it was saved, from the commit that was brought. Raises
    TamperedError (the commit does not hold it), KeyFileError (it does not open), CommitError,
    DiskError.
    """
    restore.savepoint(held(remote.repo, brought.commit, identities), brought.paths, one)


def fetch_older(
    remote: Remote, paths: InstancePaths, one: Record, identities: list[Identity]
) -> None:
    """A savepoint behind the border: the history up to it is fetched, and it is put in its place.
    Raises as `put`, SelectorError (the remote has no commit of it), RemoteUnreachableError.
    """
    from savepoint.gitlayer.repair import lookup

    remote.complete(paths.slug)
    found = lookup.commits_of(remote.repo, paths.slug, one.seq)
    if not found:
        raise SelectorError(f"{remote.url.shown} has no commit of savepoint {one.seq}")
    restore.savepoint(held(remote.repo, found[0], identities), paths, one)
