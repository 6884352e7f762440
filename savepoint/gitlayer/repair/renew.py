"""A damaged repository made good: indexes of packs anew, refs anew, at last a new repository from
the remote and from what is whole in the old one, which is set aside.

No commit is rewritten. What is lost here comes back from the remote; a commit that nobody has is
lost, and its savepoint committed again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core.errors import CommitError, DiskError, RolledBackError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor, history, packing, repository
from savepoint.gitlayer.remote import adopt, clone, pushed, theirs
from savepoint.gitlayer.remote.adopt import FORK, Relation
from savepoint.gitlayer.repair import repair
from savepoint.gitlayer.repository import NEXT, NoAnswerError
from savepoint.gitlayer.witness import check
from savepoint.store import durable, savepoints, trusted
from savepoint.store.layout import SET_ASIDE
from savepoint.store.locks import Lock
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from savepoint.gitlayer.cursor import Cursor
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_INDEX_BYTES = 1 << 30  # of a git pack's index
_RESCUED = "refs/savepoint/rescued"


class Lost(NamedTuple):
    """A commit that nobody has any more."""

    slug: str
    seq: int
    commit: str


class Renewed(NamedTuple):
    """What was done."""

    what: tuple[str, ...]  # for people
    lost: tuple[Lost, ...] = ()


def renew(
    repo: Repository, every: Sequence[InstancePaths], remote: Remote | None, tips: dict[str, str]
) -> Renewed:
    """Make the repository whole; nothing where it is. every: its instances, at least one; tips:
    slug → commit, what the remote has.

    Raises CommitError (git cannot be run), RolledBackError (the remote has another history),
    RemoteUnreachableError, BusyError, DiskError.
    """
    with Lock(every[0].store.lock, repo.deadline):
        repository.finish_exchange(repo)
        durable.remove_folder(repo.path + NEXT)  # of a run that was killed before it was needed
    if is_whole(repo, every):
        return Renewed(())
    if os.path.lexists(repo.path):
        with Lock(every[0].store.lock, repo.deadline):
            local = [paths for paths in every if paths.slug not in tips]
            ends = [(paths, [(at.commit, at.seq)]) for paths in local for at in _tip(repo, paths)]
            done = [*_indexes(repo), *_refs(repo, every)]
        if done and is_whole(repo, every):
            lost = [one for paths, end in ends for one in _lost(repo, paths, end)]
            return Renewed(tuple(done), tuple(lost))
    return _anew(repo, every, remote, tips)


def is_whole(repo: Repository, every: Sequence[InstancePaths]) -> bool:
    """Does git find it whole, with every ref? A store that never pushed needs none yet.

    Raises CommitError (git cannot be run).
    """
    if not os.path.lexists(repo.path):
        return not any(_seen(paths) for paths in every)
    found = check.own_check(repo)
    if any(one.result == "skipped" for one in found):
        raise NoAnswerError(found[0].detail)
    return all(one.result == "pass" for one in found) and all(_has_ref(repo, one) for one in every)


def _has_ref(repo: Repository, paths: InstancePaths) -> bool:
    """The ref leads to a commit of ours, or there never was one."""
    try:
        at = cursor.read(repo, paths.slug)
    except NoAnswerError:
        raise
    except CommitError:
        return False
    return history.has(repo, at.commit) if at else not repair.remote_tips(repo, paths.slug)


def _seen(paths: InstancePaths) -> str | None:
    head = trusted.load(paths)
    return head.remote_tip if head is not None else None


def _indexes(repo: Repository) -> list[str]:
    """A pack that is whole says by itself what its index must be."""
    done = []
    for name in packing.packs(repo):
        path = os.path.join(repo.path, "objects/pack", name)
        index = path.removesuffix(".pack") + ".idx"
        made = repo.ours("new.idx")
        durable.make_directories(os.path.dirname(made))
        result = repo.start("index-pack", "-o", made, path).finish(repo.deadline)
        new = evidence.read(made, _INDEX_BYTES)
        if result.ok and isinstance(new, bytes) and evidence.read(index, _INDEX_BYTES) != new:
            durable.replace(index, new)
            done.append(f"{os.path.basename(index)} was made anew from its pack")
        for leftover in (made, made.removesuffix(".idx") + ".rev"):
            durable.remove(leftover)
    return done


def _refs(repo: Repository, every: Sequence[InstancePaths]) -> list[str]:
    done = []
    for paths in every:
        try:
            if _has_ref(repo, paths):
                continue
            at = repair.rebuild_ref(repo, paths)
        except (NoAnswerError, DiskError):
            raise
        except SavepointError:
            continue  # the repository is made anew
        to = f"leads to commit {at.commit} again" if at else "was removed: it led nowhere"
        done.append(f"the branch of {paths.slug} {to}")
    return done


def _anew(
    repo: Repository, every: Sequence[InstancePaths], remote: Remote | None, tips: dict[str, str]
) -> Renewed:
    temporary = f"{repo.path}{durable.TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    new = repo._replace(path=temporary)
    try:
        repository.ensure(new)
        for paths in every:
            _from_remote(new, paths, remote, tips.get(paths.slug))
        with Lock(every[0].store.lock, repo.deadline):
            before = {paths.slug: _commits(repo, paths) for paths in every}
            for paths in every:
                _rescue(repo, new, paths, [one for one, _ in before[paths.slug]])
            lost = [one for paths in every for one in _lost(new, paths, before[paths.slug])]
            _exchange(repo, temporary)
            for paths in every:
                _note(repo, paths, tips.get(paths.slug))
    finally:
        durable.remove_folder(temporary)
    where = "the remote and what was whole" if tips else "what was whole"
    return Renewed((f"the repository was made anew from {where}",), tuple(lost))


def _from_remote(
    new: Repository, paths: InstancePaths, remote: Remote | None, tip: str | None
) -> None:
    """What the remote has of an instance, if it is ours."""
    if remote is None or tip is None:
        return
    clone.bring(remote._replace(repo=new), paths.slug, tip)
    found = theirs.read(new, paths.slug, tip)
    if Relation.of(savepoints.records(paths).all, found.records).how == FORK:
        hint = "`savepoint sync --accept-remote` takes its history, and appends ours again"
        raise RolledBackError(f"{remote.url.shown} has another history of this key", hint=hint)


def _commits(old: Repository, paths: InstancePaths) -> list[tuple[str, int]]:
    """The commits of an instance in the damaged repository with their records' sequences, oldest
    first, as far as git still knows them. Raises NoAnswerError, DiskError: git could not look, and
    what is not known to be lost must not be committed again.
    """
    found = check.branch(old, paths)
    if found.steps:
        return [(step.commit, step.said.seq) for step in found.steps]
    there = _or_nothing(lambda: [*repair.confirmed(old, paths)])
    known = {one.commit: one.seq for one in (*there, *_tip(old, paths))}
    return sorted(known.items(), key=lambda one: one[1])


def _tip(old: Repository, paths: InstancePaths) -> list[Cursor]:
    """Where the ref leads: a commit that is lost can still be named."""
    return _or_nothing(lambda: [cursor.read(old, paths.slug)])


def _or_nothing(look: Callable[[], list[Cursor | None]]) -> list[Cursor]:
    """What is found, nothing where it is damaged. Raises NoAnswerError, DiskError."""
    try:
        return [one for one in look() if one is not None]
    except (NoAnswerError, DiskError):
        raise
    except SavepointError:
        return []


def _rescue(old: Repository, new: Repository, paths: InstancePaths, commits: list[str]) -> None:
    """Let the branch lead to the newest commit that comes over whole, with all before it."""
    low, high = 0, len(commits)
    newest = None
    while low < high:
        middle = high - 1 if newest is None and high == len(commits) else (low + high) // 2
        if _take(old, new, commits[middle]):
            newest, low = commits[middle], middle + 1
        else:
            high = middle
    at = repository.read_ref(new, repository.branch(paths.slug))
    if newest is not None and (at is None or history.leads_to(new, at, newest)):
        adopt.move_ref(new, paths, newest)


def _take(old: Repository, new: Repository, commit: str) -> bool:
    options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet")
    refspec = f"{commit}:{_RESCUED}/{commit}"
    result = new.start("fetch", *options, old.path, refspec).finish(new.deadline)
    if not result.ok and (hindered := repository.hindrance(result)):
        raise hindered  # it may be whole
    return result.ok


def _lost(new: Repository, paths: InstancePaths, commits: list[tuple[str, int]]) -> list[Lost]:
    return [Lost(paths.slug, seq, one) for one, seq in commits if not history.has(new, one)]


def _exchange(repo: Repository, temporary: str) -> None:
    """The old one is set aside: what is damaged may be worth looking at. After a kill in between
    the next run puts the new one in its place.
    """
    durable.publish_folder(temporary, repo.path + NEXT)
    if os.path.lexists(repo.path):
        durable.publish_folder(repo.path, f"{repo.path}{SET_ASIDE}{os.urandom(8).hex()}")
    repository.finish_exchange(repo)


def _note(repo: Repository, paths: InstancePaths, tip: str | None) -> None:
    """The remote-tracking ref, which the new repository has not."""
    if tip is not None:
        pushed.note(repo, paths, cursor.at_commit(repo, tip))
