"""What a commit of the remote says of an instance: its index, read from the tree and verified.

Whoever can write to the remote can put anything there: only records that the instance's own key
has signed, in one unbroken chain from its birth, are its history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError, TamperedError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.verify_index import Index, Names
from savepoint.gitlayer import tree
from savepoint.gitlayer.commits import message

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
    data = tree.index(repo, files)
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
    """The tree. A link or a submodule in it is nothing of ours: a clone would read through it."""
    try:
        return tree.list_files(repo, commit)
    except tree.ForeignEntryError as failure:
        raise MalformedError(failure.message) from failure
