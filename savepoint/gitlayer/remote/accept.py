"""Going on from what the remote has now, as its owner asks for: `sync --accept-remote`.

Whatever was there before stays: what the remote lost is pushed again, what somebody else has put
there stays below our next commit, and where it has another history of our key (`fork`), its records
are taken and ours appended again as new ones. A signed record says that it was accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import record
from savepoint.core.errors import CommitError, MalformedError, RolledBackError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import counted
from savepoint.gitlayer import cursor, history
from savepoint.gitlayer.commits import joint
from savepoint.gitlayer.commits.joint import Parents
from savepoint.gitlayer.commits.plan import has_commit
from savepoint.gitlayer.remote import adopt, fork, pushed, tip
from savepoint.gitlayer.remote.adopt import FORK, SAME, Relation
from savepoint.store import index, savepoints, trusted
from savepoint.store.keys import keyring
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.remote.tip import Tips
    from savepoint.store.index import Position, Tail
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths


class Accepted(NamedTuple):
    """What was done."""

    what: str  # for people
    record: Record | None  # that says so; None where nothing had to be accepted, or none can
    problems: tuple[str, ...] = ()  # savepoints that came back without their content, and why


NOTHING = Accepted("the remote has nothing that is not ours", None)


def accept(remote: Remote, paths: InstancePaths, identities: list[Identity], now: int) -> Accepted:
    """Let our branch lead on from what the remote has. now: Unix seconds; identities: what opens
    encrypted content.

    Raises RemoteUnreachableError, RemoteDivergedError (what it sends is unsound), KeyFileError,
    RolledBackError (our index lacks records that were seen), CommitError, BusyError, DiskError.
    """
    tips = tip.look(remote, paths)
    if tips.remote is None:
        if tips.seen is None:
            return NOTHING
        return _forget(remote, paths, now, None, "what the emptied remote lost is pushed again")
    if not history.has(remote.repo, tips.remote):
        remote.fetch(paths.slug, tips.remote)
    if tips.ours is not None and history.leads_to(remote.repo, tips.remote, tips.ours):
        if not _went_back(remote, tips):
            return NOTHING
        at = cursor.at_commit(remote.repo, tips.remote)
        return _forget(remote, paths, now, at.record, "what the remote lost is pushed again")
    return _further(remote, paths, tips, identities, now)


def _went_back(remote: Remote, tips: Tips) -> bool:
    """Is what was seen there no longer there?"""
    before, at = tips.seen, tips.remote
    if before is None or at is None or before == at:
        return False
    return not history.has(remote.repo, before) or not history.leads_to(remote.repo, before, at)


def _forget(
    remote: Remote, paths: InstancePaths, now: int, tip_record: str | None, what: str
) -> Accepted:
    """The remote has nothing new; what it lost is no longer expected of it. A retired key signs no
    record of that.
    """
    one = None
    with Lock(paths.store.lock, remote.repo.deadline):
        if not index.is_retired(paths):
            end = End.of(paths)
            one = end.accepting(now, tip_record)
            end.append(one)
        pushed.forget(remote.repo, paths)
    return Accepted(what, one)


def _further(
    remote: Remote, paths: InstancePaths, tips: Tips, identities: list[Identity], now: int
) -> Accepted:
    """The remote has commits that we have not."""
    assert tips.remote is not None  # noqa: S101  # `accept` saw to it; for the type checker
    try:
        found = tip.read(remote, paths, tips.remote)
    except MalformedError:
        return _joined(remote, paths, tips, now, None)  # somebody else's
    relation = Relation.of(savepoints.records(paths).all, found.records)
    extends = tips.ours is None or history.leads_to(remote.repo, tips.ours, tips.remote)
    if extends and relation.how != FORK:
        done = adopt.adopt(remote, paths, identities)
        return Accepted(f"taken over: {counted(done.records, 'record')}", None, done.problems)
    if relation.how == SAME and fork.unfinished(remote.repo, paths, found) is None:
        return _joined(remote, paths, tips, now, found.last.hash)
    one, problems = fork.take(remote, paths, found, tips.ours, identities, now)
    return Accepted("its history was taken, and ours appended again", one, tuple(problems))


def _joined(
    remote: Remote, paths: InstancePaths, tips: Tips, now: int, tip_record: str | None
) -> Accepted:
    """Commits that hold no record of ours that we have not: they stay there, below our next."""
    with Lock(paths.store.lock, remote.repo.deadline):
        at = cursor.read(remote.repo, paths.slug)
        end = End.of(paths)
        if (at.seq if at else 0) < end.last_save:
            raise CommitError(f"savepoint {end.last_save} is not committed yet")
        one = end.accepting(now, tip_record)
        parents = Parents(at.commit if at else None, tips.remote)
        commit = joint.join(remote.repo, paths, [*end.lines, one.line], one, parents)
        end.append(one)
        adopt.move_ref(remote.repo, paths, commit)
        pushed.forget(remote.repo, paths, tips.remote)
    return Accepted("what somebody else has put there stays, below our commits", one)


class End(NamedTuple):
    """The end of an index, where an accept record goes. The store lock is held."""

    paths: InstancePaths
    lines: list[bytes]
    tail: Tail
    position: Position

    @classmethod
    def of(cls, paths: InstancePaths) -> End:
        """Raises RolledBackError (records that were seen are missing), KeyFileError (the key is
        retired), DiskError.
        """
        tail = index.settle(paths)
        head = index.believed(paths, tail.last, trusted.load(paths))
        position = index.next_position(paths, tail, head)
        if position.gap is not None:
            gap = position.gap
            raise RolledBackError(f"the index lacks the records {gap.first} to {gap.last}")
        return cls(paths, index.read(paths).split(b"\n")[:-1], tail, position)

    @property
    def last_save(self) -> int:
        """Sequence of the newest record that must have a commit; 0 where there is none."""
        records = savepoints.records(self.paths).all
        return max((one.seq for one in records if has_commit(self.paths, one)), default=0)

    def accepting(self, now: int, tip_record: str | None) -> Record:
        """The record that says it. Raises KeyFileError."""
        body: dict[str, Json] = {"reason": "remote", "first": None, "last": None}
        return record.make(
            "accept",
            seq=self.position.seq,
            prev=self.position.prev,
            timestamp=now,
            instance=index.instance(self.paths),
            seed=keyring.authority(self.paths),
            body={**body, "tip": tip_record},
        )

    def append(self, one: Record) -> None:
        """Make it durable, and known to the trusted head. Raises DiskError."""
        index.append(self.paths, self.tail, one.line)
        adopt.seen(self.paths, one)
