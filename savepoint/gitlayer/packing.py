"""The git packs of our repository: one a commit, until a few large ones are made of them.

600 packs cost a push and a look at history ten times what one costs; a save they cost nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.gitlayer import repository
from savepoint.store import durable
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

_LISTING_BYTES = 256 * limits.MIB  # of all ids, and of one index
_IDS = 8 + 256 * 4  # where the ids of an index begin
_SETTINGS = ("pack.window=0", "pack.threads=1", "repack.writeBitmaps=false")
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))


def packs(repo: Repository) -> list[str]:
    """The names of its packs."""
    try:
        names = os.listdir(os.path.join(repo.path, "objects/pack"))
    except OSError:
        return []
    return sorted(name for name in names if name.startswith("pack-") and name.endswith(".pack"))


def unreached(repo: Repository, before: float) -> list[str]:
    """The packs, last written before that moment (Unix seconds), none of whose objects a ref leads
    to: a run that was killed between its pack and its ref leaves one (anomalyco/opencode#14811).

    Only where every record is committed: else they may be what a lost ref is put back from. Raises
    CommitError (a ref leads nowhere), MalformedError, DiskError.
    """
    options = ("--objects", "--all", "--no-object-names")
    reached = {
        bytes.fromhex(one.decode("ascii"))
        for one in repo.run("rev-list", *options, limit=_LISTING_BYTES).split()
    }
    return [
        name
        for name in packs(repo)
        if os.stat(_file(repo, name)).st_mtime < before
        and (ids := _objects(_file(repo, name).removesuffix(".pack") + ".idx"))
        and not ids & reached
    ]


def remove(repo: Repository, name: str) -> None:
    """Remove a pack, its index first: what is not in an index is looked for by nobody. Raises
    DiskError.
    """
    for ending in (".idx", ".rev", ".pack"):
        durable.remove(_file(repo, name.removesuffix(".pack") + ending))


def _file(repo: Repository, name: str) -> str:
    return os.path.join(repo.path, "objects/pack", name)


def _objects(index: str) -> set[bytes]:
    """The ids in the index of a pack; none where it is not of version 2 (gitformat-pack)."""
    data = read_bounded(index, _LISTING_BYTES) or b""
    if not data.startswith(b"\xfftOc\0\0\0\x02"):
        return set()
    count = int.from_bytes(data[_IDS - 4 : _IDS])
    return {data[_IDS + at * 20 : _IDS + at * 20 + 20] for at in range(count)}


def join(repo: Repository) -> None:
    """Make one pack of the small ones, so that each that is left has twice the objects of the next.

    Nobody else needs to wait for it, nor a commit that is made meanwhile. Every object of the old
    packs is in the new one, whether a ref leads to it or not; the new one has its name before the
    first old one goes; and a git that misses an object looks for new packs.
    Raises CommitError, DiskError.
    """
    repo.run(*_OPTIONS, "repack", "-d", "-n", "-q", "--geometric=2")
    repository.sync(repo)
