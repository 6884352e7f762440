"""Who the instances of a remote are, without fetching what they have saved: only commits, trees and
the first records of their indexes come here, into a repository that is thrown away.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, record
from savepoint.core.errors import SavepointError, SelectorError
from savepoint.core.spelling import Instance
from savepoint.gitlayer import repository, tree
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.record import Record
    from savepoint.gitlayer.remote.remote import Remote

_CHUNK_BYTES = (limits.RECORD_BYTES + 1) * limits.INDEX_CHUNK_RECORDS  # of a chunk of an index


def births(remote: Remote, scratch: str, tips: Mapping[str, str]) -> dict[str, Record]:
    """Slug → signed birth record of the branches whose newest commit tells it. scratch: a folder
    for what is fetched. tips: slug → commit.

    Raises SelectorError (they are too many), RemoteUnreachableError, CommitError, DiskError.
    """
    if not tips:
        return {}
    if len(tips) > limits.GLANCED_BRANCHES:
        hint = "name one with --instance, as its branch is called"
        raise SelectorError(f"{remote.url.shown} has {len(tips)} such branches", hint=hint)
    path = os.path.join(scratch, durable.temporary_name().decode())
    durable.make_directories(scratch)
    there = remote._replace(repo=remote.repo._replace(path=path))
    try:
        repository.ensure(there.repo)
        there.repo.run("config", "extensions.partialClone", "promisor")
        there.repo.run("config", "core.repositoryFormatVersion", "1")
        there.glance(tips)
        found = {slug: _birth(there, slug, commit) for slug, commit in tips.items()}
    finally:
        durable.remove_folder(path)
    return {slug: one for slug, one in found.items() if one is not None}


def _birth(remote: Remote, slug: str, commit: str) -> Record | None:
    """None where the branch is nothing of ours: whoever can write there can put anything there."""
    try:
        files = tree.list_files(remote.repo, commit, "logs/")
        first = tree.closed_chunk(1)
        blob = files.get(first) or files[tree.OPEN_CHUNK]
        data = remote.read_lazily(blob, _CHUNK_BYTES)
        one = record.parse(data.partition(b"\n")[0])
    except (SavepointError, KeyError):
        return None
    own = Instance.parse(one.instance).slug(one.signer) == slug
    return one if own and one.kind == "birth" and one.signature_holds() else None


def same_name(slug: str, instance: Instance) -> int:
    """The number of the instance that a branch is called after, if its name may be that of
    `instance`; else 0. Names that differ in case or signs may share a slug.
    """
    words, _, _ = slug.rpartition("-")
    _, _, digits = words.rpartition("-")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
    if not number:
        return 0
    likely = Instance(instance.name, number).slug(bytes(4)).rpartition("-")[0]
    return number if likely == words else 0
