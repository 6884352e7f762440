"""A fresh clone of an instance's branch, for as long as somebody looks at it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from savepoint.core.errors import DiskError
from savepoint.gitlayer import repository
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths


@contextmanager
def fresh(remote: Remote, paths: InstancePaths, tip: str) -> Iterator[Repository]:
    """A repository with nothing but what the remote's branch leads to, `tip` as it was last seen.

    Raises RemoteUnreachableError, RemoteDivergedError (what it sends is unsound), CommitError,
    DiskError.
    """
    name = f"{durable.TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    path = os.path.join(paths.store.scratch, name)
    durable.make_directories(paths.store.scratch)
    repo = remote.repo._replace(path=path)
    try:
        repository.ensure(repo)
        bring(remote._replace(repo=repo), paths.slug, tip)
        yield repo
    finally:
        durable.remove_folder(path)


def bring(remote: Remote, slug: str, tip: str, *, depth: int = 0) -> None:
    """Fetch the instance's branch, and let the same branch lead to it here, where there is none but
    one that a run which died has left. depth: as of Remote.fetch. Raises as `fresh`.
    """
    remote.fetch(slug, tip, depth=depth)
    path = os.path.join(remote.repo.path, repository.branch(slug))
    if os.path.lexists(path) and repository.read_ref(remote.repo, repository.branch(slug)) != tip:
        raise DiskError(f"{path} is there already")
    durable.make_directories(os.path.dirname(path))
    durable.replace(path, f"{tip}\n".encode())
