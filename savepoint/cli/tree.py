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
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.tree import contents
from savepoint.resurrect import members
from savepoint.store import savepoints, worktree
from savepoint.store.durable import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

_READ_BYTES = 8 * limits.MIB  # of blobs asked for at once
_MODES = {"100644": 0o666, "100755": 0o777, "120000": 0o666}  # less what the umask takes
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


def wanted(at: place.Place, document: dict[str, Json], folder: str) -> Wanted:
    """Check that it can be made, before anything is. Raises OutputExistsError, UsageError,
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
    return found


def make(where: Wanted, store: Store, document: dict[str, Json]) -> None:
    """The worktree with its files: as committed, then as changed, without what was deleted. Raises
    CommitError (git), TamperedError, DiskError; then what was made of it is removed.
    """
    _demand(
        where.project, "worktree", "add", "--no-checkout", "--detach", where.folder, where.commit
    )
    try:
        _demand(where.folder, "read-tree", where.commit)
        changes = _Changes(store, document)
        gone = {*changes.present, *changes.staged, *changes.deleted}
        with Folder.at(os.path.realpath(where.folder)) as folder:
            for one, data in _contents(
                where, [one for one in _listed(where) if one.path not in gone]
            ):
                _put(folder, one.path, [data], one.mode)
            for path, (mode, stored) in changes.on_disk().items():
                _put(folder, path, savepoints.content(store, stored), mode)
        _stage(where, changes)
    except BaseException:
        _git(where.project, "worktree", "remove", "--force", where.folder)
        raise


class _Changes:
    """What a savepoint knows beside the commit, by path."""

    def __init__(self, store: Store, document: dict[str, Json]) -> None:
        self._store = store
        files = [one for one in savepoints.files(store, document) if one.part == "changes"]
        entries = _objects(savepoints.listed(store, document, ("git_state", "changes", "files")))
        self.present: dict[bytes, tuple[str, StoredFile]] = {}
        self.staged: dict[bytes, tuple[str, StoredFile]] = {}
        for one, entry in zip(files, entries, strict=True):
            kind = self.present if entry["kind"] in _PRESENT else self.staged
            path = members.path_bytes(one.path)
            if not member_names.hazard(tuple(path.split(b"/"))):
                kind[path] = (str(entry["mode"]), one)
        deleted = savepoints.listed(store, document, ("git_state", "changes", "deleted"))
        names = deleted if isinstance(deleted, list) else []
        self.deleted = {members.path_bytes(one) for one in names}

    def on_disk(self) -> dict[bytes, tuple[str, StoredFile]]:
        """What stood there: as it was staged, unless it was changed or deleted after that."""
        kept = {path: one for path, one in self.staged.items() if path not in self.deleted}
        return {**kept, **self.present}

    def content(self, path: bytes) -> bytes:
        """The bytes that were staged."""
        return b"".join(savepoints.content(self._store, self.staged[path][1]))


def _stage(where: Wanted, changes: _Changes) -> None:
    """What was staged is staged again."""
    lines = []
    for path, (mode, _) in changes.staged.items():
        data = changes.content(path)
        blob = _demand(where.folder, "hash-object", "-w", "--stdin", "--no-filters", stdin=data)
        lines.append(b"%b %b\t%b\0" % (mode.encode(), blob.strip(), path))
    if lines:
        _demand(where.folder, "update-index", "-z", "--index-info", stdin=b"".join(lines))


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
            folder = held.enter_context(folder.folder(name))
        if folder.new(parts[-1], pieces, _MODES.get(mode, 0o666)) is None:
            shown = path.decode("utf-8", "backslashreplace")
            raise OutputExistsError(f"{os.path.join(folder.path, shown)} is there already")


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


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
