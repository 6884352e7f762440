"""What leads to what in our repository: commits that are there, and which descends from which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.gitlayer import repository

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

_NO = 1  # exit code of git for "it is not"


def has(repo: Repository, commit: str) -> bool:
    """Is that commit in our repository? Raises CommitError (git cannot say), DiskError."""
    running = repo.start("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
    result = running.finish(repo.deadline)
    if not result.ok:
        raise repository.failure(result)
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
