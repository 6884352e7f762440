"""The commit of an accept record: it joins our history with what the remote has, so that our branch
leads on from both and nothing is forced.

Like a RETIRE it has the tree of its first parent, and the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import CommitError
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import repository, tree
from savepoint.gitlayer.commits import by_hand, message, script
from savepoint.gitlayer.cursor import OpenChunk
from savepoint.gitlayer.repair import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_JOINED = "refs/savepoint/joined"  # by record: nothing is ever overwritten there
_CHUNKS = tree.closed_chunk(1).rpartition("/")[0]


class Parents(NamedTuple):
    """What an accept record's commit leads on from."""

    base: str | None  # whose tree it has: of ours
    other: str | None  # at least one of them is there


def join(
    repo: Repository, paths: InstancePaths, lines: list[bytes], one: Record, parents: Parents
) -> str:
    """The commit of the accept record `one`, whose line is the last of `lines`, the whole index. It
    is durable, and no ref of the instance leads to it yet.

    The caller holds the store lock. Raises CommitError, DiskError.
    """
    ref = f"{_JOINED}/{one.hash}"
    told = (f"commit {ref}\ncommitter {message.author(paths.slug, one)}\n".encode(),)
    head = (*told, script.data(message.compose(one, None)), *_parents(parents))
    stdin = b"".join((*head, *_files(lines, is_new=parents.base is None), b"done\n"))
    if repository.read_ref(repo, ref) is None:  # else a call that was killed has made it
        with leftovers.Writing(repo, paths.slug):
            repo.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stdin)
    made = repository.read_ref(repo, ref)
    if made is None:
        raise CommitError("git has made no commit of an accept record")
    repository.sync(repo)
    return made


def _parents(parents: Parents) -> Iterator[bytes]:
    yield f"from {parents.base or parents.other}\n".encode()
    if parents.base and parents.other:
        yield f"merge {parents.other}\n".encode()


def _files(lines: list[bytes], *, is_new: bool) -> Iterator[bytes]:
    """The index, over the tree that is there, or over nothing of what somebody else put there."""
    if is_new:
        yield b"deleteall\n" + script.file(tree.README, by_hand.README)
    else:
        yield f"D {_CHUNKS}\n".encode()
    chunk, closed = OpenChunk(0, b""), dict[str, bytes]()
    for line in lines:
        chunk, full = chunk.add(line)
        closed.update([full] if full else [])
    for path, data in {**closed, tree.OPEN_CHUNK: chunk.data}.items():
        yield script.file(path, data)
