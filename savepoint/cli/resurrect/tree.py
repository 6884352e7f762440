"""A new worktree at the commit that a savepoint was made at, with its changes in it.

Git makes the worktree and its index; the files are written here, so that no filter or hook that the
repository names is run. What a filter would have made of a file is left as git holds it.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from savepoint import gitcmd
from savepoint.cli import place
from savepoint.core import limits, member_names, snapshot
from savepoint.core.errors import CommitError, OutputExistsError, SelectorError
from savepoint.core.strict_json import objects
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.tree import contents
from savepoint.resurrect import moves
from savepoint.store import durable, savepoints, worktree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.resurrect.moves import Move
    from savepoint.store.durable import Folder
    from savepoint.store.layout import Store

_READ_BYTES = 8 * limits.MIB  # of blobs asked for at once
_MODES = {"100644": 0o666, "100755": 0o777, "120000": 0o666}  # less what the umask takes
_FOLDER_MODE = 0o777  # likewise
_GIT_FILE_MODE = 0o644
_PRESENT = ("working", "untracked")  # what stood on the disk
_HEAD_BYTES = 128  # what git writes around each blob
_SAFE = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_LISTING_BYTES = 256 * limits.MIB


class Entry(NamedTuple):
    """A file of the commit."""

    mode: str
    blob: str
    size: int  # bytes
    path: bytes


class Wanted(NamedTuple):
    """Where the worktree is to be, and of which repository."""

    project: str  # real path of a folder in it
    folder: str  # absolute path
    commit: str


def staging(at: place.Place, document: dict[str, Json], folder: str) -> Staging:
    """Check that one can be made, before anything is. Raises OutputExistsError, UsageError,
    SelectorError: the savepoint names no commit, or this repository does not have it.
    """
    above, name = place.new_folder(folder)
    commit = snapshot.member_at(document, ("git_state", "current_commit"))
    if not isinstance(commit, str):
        raise SelectorError("the savepoint names no commit", hint="leave out --worktree")
    found = Wanted(at.project, os.path.join(above, name), commit)
    asked = _git(found.project, "cat-file", "-e", commit + "^{commit}")
    if not asked.ok:
        raise SelectorError(
            f"{at.project} does not have commit {commit}", hint="fetch it first, or clone anew"
        )
    return Staging(found, at.store, document)


class Staging:
    """A worktree that is made under another name, beside its place. A rename puts it there: git is
    told of its place beforehand, and its files name git's folder for it, not the other way round.
    """

    def __init__(self, where: Wanted, store: Store, document: dict[str, Json]) -> None:
        self._where = where
        self._store = store
        self._document = document
        above, name = os.path.split(where.folder)
        self._move = moves.beside(above, (), name, folder=True)
        self._path = os.path.join(above, self._move.temporary)
        self._git_dir = ""

    def make(self) -> Move:
        """Its files: as committed, then as changed, without what was deleted. Raises CommitError
        (git), TamperedError, DiskError; then what was made of it is removed.
        """
        moves.sweep(self._move.root, time.time())
        name, commit = os.fsencode(self._move.temporary), self._where.commit
        try:
            with self._move.place() as above, above.folder(name, _FOLDER_MODE) as folder:
                _demand(
                    self._where.project,
                    *("worktree", "add", "--no-checkout", "--detach", self._path, commit),
                )
                self._git_dir = self._registered()
                self._fill(folder)
                gitdir, place_ = os.path.join(self._git_dir, "gitdir"), self._where.folder
                durable.replace(gitdir, os.fsencode(f"{place_}/.git\n"), mode=_GIT_FILE_MODE)
                above.sync_below(name)  # under the store's lock that would take too long
        except BaseException:
            self._move.drop()
            raise
        return self._move

    def _registered(self) -> str:
        """The folder that git has made for it."""
        ours, its = worktree.find_worktree(self._where.project), worktree.find_worktree(self._path)
        if ours is None or its is None or its.common_dir != ours.common_dir:
            raise CommitError(f"{self._path} has not become a worktree of {self._where.project}")
        return its.git_dir

    def _fill(self, folder: Folder) -> None:
        _demand(self._path, "read-tree", self._where.commit)
        changes = _Changes(self._store, self._document)
        gone = {*changes.present, *changes.staged, *changes.deleted}
        kept = [one for one in _listed(self._where) if one.path not in gone]
        for one, data in _contents(self._where, kept):
            _put(folder, one.path, [data], one.mode)
        for path, (mode, stored) in changes.on_disk().items():
            _put(folder, path, savepoints.content(self._store, stored), mode)
        _stage(self._path, changes)

    def settle(self) -> None:
        """Git forgets it, if it is neither in its place nor waits for it."""
        there = (self._path, self._where.folder)
        if self._git_dir and not any(map(os.path.lexists, there)):
            durable.remove_folder(self._git_dir)


class _Changes:
    """What a savepoint knows beside the commit, by path."""

    def __init__(self, store: Store, document: dict[str, Json]) -> None:
        self._store = store
        files = [one for one in savepoints.files(store, document) if one.part == "changes"]
        entries = objects(savepoints.listed(store, document, ("git_state", "changes", "files")))
        self.present: dict[bytes, tuple[str, StoredFile]] = {}
        self.staged: dict[bytes, tuple[str, StoredFile]] = {}
        for one, entry in zip(files, entries, strict=True):
            kind = self.present if entry["kind"] in _PRESENT else self.staged
            path = snapshot.path_bytes(one.path)
            if not member_names.hazard(tuple(path.split(b"/"))):
                kind[path] = (str(entry["mode"]), one)
        deleted = savepoints.listed(store, document, ("git_state", "changes", "deleted"))
        names = deleted if isinstance(deleted, list) else []
        self.deleted = {snapshot.path_bytes(one) for one in names}

    def on_disk(self) -> dict[bytes, tuple[str, StoredFile]]:
        """What stood there: as it was staged, unless it was changed or deleted after that."""
        kept = {path: one for path, one in self.staged.items() if path not in self.deleted}
        return {**kept, **self.present}

    def content(self, path: bytes) -> bytes:
        """The bytes that were staged."""
        return b"".join(savepoints.content(self._store, self.staged[path][1]))


def _stage(folder: str, changes: _Changes) -> None:
    """What was staged is staged again."""
    lines = []
    for path, (mode, _) in changes.staged.items():
        data = changes.content(path)
        blob = _demand(folder, "hash-object", "-w", "--stdin", "--no-filters", stdin=data)
        lines.append(b"%b %b\t%b\0" % (mode.encode(), blob.strip(), path))
    if lines:
        _demand(folder, "update-index", "-z", "--index-info", stdin=b"".join(lines))


def _contents(where: Wanted, listed: list[Entry]) -> Iterator[tuple[Entry, bytes]]:
    """The bytes of these files, many asked for at once, few held."""
    found = worktree.find_worktree(where.project)
    if found is None:
        raise CommitError(f"{where.project} is in no repository")
    until = time.monotonic() + limits.COMMAND_SECONDS
    repo = Repository(found.common_dir, place.around().environment, until)
    while listed:
        count, size = 0, 0
        while count < len(listed) and (count == 0 or size + listed[count].size <= _READ_BYTES):
            size += listed[count].size
            count += 1
        some, listed = listed[:count], listed[count:]
        yield from zip(
            some,
            contents(repo, [one.blob for one in some], size + _HEAD_BYTES * count),
            strict=True,
        )


def _listed(where: Wanted) -> Iterator[Entry]:
    """The files of the commit; submodules are none."""
    options = ("ls-tree", "-r", "-z", "-l", "--full-tree", where.commit)
    for line in _demand(where.project, *options, limit=_LISTING_BYTES).split(b"\0")[:-1]:
        kind, _, path = line.partition(b"\t")
        mode, what, blob, size = kind.split()
        if what == b"blob" and not _is_gits(path):
            yield Entry(mode.decode(), blob.decode(), int(size), path)


def _is_gits(path: bytes) -> bool:
    """Git takes no such name, but a commit can be made by anybody."""
    return member_names.hazard(tuple(path.split(b"/"))).startswith("belongs to git")


def _put(folder: Folder, path: bytes, pieces: Iterable[bytes], mode: str) -> None:
    parts = member_names.parts(path, windows=os.name == "nt")
    with ExitStack() as held:
        for name in parts[:-1]:
            folder = held.enter_context(folder.folder(name, _FOLDER_MODE))
        if folder.new(parts[-1], pieces, _MODES.get(mode, 0o666)) is None:
            shown = path.decode("utf-8", "backslashreplace")
            raise OutputExistsError(f"{os.path.join(folder.path, shown)} is there already")


def _git(
    folder: str, *args: str, stdin: bytes = b"", limit: int = limits.GIT_OUTPUT_BYTES
) -> gitcmd.Result:
    env = place.around().environment
    running = gitcmd.start(("-C", folder, *_SAFE, *args), env=env, stdin=stdin, limit=limit)
    return running.finish(time.monotonic() + limits.COMMIT_SECONDS)


def _demand(
    folder: str, *args: str, stdin: bytes = b"", limit: int = limits.GIT_OUTPUT_BYTES
) -> bytes:
    result = _git(folder, *args, stdin=stdin, limit=limit)
    if not result.ok:
        raise CommitError(f"{folder}: {result.reason}", hint="the savepoint itself is not touched")
    return result.out
