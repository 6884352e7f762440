"""How far git has come with an instance: the record that its ref holds, and where in the index the
next commit goes on.

The ref is read by hand and the rest from a cache beside it, which counts only for the commit that
it names; without it, git is asked, and the index compared with what was committed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import limits, record, schema
from savepoint.core.errors import CommitError, MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse
from savepoint.gitlayer import repository, tree
from savepoint.gitlayer.commits import message
from savepoint.store import durable, index, lines
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths


class Cursor(NamedTuple):
    """The commit of an instance's ref, and the record that it is the commit of."""

    commit: str
    seq: int
    record: str  # hash


class OpenChunk(NamedTuple):
    """The last records of an index, fewer than INDEX_CHUNK_RECORDS: what a commit holds as the
    open chunk. Those before it stand in closed chunks of exactly that many.
    """

    offset: int  # where it begins in the index, bytes
    data: bytes  # whole lines

    def add(self, line: bytes) -> tuple[OpenChunk, tuple[str, bytes] | None]:
        """With one more line; and the chunk that this closes, with its path, if it does."""
        data = self.data + line + b"\n"
        if data.count(b"\n") < limits.INDEX_CHUNK_RECORDS:
            return OpenChunk(self.offset, data), None
        first = record.parse(data[: data.index(b"\n")]).seq
        return OpenChunk(self.offset + len(data), b""), (tree.closed_chunk(first), data)


class Base(NamedTuple):
    """What the next commit builds on."""

    cursor: Cursor | None  # None: there is no commit yet
    chunk: OpenChunk  # what the commit holds of the index
    closed: dict[str, bytes] | None  # the chunks before it; None: they are the parent's
    files: dict[str, str]  # path → blob in the parent, where it had to be listed
    program: list[Json]  # the git whose version was found good


_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "commit": schema.text,
        "seq": schema.count,
        "record": schema.text,
        "offset": schema.count,
        "size": schema.count,
        "sha256": schema.text,
        "program": schema.array(schema.anything),
    }
)


def read(repo: Repository, slug: str) -> Cursor | None:
    """Where the ref of an instance is; None where nothing was committed yet.

    Raises CommitError (the ref or its commit is not to be read), BrokenRefError, DiskError.
    """
    commit = repository.read_ref(repo, repository.branch(slug))
    if commit is None:
        return None
    cached = _cached(repo, slug, commit)
    return cached.cursor if cached else at_commit(repo, commit)


def at_commit(repo: Repository, commit: str) -> Cursor:
    """The cursor of a ref that names this commit. Raises CommitError, DiskError."""
    data = repo.run("cat-file", "commit", commit, limit=limits.COMMIT_BYTES)
    try:
        found = message.parse(data)
    except MalformedError as failure:
        raise CommitError(f"commit {commit}: {failure.message}") from failure
    return Cursor(commit, found.seq, found.record)


def base(repo: Repository, paths: InstancePaths) -> tuple[Base, bytes]:
    """What the next commit builds on, and the lines of the index that no commit holds yet.

    Raises CommitError: also where the index is not the one that was committed, which a save must
    not carry into git over the one that is there.
    """
    commit = repository.read_ref(repo, repository.branch(paths.slug))
    if commit is None:
        return Base(None, OpenChunk(0, b""), {}, {}, []), index.read(paths)
    cached = _cached(repo, paths.slug, commit)
    if cached is None:
        return compared(repo, paths, at_commit(repo, commit))
    data = lines.bytes_from(paths, cached.offset)
    if hashlib.sha256(data[: cached.size]).hexdigest() != cached.sha256:
        return compared(repo, paths, cached.cursor)
    chunk = OpenChunk(cached.offset, data[: cached.size])
    return Base(cached.cursor, chunk, None, {}, cached.program), data[cached.size :]


def save(
    repo: Repository, slug: str, cursor: Cursor, chunk: OpenChunk, program: list[Json]
) -> None:
    """Write the cache. Raises DiskError, which costs the next commit time, nothing else."""
    value: dict[str, Json] = {
        "v": 1,
        **cursor._asdict(),
        "offset": chunk.offset,
        "size": len(chunk.data),
        "sha256": hashlib.sha256(chunk.data).hexdigest(),
        "program": program,
    }
    durable.replace_cache(repo.ours(slug), dump(value) + b"\n")


def compared(repo: Repository, paths: InstancePaths, cursor: Cursor) -> tuple[Base, bytes]:
    """As `base`, without a cache: the whole index, cut into chunks, against those of the commit.

    Raises CommitError if they differ, DiskError.
    """
    data = index.read(paths)
    end = _end_of(data, cursor)
    chunk, closed = OpenChunk(0, b""), dict[str, bytes]()
    for line in data[:end].split(b"\n")[:-1]:
        chunk, done = chunk.add(line)
        closed.update([done] if done else [])
    files = tree.list_files(repo, cursor.commit)
    ours = {
        path: tree.blob_id(one) for path, one in {**closed, tree.OPEN_CHUNK: chunk.data}.items()
    }
    theirs = {path: blob for path, blob in files.items() if tree.is_index(path)}
    if ours != theirs:
        raise CommitError(
            f"{paths.index_file} is not the index that commit {cursor.commit} holds",
            hint="run `savepoint fsck`",
        )
    return Base(cursor, chunk, closed, files, []), data[end:]


def _end_of(data: bytes, cursor: Cursor) -> int:
    """Where the record of the cursor ends in an index."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        if hashlib.sha256(data[start:end]).hexdigest() == cursor.record:
            return end + 1
        start = end + 1
    raise CommitError(
        f"the index lacks record {cursor.seq}, which git has", hint="run `savepoint fsck --repair`"
    )


class _Cached(NamedTuple):
    cursor: Cursor
    offset: int
    size: int
    sha256: str
    program: list[Json]


def _cached(repo: Repository, slug: str, commit: str) -> _Cached | None:
    """What the cache says, if it is of this commit."""
    try:
        value = parse(read_bounded(repo.ours(slug), limits.GIT_FILE_BYTES) or b"")
        _SHAPE(value, "commit cache")
    except SavepointError:
        return None  # never evidence
    assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
    _, *fields = value.values()
    found = _Cached(Cursor(*fields[:3]), *fields[3:])  # type: ignore[arg-type]  # _SHAPE
    return found if found.cursor.commit == commit else None
