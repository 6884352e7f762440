"""`fsck --repair`, in the order of what is sure: the repository, what the remote has and we have
not, what git has and the disk has not; then what nobody has is accepted, and the rest committed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core.errors import DiskError, RemoteUnreachableError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import counted
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer import cursor, history, repository
from savepoint.gitlayer.commits import commit, plan
from savepoint.gitlayer.remote import adopt, pushed, remote_url, tip
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repair import renew, restore
from savepoint.gitlayer.witness import check
from savepoint.gitlayer.witness.held import held
from savepoint.gitlayer.witness.witness import identities_of
from savepoint.store import config, durable, index, journal, savepoints, trusted
from savepoint.store.files import names_in
from savepoint.store.fsck import repair
from savepoint.store.keys import keyring
from savepoint.store.locks import Lock
from savepoint.store.witness import witness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.gitlayer.remote.tip import Tips
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths, Store


class Mended(NamedTuple):
    """Something that was done, for people."""

    slug: str  # of an instance; empty: of the store
    seq: int | None  # of the record that says so, or that it is about
    what: str


class Outcome(NamedTuple):
    """What became of a repair."""

    done: tuple[Mended, ...]
    problems: tuple[SavepointError, ...]  # what stood in its way; the rest was done all the same


def mend(repo: Repository, store: Store, now: int, lock_until: float) -> Outcome:
    """Repair all of a store that can be. now: Unix seconds. lock_until: time.monotonic() until
    which the store lock is waited for. Raises BusyError, DiskError, KeyFileError.
    """
    mender = _Mender(repo, store, now)
    mender.repository()
    for paths in mender.instances:
        mender.instance(paths)
    accepted = [
        Mended(one.slug, one.record.seq, one.what) for one in repair.repair(store, now, lock_until)
    ]
    mender.done += accepted
    for paths in mender.instances:
        mender.commit(paths)
    return Outcome(tuple(mender.done), tuple(mender.problems))


class _Mender:
    def __init__(self, repo: Repository, store: Store, now: int) -> None:
        self.done: list[Mended] = []
        self.problems: list[SavepointError] = []
        self._repo = repo
        self._store = store
        self._now = now
        self._identities = identities_of(store)
        self._tips: dict[str, str] = {}  # slug → commit, at the remote
        self._remote = self._reached()
        self.instances = [store.instance(slug) for slug in _slugs(repo, store, self._tips)]

    def repository(self) -> None:
        """The repository is whole, and has all that the remote has of it."""
        unreachable = self._remote is None and self._is_pushed()
        try:
            with Lock(self._store.lock, self._repo.deadline):
                if repository.finish_exchange(self._repo):
                    what = "the repository that a killed repair had made took its place"
                    self.done.append(Mended("", None, what))
            if not self.instances or renew.is_whole(self._repo, self.instances):
                return
            if unreachable:
                lost = "the repository is damaged, and the remote that could help is not reached"
                raise RemoteUnreachableError(lost, hint="run `savepoint fsck --repair` again then")
            found = renew.renew(self._repo, self.instances, self._remote, self._tips)
        except SavepointError as failure:
            self.problems.append(failure)
            return
        self.done += [Mended("", None, what) for what in found.what]
        for one in found.lost:
            self._tell_lost(one)

    def instance(self, paths: InstancePaths) -> None:
        """What the remote has comes to git, what git has to the disk."""
        for step in (self._adopt, self._records, self._document, self._content, self._left_out):
            try:
                step(paths)
            except SavepointError as failure:
                self.problems.append(failure)

    def commit(self, paths: InstancePaths) -> None:
        """What is queued, in order."""
        try:
            while True:
                with Lock(self._store.lock, self._repo.deadline):
                    made = commit.commit(paths, self._repo.env, self._repo.deadline)
                if made is None:
                    return
                for seq, name in made.commits:
                    self.done.append(Mended(paths.slug, seq, f"committed as {name}"))
                if not made.left:
                    return
        except SavepointError as failure:
            self.problems.append(failure)

    def _reached(self) -> Remote | None:
        """The remote, if it is configured and answers."""
        try:
            url = config.load(self._store).remote
            if url is None:
                return None
            remote = Remote.of(self._repo, remote_url.parse(url, "/"))
            self._tips = remote.tips()
        except SavepointError as failure:
            self.problems.append(failure)
            return None
        return remote

    def _is_pushed(self) -> bool:
        heads = [trusted.load(paths) for paths in self.instances]
        return any(head is not None and head.remote_tip is not None for head in heads)

    def _adopt(self, paths: InstancePaths) -> None:
        """Records that only the remote has. A trusted head that is missing, or was made anew, is
        good again where the remote tells that nothing newer exists.
        """
        if self._remote is None or paths.slug not in self._tips:
            return
        if not os.path.lexists(self._repo.path):
            if not is_lost(self._store):
                return
            repository.ensure(self._repo)
        tips = tip.look(self._remote, paths)
        if tips.remote is None:
            return
        durable.make_directories(os.path.dirname(paths.index_file))
        if self._is_ahead(tips, paths):
            done = adopt.adopt(self._remote, paths, self._identities)
            what = f"taken over from the remote: {counted(done.records, 'record')}"
            self.done.append(Mended(paths.slug, None, what))
        tip.check(self._remote, paths, tip.look(self._remote, paths))
        self._settle_head(paths)

    def _is_ahead(self, tips: Tips, paths: InstancePaths) -> bool:
        assert self._remote is not None  # noqa: S101  # `_adopt` saw to it; for the type checker
        tip.bring(self._remote, paths, tips)
        if tips.ours is None:
            return True
        remote = str(tips.remote)
        return not history.leads_to(self._repo, remote, tips.ours) and history.leads_to(
            self._repo, tips.ours, remote
        )

    def _settle_head(self, paths: InstancePaths) -> None:
        with Lock(self._store.lock, self._repo.deadline):
            head = trusted.load(paths)
            last = index.settle(paths).last
            if last is None or not (head is None or head.recreated):
                return
            if adopt.seen(paths, last):
                what = "the trusted head is good again: the remote has nothing newer"
                self.done.append(Mended(paths.slug, last.seq, what))

    def _records(self, paths: InstancePaths) -> None:
        if not os.path.lexists(self._repo.path):
            return
        with Lock(self._store.lock, self._repo.deadline):
            durable.make_directories(os.path.dirname(paths.index_file))
            count = restore.records(self._repo, paths)
        if count:
            self.done.append(
                Mended(paths.slug, None, f"{counted(count, 'record')} came back from git")
            )

    def _document(self, paths: InstancePaths) -> None:
        with Lock(self._store.lock, self._repo.deadline):
            if os.path.lexists(self._repo.path) and restore.document(self._repo, paths):
                what = f"{os.path.basename(paths.bootstrap)} came back from git"
                self.done.append(Mended(paths.slug, None, what))

    def _content(self, paths: InstancePaths) -> None:
        """Snapshots and packs that are damaged on disk."""
        report = witness.verify_local(paths)
        bad = {
            one.seq
            for one in report.savepoints
            if any(
                finding.verdict is Verdict.TAMPERED
                for finding in one.witnesses["local"].findings
                if finding.rule in _CONTENT_RULES
            )
        }
        at = cursor.read(self._repo, paths.slug) if bad else None
        if at is None:
            return
        commits = history.by_record(self._repo, at.commit)
        for one in savepoints.records(paths).saves:
            if one.seq in bad and one.hash in commits:
                found = held(self._repo, commits[one.hash], self._identities)
                with Lock(self._store.lock, self._repo.deadline):
                    for path in restore.savepoint(found, paths, one):
                        what = f"{os.path.relpath(path, self._store.path)} came back from git"
                        self.done.append(Mended(paths.slug, one.seq, what))

    def _left_out(self, paths: InstancePaths) -> None:
        """A savepoint that was damaged when it was to be committed, and is whole again: the branch
        goes back to before it, and all since is committed anew. What was pushed stays.
        """
        with Lock(self._store.lock, self._repo.deadline):
            found = check.left_out(self._repo, paths)
            if found is None or not plan.is_whole(paths, found[0]):
                return
            one, before = found
            seen, head = pushed.read(self._repo, paths.slug), trusted.load(paths)
            if (seen.seq if seen else 0) >= one.seq or (head and head.remote_tip and not seen):
                return
            if before:
                adopt.move_ref(self._repo, paths, before[-1].commit)
            else:
                durable.remove(os.path.join(self._repo.path, repository.branch(paths.slug)))
        what = "it is whole again: the branch begins anew before it"
        self.done.append(Mended(paths.slug, one.seq, what))

    def _tell_lost(self, one: renew.Lost) -> None:
        error = f"commit {one.commit} is lost; it is committed again"
        self.done.append(Mended(one.slug, one.seq, error))
        with suppress(DiskError):  # logs for people
            journal.became(self._store.instance(one.slug), self._now, one.seq, "COMMIT_LOST", error)


_CONTENT_RULES = ("VERIFY-5", "VERIFY-6", "VERIFY-7", "VERIFY-8")


def is_lost(store: Store) -> bool:
    """Is there no record of any instance, as where only its keys were restored?"""
    return not any(savepoints.records(paths).all for paths in savepoints.instances(store))


def of_keys(store: Store, tips: Mapping[str, str]) -> set[str]:
    """The instances that the remote has, and this store only the keys of. A store with records
    needs no other: bootstrap has left them at the remote. Raises KeyFileError, DiskError.
    """
    return keyring.slugs(store) & tips.keys() if is_lost(store) else set()


def _slugs(repo: Repository, store: Store, tips: Mapping[str, str]) -> list[str]:
    """The instances that have a folder or a branch, or of which everything but the keys is lost."""
    folders = (
        os.path.dirname(store.instance("x").path),
        os.path.join(repo.path, repository.BRANCHES),
    )
    names = {name for one in folders if os.path.isdir(one) for name in names_in(one)}
    return sorted({name for name in names if "." not in name} | of_keys(store, tips))
