"""What dead git processes leave in our repository, and how it is known that they are dead.

A killed run leaves its temporary pack (anomalyco/opencode#14811: they filled a disk) and, in a bad
moment, the lock of our ref, which would refuse every later commit for ever.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from savepoint.core import limits
from savepoint.core.errors import CommitError, SavepointError
from savepoint.gitlayer.repository import branch
from savepoint.store import durable
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

_FAST_IMPORT = b"fast-import"  # in its command line, and all that stands in a .keep of its
_PROCESSES = "/proc"


class Writing:
    """The block writes to the repository. A note stands there meanwhile: one that is found was left
    by a run that died or failed, and then what its git left behind is removed first.

    The caller holds the store lock, so that no two write at once; but the git of a process that
    died may live on for a moment, and finish what it was told. CommitError if it does not end.
    """

    def __init__(self, repo: Repository, slug: str) -> None:
        self._repo = repo
        self._slug = slug
        self._note = repo.ours("writing")
        self._lock = os.path.join(repo.path, _lock(slug))

    def __enter__(self) -> Self:
        if os.path.lexists(self._note) or os.path.lexists(self._lock):
            self._tidy()
        durable.make_directories(os.path.dirname(self._note))  # a clone put in place has it not
        durable.replace_cache(self._note, b"")
        return self

    def __exit__(self, *ended: object) -> None:
        if ended[0] is None and not self._left:
            durable.remove(self._note)

    def _tidy(self) -> None:
        end = min(self._repo.deadline, time.monotonic() + limits.ORPHAN_SECONDS)
        remove_leftovers(self._repo, self._slug)
        while os.path.lexists(self._lock) and time.monotonic() < end:
            time.sleep(limits.LOCK_POLL_SECONDS)
            remove_leftovers(self._repo, self._slug)
        if os.path.lexists(self._lock):
            raise CommitError(f"{self._lock} is held by a git that is still at work")
        self._left = bool(_temporaries(self._repo))

    _left = False  # something that may belong to a live git: the next run looks at it again


def remove_leftovers(repo: Repository, slug: str) -> list[str]:
    """Remove what no live git can need: temporary packs, crash reports, the lock of our ref. Their
    names below repo.git. Where nobody can tell who lives, what was touched just now stays.

    The caller holds the store lock. No other lock is touched: none is in our way.
    """
    living = _at_work(repo)
    old = time.time() - limits.STALE_SECONDS
    committing = living is None or any(_FAST_IMPORT in one for one in living)
    found = [one for one in _of_commits(repo, slug) if not committing or _is_older(repo, one, old)]
    found += [one for one in _temporaries(repo) if living == [] or _is_older(repo, one, old)]
    for name in found:
        durable.remove(os.path.join(repo.path, name))
    return found


def _at_work(repo: Repository) -> list[bytes] | None:
    """The command lines of live gits of ours in the repository; None where that cannot be told.
    A dead one that nobody reaps, as in a container without an init, has none.
    """
    try:
        numbers = [name for name in os.listdir(_PROCESSES) if name.isdigit()]
    except OSError:
        return None
    ours = b"\0" + os.fsencode(repo.option) + b"\0"
    lines = [_bytes(os.path.join(_PROCESSES, number, "cmdline")) for number in numbers]
    return [one for one in lines if ours in one] if any(lines) else None


def _of_commits(repo: Repository, slug: str) -> list[str]:
    """What only a git that writes commits leaves."""
    found = [_lock(slug)] if os.path.lexists(os.path.join(repo.path, _lock(slug))) else []
    found += [name for name in _names(repo, "") if name.startswith("fast_import_crash_")]
    keeps = [name for name in _names(repo, "objects/pack") if name.endswith(".keep")]
    return found + [one for one in keeps if _bytes(os.path.join(repo.path, one)) == _FAST_IMPORT]


def _temporaries(repo: Repository) -> list[str]:
    names = _names(repo, "objects/pack")
    return [one for one in names if os.path.basename(one).startswith(("tmp_", ".tmp-"))]


def _lock(slug: str) -> str:
    return f"{branch(slug)}.lock"


def _names(repo: Repository, folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(os.path.join(repo.path, folder))]
    except OSError:
        return []  # there is nothing to tidy


def _bytes(path: str) -> bytes:
    try:
        return read_bounded(path, limits.GIT_FILE_BYTES) or b""
    except SavepointError:
        return b""  # gone, or another user's


def _is_older(repo: Repository, name: str, moment: float) -> bool:
    try:
        return os.lstat(os.path.join(repo.path, name)).st_mtime <= moment
    except OSError:
        return False
