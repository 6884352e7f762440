"""The remote-tracking ref of an instance: how far the remote was when it was last read back.

Like the instance's own ref it is read by hand, and the record that it stands for from a cache.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import SavepointError
from savepoint.core.strict_json import dump, parse
from savepoint.gitlayer import cursor, repository
from savepoint.gitlayer.cursor import Cursor
from savepoint.store import durable, trusted
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_TRACKING = "refs/remotes/origin/savepoints"
_SHAPE = schema.members({"commit": schema.text, "seq": schema.count, "record": schema.text})


def commit(repo: Repository, slug: str) -> str | None:
    """The commit that the remote had; None where nothing was ever pushed. Raises DiskError,
    BrokenRefError.
    """
    return repository.read_ref(repo, f"{_TRACKING}/{slug}")


def read(repo: Repository, slug: str) -> Cursor | None:
    """The savepoint that the remote had; None where nothing was ever pushed.

    Raises CommitError, BrokenRefError, DiskError.
    """
    at = commit(repo, slug)
    if at is None:
        return None
    known = _cached(repo, slug)
    return known if known is not None and known.commit == at else cursor.at_commit(repo, at)


def note(repo: Repository, paths: InstancePaths, at: Cursor) -> None:
    """The remote was read back, and its branch leads to `at`. A trusted head that was made anew
    counts again: the remote was asked.

    The caller holds the store lock. Raises DiskError.
    """
    head = trusted.load(paths)
    if head is not None and (head.remote_tip, head.recreated) != (at.commit, False):
        trusted.save(paths, head._replace(remote_tip=at.commit, recreated=False))
    path = os.path.join(repo.path, _TRACKING, paths.slug)
    durable.make_directories(os.path.dirname(path))
    durable.replace_cache(repo.ours(_cache(paths.slug)), dump(dict(at._asdict())) + b"\n")
    durable.replace(path, f"{at.commit}\n".encode())


def forget(repo: Repository, paths: InstancePaths, tip: str | None = None) -> None:
    """The owner has another remote, or accepts what this one has now: what was seen there counts no
    more. tip: what it has now, if that is no savepoint of ours yet. The caller holds the store
    lock. Raises DiskError.
    """
    durable.remove(os.path.join(repo.path, _TRACKING, paths.slug))
    head = trusted.load(paths)
    if head is not None and head.remote_tip != tip:
        trusted.save(paths, head._replace(remote_tip=tip))


def _cache(slug: str) -> str:
    return f"{slug}.pushed"


def _cached(repo: Repository, slug: str) -> Cursor | None:
    try:
        data = read_bounded(repo.ours(_cache(slug)), limits.GIT_FILE_BYTES)
        value = parse(data or b"")
        _SHAPE(value, "cache of the remote-tracking ref")
    except SavepointError:
        return None  # never evidence
    assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
    return Cursor(**value)  # type: ignore[arg-type]  # _SHAPE
