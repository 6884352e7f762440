"""What became of savepoints in git: committed, pushed, or why not yet.

Three things tell it: the instance's ref, the remote-tracking ref, and the last attempts at a commit
and a push.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor, history
from savepoint.gitlayer.remote import pushed
from savepoint.store import border, config
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

    Raises MalformedError, DiskError (the config).
    """
    standing = _Standing.of(paths, around)
    committed = [one for one in records if one.seq <= standing.committed]
    commits = _commits(around.repository(paths.store), standing.at, committed)
    there = {one.seq for one in committed if commits is None or one.hash in commits}
    skipped = {one.seq for one in committed} - there
    if skipped:
        first = border.load(paths)  # what lies behind it was fetched from no branch, but is on one
        skipped = {seq for seq in skipped if seq >= first}
    return {
        one.seq: Layer2(status, (commits or {}).get(one.hash), error)
        for one in records
        for status, error in [_SKIPPED if one.seq in skipped else standing.tell(one.seq)]
    }


def status_of(paths: InstancePaths, seq: int, around: Surroundings) -> tuple[str, str]:
    """Status and error of one savepoint, where its commit is known already."""
    return _Standing.of(paths, around).tell(seq)


def word_of(attempt: Attempt | None) -> str:
    """The status of what is committed and not pushed, after the last attempt at it."""
    return _WORDS.get(attempt.name, QUEUED_FOR_PUSH) if attempt else QUEUED_FOR_PUSH


class _Standing:
    """How far an instance has come."""

    def __init__(
        self, paths: InstancePaths, at: Cursor | None, sent: Cursor | None, *, has_remote: bool
    ) -> None:
        self.at = at
        self.committed = at.seq if at else 0
        self._sent = sent.seq if sent else 0
        self._paths = paths
        self._has_remote = has_remote
        self._known: dict[str, Attempt | None] = {}

    @classmethod
    def of(cls, paths: InstancePaths, around: Surroundings) -> _Standing:
        repo = around.repository(paths.store)
        at, sent = (_read(one, repo, paths.slug) for one in (cursor.read, pushed.read))
        has_remote = config.load(paths.store).remote is not None
        return cls(paths, at, sent, has_remote=has_remote)

    def tell(self, seq: int) -> tuple[str, str]:
        """Status and error of a savepoint."""
        if seq > self.committed:
            return QUEUED_FOR_COMMIT, _error(self._attempt("commit"))
        if not self._has_remote:
            return COMMITTED, ""
        if seq <= self._sent:
            return PUSHED, ""
        attempt = self._attempt("push")
        return word_of(attempt), _error(attempt)

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
_SKIPPED = (QUEUED_FOR_COMMIT, "no commit holds it: `savepoint verify` names what is damaged")


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
