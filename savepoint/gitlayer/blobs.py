"""Many trees and blobs of our repository, read by few git processes: one each would cost 4 ms."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import CommitError
from savepoint.gitlayer import repository, tree

if TYPE_CHECKING:
    from savepoint.gitlayer.commits.message import Commit
    from savepoint.gitlayer.repository import Repository

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git knows it without having it
_TREES_BYTES = 256 * limits.MIB  # of what changes from commit to commit
_PLAIN = b"100644"
_GONE = b"000000"

Files = dict[str, str]  # path → blob


def trees(repo: Repository, commits: list[Commit]) -> list[Files | None]:
    """The files of each of these commits. None where git cannot list them all at once, or an entry
    is no plain file: whoever looks at that commit alone is told what it is. Raises DiskError.
    """
    if len(commits) < _SEVERAL:
        return [None] * len(commits)
    names = [_EMPTY_TREE, *(one.tree for one in commits)]
    pairs = [f"{a} {b}\n" for a, b in pairwise(names)]
    options = ("--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    running = repo.start("diff-tree", *options, stdin="".join(pairs).encode(), limit=_TREES_BYTES)
    result = running.finish(repo.deadline)
    if not result.ok:
        return [None] * len(commits)
    return _walked(result.out, [pair.encode() for pair in pairs])


_SEVERAL = 3  # commits; fewer are listed one by one


def _walked(data: bytes, pairs: list[bytes]) -> list[Files | None]:
    found, at = list[Files | None](), 0
    files, odd = Files(), set[str]()
    for pair in pairs:
        if data.startswith(pair, at):
            at += len(pair)
        while data.startswith(b":", at):
            end = data.index(b"\0", at)
            after = data.index(b"\0", end + 1)
            _, mode, _, blob, _ = data[at:end].split(b" ")
            path = data[end + 1 : after].decode("utf-8", "backslashreplace")
            files.pop(path, None)
            odd.discard(path)
            if mode == _PLAIN:
                files[path] = blob.decode()
            elif mode != _GONE:
                odd.add(path)
            at = after + 1
        found.append(None if odd else dict(files))
    return found


class Blobs:
    """Reads blobs, of those that are expected many at a time."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._groups: list[list[str]] = []
        self._group: dict[str, int] = {}  # blob → its group
        self._held: dict[str, bytes] = {}
        self._sizes: dict[str, int] = {}

    def expect(self, names: list[str]) -> None:
        """These will be read, about in this order. Raises CommitError, DiskError."""
        if not names:
            return
        asked = "".join(f"{one}\n" for one in names).encode()
        check = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
        limit = len(asked) * 3
        for line in self._repo.run("cat-file", check, "--buffer", stdin=asked, limit=limit).split(
            b"\n"
        )[:-1]:
            name, kind, *size = line.decode("ascii", "replace").split(" ")
            if kind == "blob" and size:
                self._sizes[name] = int(size[0])
        self._arrange(names)

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes of a blob; None if more than `limit`. Raises CommitError, DiskError."""
        if self._sizes.get(name, 0) > limit:
            return None
        if name not in self._held and name in self._group:
            self._fetch(self._group[name])
        if name in self._held:
            return self._held[name]
        return self._alone(name, limit)

    def _alone(self, name: str, limit: int) -> bytes | None:
        running = self._repo.start("cat-file", "blob", name, limit=limit)
        result = running.finish(self._repo.deadline)
        if len(result.out) > limit:
            return None
        if not result.ok:
            raise repository.failure(result)
        return result.out

    def _arrange(self, names: list[str]) -> None:
        size = limits.GIT_OUTPUT_BYTES
        for name in names:
            if name in self._group or name not in self._sizes:
                continue
            if size + self._sizes[name] > limits.GIT_OUTPUT_BYTES:
                self._groups.append([])
                size = 0
            size += self._sizes[name]
            self._groups[-1].append(name)
            self._group[name] = len(self._groups) - 1

    def _fetch(self, number: int) -> None:
        """Hold that group, and no other. Where one of it is damaged, each is read by itself."""
        self._held = {}
        names = self._groups[number]
        if len(names) == 1:
            return
        limit = 2 * limits.GIT_OUTPUT_BYTES + 100 * len(names)
        try:
            self._held = dict(zip(names, tree.contents(self._repo, names, limit), strict=True))
        except repository.NoAnswerError:
            raise
        except (CommitError, ValueError):  # git ended before the last
            for name in names:
                self._group.pop(name)
