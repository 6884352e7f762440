"""`savepoint sync --accept-remote`: for each instance of the store, what its branch has now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from savepoint.cli import place, terminal
from savepoint.core.errors import KeyFileError, UsageError
from savepoint.gitlayer import repository
from savepoint.gitlayer.remote import accept as remotes
from savepoint.gitlayer.remote import remote_url
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import journal, savepoints
from savepoint.store.keys import agekeys
from savepoint.store.locks import Lock
from savepoint.work import log, worker
from savepoint.work.kinds import for_git

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.gitlayer.remote.accept import Accepted
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths, Store


class Acceptance(NamedTuple):
    """What was accepted for one instance."""

    slug: str
    done: Accepted

    def to_json(self) -> Json:
        """As in `sync --json`."""
        return {
            "instance": self.slug,
            "what": self.done.what,
            "seq": self.done.record.seq if self.done.record else None,
            "problems": list(self.done.problems),
        }


def accept(at: place.Place, until: float) -> list[Acceptance]:
    """Go on from what the remote has, in every instance; what was done, and said.

    until: of time.monotonic(). What waits for its commit is committed first. Raises UsageError
    (there is no remote), BusyError, and what `accept` of the git layer raises.
    """
    if at.config.remote is None:
        hint = "`savepoint config remote URL` chooses one"
        raise UsageError("there is no remote to accept", hint=hint)
    around = place.around()
    first = [kind for kind in for_git() if kind.name in ("save", "commit")]

    def tell(done: worker.Done) -> None:
        log.told(at.store, done, around)

    for one in worker.try_now(at.store, first, around, until=until, tell=tell):
        if one.failure is not None:
            terminal.note(one.failure.message)
    with Lock(at.store.worker_lock, until), terminal.busy("asking the remote"):
        repo = Repository.of(at.store, around.environment, until)
        repository.ensure(repo)
        remote = Remote.of(repo, remote_url.parse(at.config.remote, "/"))
        return [_of(remote, paths) for paths in savepoints.instances(at.store)]


def _of(remote: Remote, paths: InstancePaths) -> Acceptance:
    now = int(time.time())
    done = remotes.accept(remote, paths, _identities(paths.store), now)
    if done is not remotes.NOTHING:
        journal.continuity(paths, now, f"accepted from {remote.url.shown}: {done.what}")
    for problem in done.problems:
        terminal.note(problem)
    return Acceptance(paths.slug, done)


def _identities(store: Store) -> list[Identity]:
    """Without a key, what is not encrypted can still be accepted."""
    try:
        return agekeys.identities(store)
    except KeyFileError:
        return []
