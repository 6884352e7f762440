"""The tree of a commit: its paths, and the blobs that stand there."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import CommitError, MalformedError
from savepoint.gitlayer import repository

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository

OPEN_CHUNK = "logs/precompact-savepoint.jsonl"
SNAPSHOTS = "logs/precompact-saves"
PACKS = "objects"
README = "README.md"
KEPT_BY = ("retire", "accept")  # records whose commit has the tree before it, and the record
RECOVER = "RECOVER.tsv.age"
BOOTSTRAP = "BOOTSTRAP_VERIFICATION.json"

_CLOSED_CHUNKS = "logs/precompact-savepoint/"
_FILE_MODE = b"100644"
_FOLDER = b"040000 tree "
_ENTRY_BYTES = 200  # of a line of `git ls-tree`; ours have 140


def closed_chunk(first: int) -> str:
    """Where a closed chunk of the index stands that begins with record `first`."""
    return f"{_CLOSED_CHUNKS}{first}.jsonl"


def is_index(path: str) -> bool:
    """Does this file hold records?"""
    return path == OPEN_CHUNK or path.startswith(_CLOSED_CHUNKS)


def pack(name: str) -> str:
    """Where a pack stands."""
    return f"{PACKS}/{name[:2]}/{name}.pack.age"


def pack_at(path: str) -> str:
    """The name of the pack that stands at `path`, or nothing."""
    name = path.rpartition("/")[2].removesuffix(".pack.age")
    return name if path == pack(name) else ""


def snapshot(file: str) -> str:
    """Where the snapshot stands that a record calls `file`."""
    return f"{file}.zst.age"


def packs_in(files: dict[str, str]) -> dict[str, str]:
    """Pack → blob, from path → blob."""
    return {name: blob for path, blob in files.items() if (name := pack_at(path))}


class ForeignEntryError(CommitError):
    """A tree has an entry that no savepoint has."""


def list_files(repo: Repository, commit: str, *below: str) -> dict[str, str]:
    """Path → blob of the files of a commit. Raises CommitError, ForeignEntryError, DiskError.

    Folders are listed too, so that what git writes grows with all that it walks: a few trees that
    name each other many times over are more entries than a disk holds, and empty ones no file.
    """
    limit = limits.TREE_FILES * _ENTRY_BYTES
    options = ("-r", "-t", "-z", "--full-tree")
    result = repo.start("ls-tree", *options, commit, *below, limit=limit).finish(repo.deadline)
    if len(result.out) > limit:
        raise ForeignEntryError(f"commit {commit} has more entries than a savepoint can have")
    if not result.ok:
        raise repository.failure(result)
    files = {}
    for entry in result.out.split(b"\0")[:-1]:
        kind, _, path = entry.partition(b"\t")
        if kind.startswith(_FOLDER):
            continue
        mode, _, rest = kind.partition(b" blob ")
        if mode != _FILE_MODE:  # a link, a submodule: a clone could be made to read through it
            raise ForeignEntryError(f"commit {commit} has an entry that is no plain file")
        files[path.decode("utf-8", "backslashreplace")] = rest.decode()
    return files


def index(repo: Repository, files: dict[str, str]) -> bytes:
    """The index that a commit with these files holds: closed chunks in their order, then the open
    one. Raises MalformedError (it holds none), CommitError (a blob is lost), DiskError.
    """
    closed = [path for path in files if is_index(path) and path != OPEN_CHUNK]
    if OPEN_CHUNK not in files:
        raise MalformedError("it holds no index")
    closed.sort(key=lambda path: (len(path), path))
    blobs = [files[path] for path in (*closed, OPEN_CHUNK)]
    return b"".join(contents(repo, blobs, limits.FETCHED_INDEX_BYTES))


def contents(repo: Repository, names: list[str], limit: int, kind: bytes = b"blob") -> list[bytes]:
    """The bytes of objects of one kind, of at most `limit` in all. Raises CommitError (lost),
    DiskError.
    """
    asked = b"".join(one.encode() + b"\n" for one in names)
    data = repo.run("cat-file", "--batch", "--buffer", stdin=asked, limit=limit)
    found, at = list[bytes](), 0
    for _ in names:
        end = data.index(b"\n", at)
        head = data[at:end].split(b" ")
        if len(head) != 3 or head[1] != kind:
            raise CommitError(f"git lacks {head[0].decode('ascii', 'replace')}")
        found.append(data[end + 1 : end + 1 + int(head[2])])
        at = end + 2 + int(head[2])
    return found


def blob_id(data: bytes) -> str:
    """What git calls these bytes: it locates them, and proves nothing."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
