"""Taking over what the remote has of an instance and we have not: its records, and what they need.

Nothing of ours is lost by it. Two histories of one key are no matter of adoption: `accept`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core.errors import KeyFileError, RolledBackError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor, history, repository
from savepoint.gitlayer.remote import pushed, tip
from savepoint.gitlayer.repair import restore
from savepoint.gitlayer.witness.held import held
from savepoint.store import durable, index, savepoints, trusted
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.record import Record
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.remote.theirs import Theirs
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths
    from savepoint.store.trusted import TrustedHead

# How the records of a remote stand to ours.
SAME = "same"  # ours go at least as far
BEHIND = "behind"  # theirs go further, and what ours has beside them comes after them
FORK = "fork"  # another record of the same key with the same number


class Adopted(NamedTuple):
    """What was taken over."""

    records: int
    problems: tuple[str, ...]  # savepoints that came back without their content, and why


class Relation(NamedTuple):
    """How the records of two indexes of one key stand to each other."""

    how: str  # SAME, BEHIND, FORK
    lacking: list[Record]  # theirs that we have not
    own: list[Record]  # ours that they have not, signed

    @classmethod
    def of(cls, ours: list[Record], theirs: list[Record]) -> Relation:
        """`theirs` is verified; of `ours`, what nobody signed is none."""
        known, held_there = {one.hash for one in ours}, {one.hash for one in theirs}
        lacking = [one for one in theirs if one.hash not in known]
        own = [one for one in ours if one.hash not in held_there and one.signature_holds()]
        if not lacking:
            return cls(SAME, lacking, own)
        follows = not own or _follows(own[0], theirs[-1])
        names = {one.snapshot_file for one in lacking if one.kind == "save"}
        taken = any(one.kind == "save" and one.snapshot_file in names for one in own)
        return cls(BEHIND if follows and not taken else FORK, lacking, own)


def _follows(one: Record, last: Record) -> bool:
    """After it, or after records that both lack; nothing comes after a `retire`."""
    if last.kind == "retire":
        return False
    return one.seq > last.seq + 1 or (one.seq == last.seq + 1 and one.prev == last.hash)


def adopt(remote: Remote, paths: InstancePaths, identities: list[Identity]) -> Adopted:
    """Let index and ref have what the remote has, if that only goes further than ours.

    identities: what opens encrypted content. Raises RolledBackError (a fork, or nothing there),
    RemoteDivergedError, MalformedError, RemoteUnreachableError, KeyFileError, CommitError,
    BusyError, DiskError.
    """
    tips = tip.look(remote, paths)
    if tips.remote is None:
        raise RolledBackError(f"{remote.url.shown} has no branch of {paths.slug}")
    if not history.has(remote.repo, tips.remote):
        remote.fetch(paths.slug, tips.remote)
    if tips.ours is not None and not history.leads_to(remote.repo, tips.ours, tips.remote):
        if history.leads_to(remote.repo, tips.remote, tips.ours):
            return Adopted(0, ())
        raise _forked(remote)
    found = tip.read(remote, paths, tips.remote)
    lacking = _lacking(remote, paths, found)
    problems = content(remote.repo, paths, found, identities, lacking)
    with Lock(paths.store.lock, remote.repo.deadline):
        _lacking(remote, paths, found)  # a save may have been made meanwhile
        move_ref(remote.repo, paths, found.commit)
        restore.records(remote.repo, paths)
        seen(paths, found.last)
        pushed.note(remote.repo, paths, cursor.at_commit(remote.repo, found.commit))
    return Adopted(len(lacking), tuple(problems))


def _lacking(remote: Remote, paths: InstancePaths, found: Theirs) -> list[Record]:
    """Raises RolledBackError for a fork."""
    standing = Relation.of(savepoints.records(paths).all, found.records)
    if standing.how == FORK:
        raise _forked(remote)
    return standing.lacking


def content(
    repo: Repository,
    paths: InstancePaths,
    found: Theirs,
    identities: list[Identity],
    records: Iterable[Record],
) -> list[str]:
    """Bring back snapshots and packs of savepoints that are in the remote's history; what could
    not be, and why. Raises KeyFileError (there is no key to open them), DiskError.
    """
    commits = history.by_record(repo, found.commit)
    problems = []
    for one in records:
        if one.kind != "save":
            continue
        commit = commits.get(one.hash)
        if commit is None:
            problems.append(f"savepoint {one.seq} has no commit at the remote")
            continue
        try:
            restore.savepoint(held(repo, commit, identities), paths, one)
        except KeyFileError:
            raise
        except SavepointError as failure:
            problems.append(f"savepoint {one.seq}: {failure.message}")
    return problems


def move_ref(repo: Repository, paths: InstancePaths, commit: str) -> None:
    """The instance's ref leads to `commit`, which was made or fetched whole; durable. The caller
    holds the store lock. Raises DiskError.
    """
    path = os.path.join(repo.path, repository.branch(paths.slug))
    durable.make_directories(os.path.dirname(path))
    durable.replace(path, f"{commit}\n".encode())
    repository.sync(repo)


def seen(paths: InstancePaths, last: Record) -> bool:
    """The trusted head knows a record that was taken over, or made for that. Where the index lacks
    what it names, it stays, as after a save: no fork is covered by what comes after it. The caller
    holds the store lock. Raises DiskError.
    """
    head = trusted.load(paths)
    if head is not None and not index.holds(paths, index.settle(paths).last, head.seq, head.record):
        return False
    raise_head(paths, head, last)
    return True


def raise_head(paths: InstancePaths, head: TrustedHead | None, last: Record) -> None:
    """As `seen`, whatever the head names: the index holds a record that accepts its loss."""
    if head is None:
        head = trusted.first(0, last.hash, recreated=False)
        trusted.make_folder(paths)
    trusted.save(paths, head.raised(last.seq, last.hash)._replace(recreated=False))


def _forked(remote: Remote) -> RolledBackError:
    hint = "`savepoint sync --accept-remote` takes its history, and appends ours again"
    return RolledBackError(f"{remote.url.shown} has another history of this key", hint=hint)
