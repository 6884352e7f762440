"""What a commit of the remote says of an instance: its index, read from the tree and verified.

Whoever can write to the remote can put anything there: only records that the instance's own key
has signed, in one unbroken chain from its birth, are its history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from savepoint.core import limits
from savepoint.core.errors import (
    CommitError,
    MalformedError,
    TamperedError,
    UnsupportedFormatError,
)
from savepoint.core.verify import Index, Names
from savepoint.gitlayer import message, tree

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository

_CHAIN_RULES = ("VERIFY-1", "VERIFY-2", "VERIFY-3")


class Theirs(NamedTuple):
    """A savepoint of the instance at the remote, fetched, and the index that leads up to it."""

    commit: str
    files: dict[str, str]  # path → blob of its tree
    data: bytes  # the index: whole lines
    records: list[Record]

    @property
    def last(self) -> Record:
        """The record that the commit is of."""
        return self.records[-1]


def read(repo: Repository, slug: str, commit: str) -> Theirs:
    """The savepoint of an instance that `commit` is.

    Raises MalformedError or TamperedError where it is none, or not one that its key has signed;
    UnsupportedFormatError (of a newer version), CommitError (an object is missing), DiskError.
    """
    said = message.parse(repo.run("cat-file", "commit", commit, limit=limits.COMMIT_BYTES))
    files = _files(repo, commit)
    data = _index(repo, files)
    where = f"the index of commit {commit}"
    index = Index(data, None, Names(slug, where, "trusted head"))
    faults = [one for one in index.findings() if one.result != "pass"]
    fault = next((one for one in faults if one.rule in _CHAIN_RULES), None)
    if fault is not None and fault.unsupported:
        raise UnsupportedFormatError(fault.detail)
    if fault is not None or not index.is_unbroken:
        raise TamperedError(fault.detail if fault else f"{where} is broken")
    records = [one for one, _ in index.records]
    if (records[-1].seq, records[-1].hash) != (said.seq, said.record) or index.leftover:
        raise TamperedError(f"{where} does not end with the record that the commit names")
    return Theirs(commit, files, data, records)


def _files(repo: Repository, commit: str) -> dict[str, str]:
    """The tree. A link or a submodule in it is nothing of ours (faults.md M23)."""
    try:
        return tree.list_files(repo, commit)
    except tree.ForeignEntryError as failure:
        raise MalformedError(failure.message) from failure


def _index(repo: Repository, files: dict[str, str]) -> bytes:
    """The closed chunks in their order, then the open one."""
    closed = [path for path in files if tree.is_index(path) and path != tree.OPEN_CHUNK]
    if tree.OPEN_CHUNK not in files:
        raise MalformedError("it holds no index")
    closed.sort(key=lambda path: (len(path), path))
    blobs = [files[path] for path in (*closed, tree.OPEN_CHUNK)]
    return b"".join(_contents(repo, blobs))


def _contents(repo: Repository, blobs: list[str]) -> list[bytes]:
    asked = b"".join(one.encode() + b"\n" for one in blobs)
    data = repo.run("cat-file", "--batch", stdin=asked, limit=limits.FETCHED_INDEX_BYTES)
    found, at = list[bytes](), 0
    for _ in blobs:
        end = data.index(b"\n", at)
        head = data[at:end].split(b" ")
        if len(head) != 3 or head[1] != b"blob":
            raise CommitError(f"git lacks {head[0].decode('ascii', 'replace')}")
        found.append(data[end + 1 : end + 1 + int(head[2])])
        at = end + 2 + int(head[2])
    return found
