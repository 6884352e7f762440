"""What leads to what in our repository: commits that are there, and which descends from which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.gitlayer import repository

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

_LOG_BYTES = 256 * limits.MIB  # of a line for each commit
_NO = 1  # exit code of git for "it is not"


def has(repo: Repository, commit: str) -> bool:
    """Is that commit in our repository? Raises CommitError (git cannot say), DiskError."""
    running = repo.start("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
    result = running.finish(repo.deadline)
    if not result.ok:
        raise repository.failure(result)
    if result.out != b"commit\n" and (hindered := repository.hindrance(result)):
        raise hindered  # it is "missing" as well where its pack could not be opened
    return result.out == b"commit\n"


def leads_to(repo: Repository, older: str, newer: str) -> bool:
    """Is `newer` the commit `older`, or does it descend from it? Both are there.

    Raises CommitError (a commit between them is lost), DiskError.
    """
    if older == newer:
        return True
    result = repo.start("merge-base", "--is-ancestor", older, newer).finish(repo.deadline)
    if result.ok:
        return True
    if result.code == _NO and not result.problem:
        return False
    raise repository.failure(result)


def leading_to(repo: Repository, tip: str) -> set[str]:
    """`tip` and all commits that it descends from. Raises CommitError, DiskError."""
    return set(repo.run("rev-list", tip, limit=_LOG_BYTES).decode("ascii", "replace").split())


def by_record(repo: Repository, tip: str) -> dict[str, str]:
    """Record hash → commit, as the trailers of a history say. Raises CommitError, DiskError."""
    named = records(repo, tip)
    return {one: commit for commit, one in reversed(named.items()) if one}


def records(repo: Repository, tip: str) -> dict[str, str]:
    """Commit → the record that its trailers name, of `tip` and all that it descends from, newest
    first; nothing where they name none. Raises CommitError, DiskError.
    """
    asked = "--format=%H %(trailers:key=Savepoint-Record,valueonly,separator=%x20)"
    log = repo.run("log", "--topo-order", asked, tip, limit=_LOG_BYTES).decode("ascii", "replace")
    pairs = [line.split(" ") for line in log.split("\n") if line]
    return {pair[0]: pair[1] if len(pair) == 2 else "" for pair in pairs}
