"""What a commit holds, opened: for verification, and to put back what the local store has lost.

Nothing is given out that is not what was signed or named: a snapshot has the hash that its record
signed, a pack the SHA-256 that is its name. Git's own ids only tell where to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits, packs, verify_stored
from savepoint.core.errors import MalformedError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import tree
from savepoint.gitlayer.blobs import Blobs
from savepoint.gitlayer.commits import message
from savepoint.gitlayer.commits.encrypt import unseal

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.verdicts import Finding
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.keys.agekeys import Identity

_PACK_BYTES = limits.PACK_BYTES + limits.FRAME_BYTES  # of the longest pack


class Held(NamedTuple):
    """A commit of a savepoint, and how its files are opened."""

    repo: Repository
    identities: list[Identity]
    commit: str
    said: message.Commit
    files: dict[str, str]  # path → blob
    blobs: Blobs  # that are read from there

    def snapshot(self, one: Record) -> bytes:
        """The snapshot of record `one`, as it was signed.

        Raises TamperedError, KeyFileError (not encrypted to us), CommitError, DiskError.
        """
        path = tree.snapshot(one.snapshot_file)
        opened = self.opened(path, limits.SNAPSHOT_BYTES)
        size = one.body["snapshot_size_bytes"]
        if not isinstance(size, int) or size > limits.SNAPSHOT_BYTES:
            raise TamperedError(f"record {one.seq} names a snapshot larger than any can be")
        data = packs.decompress(opened, size)
        _demand(verify_stored.snapshot_file(one, data, self.where(path)))
        return data

    def pack(self, name: str) -> bytes:
        """The pack of that SHA-256. Raises as `snapshot`."""
        path = tree.pack(name)
        data = self.opened(path, _PACK_BYTES)
        _demand(verify_stored.pack(name, data, self.where(path)))
        return data

    def opened(self, path: str, limit: int) -> bytes:
        """The content of an encrypted file, of at most `limit` bytes. Raises as `snapshot`; what
        it holds is for the caller to check.
        """
        return unseal(self.read(path, sealed_bytes(limit)), self.identities, self.where(path))

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a file as they stand there, at most `limit`. Raises TamperedError (there is
        no such file, or a larger one), CommitError (its blob is lost), DiskError.
        """
        blob = self.files.get(path)
        if blob is None:
            raise TamperedError(f"{self.where(path)} is missing")
        data = self.blobs.read(blob, limit)
        if data is None:
            raise TamperedError(f"{self.where(path)} is larger than {limit} bytes")
        return data

    def where(self, path: str) -> str:
        """How findings name a file of the commit."""
        return f"{self.commit[:12]}:{path}"


def held(repo: Repository, commit: str, identities: list[Identity]) -> Held:
    """What `commit` holds. identities: what opens it; with none, only what is not encrypted can be
    read. Raises MalformedError (no commit of ours), CommitError (git lacks it), DiskError.
    """
    said = message.parse(repo.run("cat-file", "commit", commit, limit=limits.COMMIT_BYTES))
    try:
        files = tree.list_files(repo, commit)
    except tree.ForeignEntryError as failure:
        raise MalformedError(failure.message) from failure
    return Held(repo, identities, commit, said, files, Blobs(repo))


def sealed_bytes(size: int) -> int:
    """The most bytes that `size` bytes take up when they are encrypted."""
    return size + size // 4096 + limits.ENCRYPTION_BYTES  # 16 for each 64 KiB, and the header


def _demand(finding: Finding) -> None:
    if finding.result != "pass":
        raise TamperedError(finding.detail)
