"""Blobs of packs that no cache knows: looked for in the commits where they must be.

Only where a cache was lost, or a savepoint of another session was left behind; never in a usual
save, since each look costs a git process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, spelling
from savepoint.core.errors import CommitError, MalformedError
from savepoint.gitlayer import repository, tree
from savepoint.gitlayer.commits import message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.gitlayer.cursor import Cursor
    from savepoint.gitlayer.repository import Repository


def blobs(repo: Repository, parent: Cursor | None, one: Record, wanted: set[str]) -> dict[str, str]:
    """Pack → blob of the wanted packs that are found: in the parent, else in the commit of the
    savepoint that `one` goes on from. What is not found is encrypted again.

    Raises DiskError.
    """
    found: dict[str, str] = {}
    for commit in _places(repo, parent, one):
        try:
            files = tree.list_files(repo, commit, tree.PACKS + "/")
        except CommitError:
            continue  # lost: fsck names it
        found.update(tree.packs_in(files))
        if wanted <= found.keys():
            break
    return {name: blob for name, blob in found.items() if name in wanted}


def _places(repo: Repository, parent: Cursor | None, one: Record) -> Iterator[str]:
    if parent is not None:
        yield parent.commit
        yield from _joined(repo, parent.commit)
    origin = one.body["from"]
    if not isinstance(origin, dict):
        return
    key = spelling.key_bytes(str(origin["signer"]))
    for slug in _slugs(repo):
        if slug.endswith(f"-{key[:4].hex()}"):
            yield from commits_of(repo, slug, int(str(origin["seq"])))


def _joined(repo: Repository, commit: str) -> tuple[str, ...]:
    """The further parents of the commit of an accept record: our branch as it was before."""
    try:
        data = repo.run("cat-file", "commit", commit, limit=limits.COMMIT_BYTES)
        return message.parse(data).parents[1:]
    except (CommitError, MalformedError):
        return ()


def commits_of(repo: Repository, slug: str, seq: int) -> list[str]:
    """The newest commit of an instance whose trailers name that record, if there is one.

    Raises DiskError.
    """
    grep = f"--grep=^Savepoint-Seq: {seq}$"
    try:
        out = repo.run("log", "--format=%H", "-1", grep, repository.branch(slug))
    except CommitError:
        return []  # no such branch, or its history is damaged
    return out.decode("ascii", "replace").split()


def _slugs(repo: Repository) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(repo.path, repository.BRANCHES)))
    except OSError:
        return []
