"""A ref that was lost is put back from the commits that are there, as far as the index confirms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import CommitError, MalformedError
from savepoint.gitlayer import cursor, repository, tree
from savepoint.gitlayer.commits import message
from savepoint.gitlayer.cursor import Cursor
from savepoint.gitlayer.repository import BrokenRefError, NoAnswerError
from savepoint.store import durable, savepoints
from savepoint.store.files import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_LISTING_BYTES = 256 * limits.MIB  # of all objects, and of all commits


def rebuild_ref(repo: Repository, paths: InstancePaths) -> Cursor | None:
    """Let the ref name the newest whole commit of a record that the index holds. None, and the ref
    removed, where there is none: then nothing had been committed.

    The caller holds the store lock. Raises CommitError (the remote knows commits that are lost
    here: a new beginning would diverge from it), DiskError.
    """
    path = os.path.join(repo.path, repository.branch(paths.slug))
    remote = remote_tips(repo, paths.slug)
    found = sorted(confirmed(repo, paths), key=lambda one: (one.seq, one.commit in remote))
    while found and not _is_whole(repo, paths, found[-1]):
        found.pop()
    if found:
        durable.replace(path, f"{found[-1].commit}\n".encode())
        return found[-1]
    if remote:
        raise CommitError(
            f"no commit of {paths.slug} is left here; the remote has {remote[0]}",
            hint="run `savepoint fsck --repair`",
        )
    durable.remove(path)
    return None


def remote_tips(repo: Repository, slug: str) -> list[str]:
    """What the remotes' branches of an instance were when last seen."""
    folder = os.path.join(repo.path, "refs/remotes")
    refs = [f"refs/remotes/{name}/savepoints/{slug}" for name in names_in(folder)]
    return [commit for ref in refs if (commit := _readable_ref(repo, ref))]


def _readable_ref(repo: Repository, name: str) -> str | None:
    try:
        return repository.read_ref(repo, name)
    except BrokenRefError:
        return None


def confirmed(repo: Repository, paths: InstancePaths) -> Iterator[Cursor]:
    """The commits of records that the index holds."""
    known = {one.hash: one.seq for one in savepoints.records(paths).all}
    for commit, data in commits(repo):
        try:
            found = message.parse(data)
        except MalformedError:
            continue  # not of ours
        if known.get(found.record) == found.seq:
            yield Cursor(commit, found.seq, found.record)


def commits(repo: Repository) -> Iterator[tuple[str, bytes]]:
    """Id and bytes of every commit object that is there, whether a ref leads to it or not."""
    every = ("cat-file", "--batch-all-objects", "--unordered", "--buffer")
    listing = repo.run(*every, "--batch-check=%(objecttype) %(objectname)", limit=_LISTING_BYTES)
    lines = listing.decode("ascii", "replace").split("\n")
    names = [line.removeprefix("commit ") for line in lines if line.startswith("commit ")]
    yield from zip(names, tree.contents(repo, names, _LISTING_BYTES, b"commit"), strict=True)


def _is_whole(repo: Repository, paths: InstancePaths, found: Cursor) -> bool:
    """Are all objects of the commit's own tree there, and is its index ours?"""
    try:
        repo.run("rev-list", "--objects", "--no-walk", found.commit, limit=_LISTING_BYTES)
        cursor.compared(repo, paths, found)
    except NoAnswerError:
        raise
    except CommitError:
        return False
    return True
