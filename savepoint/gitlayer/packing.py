"""The git packs of our repository: one a commit, until a few large ones are made of them.

600 packs cost a push and a look at history ten times what one costs; a save they cost nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.gitlayer import repository

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

_SETTINGS = ("pack.window=0", "pack.threads=1", "repack.writeBitmaps=false")
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))


def packs(repo: Repository) -> list[str]:
    """The names of its packs."""
    try:
        names = os.listdir(os.path.join(repo.path, "objects/pack"))
    except OSError:
        return []
    return sorted(name for name in names if name.startswith("pack-") and name.endswith(".pack"))


def join(repo: Repository) -> None:
    """Make one pack of the small ones, so that each that is left has twice the objects of the next.

    Nobody else needs to wait for it, nor a commit that is made meanwhile. Every object of the old
    packs is in the new one, whether a ref leads to it or not; the new one has its name before the
    first old one goes; and a git that misses an object looks for new packs.
    Raises CommitError, DiskError.
    """
    repo.run(*_OPTIONS, "repack", "-d", "-n", "-q", "--geometric=2")
    repository.sync(repo)
