"""Many trees and blobs of our repository, read by few git processes: one each would cost 4 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import CommitError, SavepointError
from savepoint.gitlayer import repository, tree

if TYPE_CHECKING:
    from savepoint.gitlayer.commits.message import Commit
    from savepoint.gitlayer.repository import Repository

_PLAIN = b"100644"
_FOLDER = b"40000"
_ID_BYTES = repository.ID_DIGITS // 2

Files = dict[str, str]  # path → blob


def trees(repo: Repository, commits: list[Commit]) -> list[Files | None]:
    """The files of each of these commits, at most TREES_AT_ONCE. None where git cannot give their
    trees all at once, or one is nothing that a savepoint has: whoever looks at that commit alone
    is told what it is.

    Each tree is read once, level by level, and its entries are counted before they are listed:
    `git diff-tree -r` of trees that name each other many times over takes all memory.
    """
    if len(commits) < _SEVERAL:
        return [None] * len(commits)
    try:
        walk = _Walk(_levels(repo, {one.tree for one in commits}))
    except (SavepointError, ValueError):  # ValueError: git ended before the last
        return [None] * len(commits)
    found, total = list[Files | None](), 0
    for one in commits:
        total += walk.entries(one.tree) or 0
        found.append(walk.files("", one.tree) if total <= limits.TREES_FILES else None)
    return found


_SEVERAL = 3  # commits; fewer are listed one by one
_Level = dict[str, "list[tuple[bytes, str, str]] | None"]  # tree → mode, name and id of its entries


def _levels(repo: Repository, wanted: set[str]) -> _Level:
    """The trees, and those below them; None for one that git would not have written. Raises
    CommitError, DiskError.
    """
    found: _Level = {}
    for _ in range(limits.TREE_LEVELS):
        names = sorted(wanted)
        if not names:
            break
        data = tree.contents(repo, names, limits.TREES_BYTES, b"tree")
        below = {name: _parsed(one) for name, one in zip(names, data, strict=True)}
        found |= below
        every = (entry for entries in below.values() for entry in entries or ())
        wanted = {one for mode, _, one in every if mode == _FOLDER} - found.keys()
    return found


def _parsed(data: bytes) -> list[tuple[bytes, str, str]] | None:
    entries, at = list[tuple[bytes, str, str]](), 0
    while at < len(data):
        end = data.find(b"\0", at)
        mode, blank, name = data[at:end].partition(b" ")
        if end < 0 or not blank or len(data) < end + 1 + _ID_BYTES:
            return None
        at = end + 1 + _ID_BYTES
        entries.append((mode, name.decode("utf-8", "backslashreplace"), data[end + 1 : at].hex()))
    return entries


class _Walk:
    """What stands below trees, each of which is looked at once."""

    def __init__(self, levels: _Level) -> None:
        self._levels = levels
        self._entries: dict[str, int | None] = {}
        self._files: dict[tuple[str, str], Files] = {}

    def entries(self, name: str) -> int | None:
        """How many there are below a tree; None for more than a savepoint has, or others."""
        if name not in self._entries:
            self._entries[name] = self._counted(name)
        return self._entries[name]

    def _counted(self, name: str) -> int | None:
        entries = self._levels.get(name)
        if entries is None:  # or of too deep a level
            return None
        count = len(entries)
        for mode, _, one in entries:
            below = self.entries(one) if mode == _FOLDER else 0
            if below is None or mode not in (_FOLDER, _PLAIN):
                return None
            count += below
        return count if count <= limits.TREE_FILES else None

    def files(self, path: str, name: str) -> Files | None:
        """Those below a tree that stands at `path`."""
        return None if self.entries(name) is None else self._listed(path, name)

    def _listed(self, path: str, name: str) -> Files:
        found = self._files.get((path, name))
        if found is None:
            found = self._files[path, name] = {}
            for mode, one, what in self._levels[name] or ():
                if mode == _FOLDER:
                    found.update(self._listed(f"{path}{one}/", what))
                else:
                    found[path + one] = what
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
