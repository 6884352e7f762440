"""What became of savepoints in git: committed, pushed, or why not yet.

Three things tell it: the instance's ref, the remote-tracking ref, and the last attempts at a commit
and a push.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor, history
from savepoint.gitlayer.remote import pushed
from savepoint.store import border, config, index
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from savepoint.core.record import Record
    from savepoint.gitlayer.cursor import Cursor
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths
    from savepoint.work.jobs import Surroundings
    from savepoint.work.outbox import Attempt

QUEUED_FOR_COMMIT = "QUEUED_FOR_COMMIT"
COMMITTED = "COMMITTED_LOCALLY"
QUEUED_FOR_PUSH = "QUEUED_FOR_PUSH"
PUSH_REFUSED = "PUSH_REFUSED"
REMOTE_DIVERGED = "REMOTE_DIVERGED"
PUSHED = "PUSHED_TO_GITHUB"

KINDS = ("commit", "push")  # of the jobs that layer 2 waits for
# Error class of the last attempt at a push → its word. After any other the next may succeed.
_WORDS = {
    "push_refused": PUSH_REFUSED,
    "remote_diverged": REMOTE_DIVERGED,
    "rolled_back": REMOTE_DIVERGED,
}


class Layer2(NamedTuple):
    """Of one savepoint."""

    status: str
    commit: str | None  # None: it has none, or git cannot be asked
    error: str  # of the last attempt at what is still to be done; empty where there was none


def layer2(
    paths: InstancePaths, records: Sequence[Record], around: Surroundings
) -> dict[int, Layer2]:
    """Sequence → layer 2 of these savepoints of an instance.

    Raises MalformedError, DiskError (the config, the index).
    """
    standing = _Standing.of(paths, around)
    commits = standing.commits(records)
    return {
        one.seq: Layer2(status, commits.get(one.hash), error)
        for one in records
        for status, error in [standing.tell(one, one.hash in commits)]
    }


def status_of(paths: InstancePaths, one: Record, around: Surroundings) -> tuple[str, str]:
    """Status and error of the newest savepoint, where its commit is known already."""
    standing = _Standing.of(paths, around)
    return standing.tell(one, standing.at.leads_to(one))


def is_sent(paths: InstancePaths, seq: int, around: Surroundings) -> bool:
    """Has the remote what the instance's own ref had as `seq`? Both numbers are git's own."""
    sent = _read(pushed.read, around.repository(paths.store), paths.slug)
    return sent is not None and sent.seq >= seq


def word_of(failure: str) -> str:
    """The status of what is committed and not pushed, by the error class of the last attempt at it;
    empty where there was none.
    """
    return _WORDS.get(failure, QUEUED_FOR_PUSH)


class _Reach:
    """How far a ref has come, in the index as it is now. A number alone says nothing: an index that
    was cut and gone on from has other records of numbers that git has.
    """

    def __init__(self, paths: InstancePaths, at: Cursor | None) -> None:
        self.at = at
        self._paths = paths

    @cached_property
    def stands(self) -> bool:
        """Is the record that the ref is at one of the index? Then so are all before it."""
        if self.at is None:
            return False
        end = index.last(self._paths)
        return index.holds(self._paths, end, self.at.seq, self.at.record)

    def is_beyond(self, one: Record) -> bool:
        """Has it passed that number, whatever record has it?"""
        return self.at is not None and one.seq <= self.at.seq

    def leads_to(self, one: Record) -> bool:
        """Is that record the ref's, or before it in the index?"""
        if self.at is None or one.seq > self.at.seq:
            return False
        return one.hash == self.at.record or (one.seq < self.at.seq and self.stands)


class _Standing:
    """How far an instance has come."""

    def __init__(
        self, paths: InstancePaths, repo: Repository, at: _Reach, sent: _Reach, *, has_remote: bool
    ) -> None:
        self.at = at
        self._sent = sent
        self._paths = paths
        self._repo = repo
        self._has_remote = has_remote
        self._known: dict[str, Attempt | None] = {}

    @classmethod
    def of(cls, paths: InstancePaths, around: Surroundings) -> _Standing:
        repo = around.repository(paths.store)
        at, sent = (
            _Reach(paths, _read(one, repo, paths.slug)) for one in (cursor.read, pushed.read)
        )
        has_remote = config.load(paths.store).remote is not None
        return cls(paths, repo, at, sent, has_remote=has_remote)

    def commits(self, records: Sequence[Record]) -> dict[str, str | None]:
        """Record hash → commit, of those that are committed; None: git does not tell which. What
        lies behind the border was fetched from no branch, but is on one.
        """
        reached = [one for one in records if self.at.is_beyond(one)]
        named = _commits(self._repo, self.at.at, reached)
        if named is not None and all(one.hash in named for one in reached):
            return {**named}
        before = border.load(self._paths)
        unnamed = {
            one.hash: None
            for one in reached
            if self.at.leads_to(one) and (named is None or one.seq < before)
        }
        return {**unnamed, **(named or {})}

    def tell(self, one: Record, is_committed: bool) -> tuple[str, str]:  # noqa: FBT001  # of it
        """Status and error of a savepoint."""
        if not is_committed:
            return QUEUED_FOR_COMMIT, self._why_not(one)
        if not self._has_remote:
            return COMMITTED, ""
        if self._sent.at is not None and (self._sent.at == self.at.at or self._sent.leads_to(one)):
            return PUSHED, ""
        attempt = self._attempt("push")
        return word_of(attempt.name if attempt else ""), _error(attempt)

    def _why_not(self, one: Record) -> str:
        if not self.at.is_beyond(one):
            return _error(self._attempt("commit"))
        return _SKIPPED if self.at.leads_to(one) else _ANOTHER

    def _attempt(self, kind: str) -> Attempt | None:
        if kind not in self._known:
            from savepoint.work import outbox  # sqlite3 costs a hook 5 ms

            job = Job(kind, self._paths.slug, None, 0)
            (self._known[kind],) = outbox.attempts(self._paths.store, [job])
        return self._known[kind]


def _error(attempt: Attempt | None) -> str:
    return attempt.error if attempt else ""


def _read(
    read: Callable[[Repository, str], Cursor | None], repo: Repository, slug: str
) -> Cursor | None:
    """None also where a ref or git is broken: fsck and doctor name that."""
    try:
        return read(repo, slug)
    except SavepointError:
        return None


# Later ones are committed, this one is not: a commit skips what is damaged on disk.
_SKIPPED = "no commit holds it: `savepoint verify` names what is damaged"
# An index that was cut or put back, and gone on from.
_ANOTHER = "git has another record of that number: run `savepoint fsck --repair`"


def _commits(repo: Repository, at: Cursor | None, records: list[Record]) -> dict[str, str] | None:
    """Record hash → commit, as the trailers say; None: git does not tell. It is asked once, and
    only if it must be.
    """
    if at is None or not records:
        return {}
    if [one.hash for one in records] == [at.record]:
        return {at.record: at.commit}
    try:
        found = history.by_record(repo, at.commit)
    except SavepointError:
        return None
    return {one.hash: found[one.hash] for one in records if one.hash in found}
