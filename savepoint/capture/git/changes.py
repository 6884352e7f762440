"""The changes of a worktree, by bytes: what is staged, changed, untracked, deleted.

No diff is made and no filter runs: a file is stored as it stands on the disk, a staged blob as git
holds it. Whatever cannot be stored is named with its reason.
"""

from __future__ import annotations

import binascii
import errno
import hashlib
import os
import stat
import time
from typing import TYPE_CHECKING

from savepoint.capture.exclusion import key_reason
from savepoint.capture.git import gitindex
from savepoint.core import limits
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.capture.exclusion import Exclusion
    from savepoint.capture.git.borrowed import Blobs
    from savepoint.capture.git.gitindex import Entry
    from savepoint.core.strict_json import Json

OUT_OF_TIME = "out of time"
TOO_MANY = f"more than {limits.CHANGES_FILES} files"
TOO_LARGE = f"more than {limits.CHANGES_BYTES} bytes"
NESTED = "is a repository of its own"

_NOT_REGULAR = "is not a regular file"
_SYMLINK = "120000"
_GITLINK = "160000"
_32_BITS = 2**32 - 1  # what the index keeps of inode and size
# Kernels stamp files with their last clock tick: two writes within one may leave the same time.
_TICK = 20_000_000  # nanoseconds, twice the longest


class Change(NamedTuple):
    """One changed file as a snapshot stores it."""

    path: bytes  # from the worktree's top
    kind: str  # staged | working | untracked
    mode: str  # as git spells it: 100644, 100755, 120000
    data: bytes  # of a symbolic link: its target

    def to_json(self) -> dict[str, Json]:
        """A change's entry without its segments."""
        path = path_json(self.path)
        return {"path": path, "kind": self.kind, "mode": self.mode, "bytes": len(self.data)}


class RawEntry(NamedTuple):
    """One line of git's raw diff format."""

    old_mode: str
    new_mode: str
    old_id: str
    new_id: str  # zeros where git has not looked at the content
    status: str  # A, D, M, T, U
    path: bytes


class IndexFacts(NamedTuple):
    """What decides whether a file is what the index holds."""

    mtime: int  # of the index file, nanoseconds
    algorithm: str  # of its ids: sha1 | sha256
    trust_modes: bool  # core.fileMode: does an executable bit mean anything here?

    def vouches_for(self, entry: Entry, seen: os.stat_result) -> bool:
        """Is the file certainly as git saw it? Nothing says so if the index is no younger."""
        changed, changed_ns, written, written_ns, inode, size = entry.stat
        if (
            seen.st_mtime_ns != written * 10**9 + written_ns
            or seen.st_ctime_ns != changed * 10**9 + changed_ns
            or seen.st_size & _32_BITS != size
            or seen.st_ino & _32_BITS != inode
        ):
            return False
        if not written_ns:  # a file system, or a git, that counts in seconds
            return written < self.mtime // 10**9
        return seen.st_mtime_ns + _TICK < self.mtime

    def holds(
        self, mode: str, size: int, pieces: Iterable[bytes], old_mode: str, old_id: str
    ) -> bool:
        """Are these a blob's mode and bytes? An id is git's hash of them; nothing is fetched."""
        kept = len(mode) if self.trust_modes else 3  # what kind of file it is
        if mode[:kept] != old_mode[:kept]:
            return False
        digest = hashlib.new(self.algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest() == old_id


def path_json(path: bytes) -> Json:
    """A path in UTF-8, or `{"b64": …}` where its bytes are none."""
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": binascii.b2a_base64(path, newline=False).decode()}


def raw_entries(output: bytes) -> Iterator[RawEntry]:
    """What `--raw -z --no-abbrev` prints: header NUL path NUL, and again."""
    parts = output.split(b"\0")
    for header, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, new_mode, old_id, new_id, status = header.decode()[1:].split(" ")
        yield RawEntry(old_mode, new_mode, old_id, new_id, status, path)


class Collector:
    """Gathers the changes of one worktree within the limits of a savepoint.

    `top` and `project` are real paths, `deadline` is of time.monotonic().
    """

    def __init__(self, top: str, project: str, exclusion: Exclusion, deadline: float) -> None:
        self.changes: list[Change] = []
        self.deleted: set[bytes] = set()
        self.excluded: list[tuple[Json, str]] = []  # paths with the reason
        self.lost: dict[str, int] = {}  # reason → files that should have been stored
        self.dirty = False
        self._top = os.fsencode(top)
        self._project = os.fsencode(project)
        self._inside = exclusion
        self._outside = exclusion if top == project else exclusion.moved(top)
        self._deadline = deadline
        self._bytes_left = limits.CHANGES_BYTES
        self._files_left = limits.CHANGES_FILES
        self._folders: dict[bytes, bool] = {}

    def add_staged(self, entries: Iterable[RawEntry], blobs: Blobs) -> None:
        """Blobs of the index that HEAD does not have: `diff-index --cached`."""
        wanted = []
        for entry in entries:
            self.dirty = True
            if entry.status == "D":
                self.deleted.add(entry.path)
            elif entry.status == "U" or entry.new_mode == _GITLINK:
                continue
            elif not self._exclude_if(entry.path, self._forbidden(entry.path)):
                wanted.append(entry)
        if not wanted:
            return
        sizes = blobs.sizes({entry.new_id for entry in wanted})
        chosen = [entry for entry in wanted if self._claim(entry.path, sizes.get(entry.new_id))]
        contents = blobs.contents({entry.new_id for entry in chosen})
        for entry in chosen:
            data = contents.get(entry.new_id)
            if data is None:
                self._lose(entry.path, "git cannot read the staged blob")
            elif not self._exclude_if(entry.path, key_reason(data)):
                self.changes.append(Change(entry.path, "staged", entry.new_mode, data))

    def add_working(
        self, entries: Iterable[RawEntry], suspects: Iterable[Entry], index: IndexFacts
    ) -> None:
        """Tracked files that are not what the index holds: what `diff-files` names, because the
        stat differs, and those suspects of the index whose stat proves nothing.
        """
        known = {}
        for entry in entries:
            if entry.status == "D":
                self.deleted.add(entry.path)
            else:
                known[entry.path] = (entry.old_mode, entry.old_id)
        for suspect in suspects:
            if suspect.path not in known and self._may_differ(suspect, index):
                known[suspect.path] = (f"{suspect.mode:06o}", suspect.oid)
        self.dirty = self.dirty or bool(self.deleted)
        for path, before in known.items():
            self._take_working(path, before, index)

    def add_untracked(self, output: bytes) -> None:
        """Files that git neither tracks nor ignores: `ls-files -o -z`."""
        for path in output.split(b"\0"):
            if path.endswith(b"/"):
                self._exclude_if(path, NESTED)
            elif path and not self._exclude_if(path, self._forbidden(path)):
                found = self._exhausted() or self._read(path, self._bytes_left)
                if found is not None:
                    self._keep(path, "untracked", found)

    def _may_differ(self, entry: Entry, index: IndexFacts) -> bool:
        if entry.mode == gitindex.GITLINK:
            if os.path.lexists(os.path.join(self._top, entry.path, b".git")):
                self._exclude_if(entry.path, NESTED)
            return False
        try:
            seen = os.lstat(b"%b/%b" % (self._top, entry.path))
        except OSError:  # absent: diff-files says so, unless git was told not to look
            return False
        return entry.mode != gitindex.SPARSE_TREE and not index.vouches_for(entry, seen)

    def _take_working(self, path: bytes, before: tuple[str, str], index: IndexFacts) -> None:
        found = self._exhausted() or self._read(path, limits.CHANGES_BYTES)
        if found is None:
            self.deleted.add(path)
        elif self._is_unchanged(path, found, before, index):
            return
        elif not self._exclude_if(path, self._forbidden(path)):
            self._keep(path, "working", found)
        self.dirty = True

    def _is_unchanged(
        self,
        path: bytes,
        found: tuple[str, bytes] | str,
        before: tuple[str, str],
        index: IndexFacts,
    ) -> bool:
        if not isinstance(found, str):
            mode, data = found
            return index.holds(mode, len(data), [data], *before)
        if found != TOO_LARGE:
            return False
        try:
            fd, seen = _open_regular(os.path.join(self._top, path))
        except OSError:
            return False
        try:
            pieces = iter(lambda: b"" if self._exhausted() else os.read(fd, limits.MIB), b"")
            return index.holds(_mode(seen), seen.st_size, pieces, *before)
        finally:
            os.close(fd)

    def _keep(self, path: bytes, kind: str, found: tuple[str, bytes] | str) -> None:
        self.dirty = True
        if isinstance(found, str):
            self._lose(path, found)
        elif not self._exclude_if(path, key_reason(found[1])) and self._claim(path, len(found[1])):
            self.changes.append(Change(path, kind, *found))

    def _read(self, path: bytes, limit: int) -> tuple[str, bytes] | str | None:
        """Mode and at most `limit` bytes of a file; or why not; None if it is gone."""
        whole = os.path.join(self._top, path)
        if not self._is_plain(os.path.dirname(whole)):
            return "lies behind a symbolic link"
        try:
            seen = os.lstat(whole)
            if stat.S_ISLNK(seen.st_mode):
                return _SYMLINK, os.readlink(whole)
            if not stat.S_ISREG(seen.st_mode):
                return _NOT_REGULAR
            return _read_regular(whole, limit) or TOO_LARGE
        except FileNotFoundError:
            return None
        except OSError as failure:
            return (failure.strerror or "cannot be read").lower()

    def _is_plain(self, folder: bytes) -> bool:
        """No link on the way: git follows none, and one could lead out of the project."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = os.path.realpath(folder) == folder
        return known

    def _forbidden(self, path: bytes) -> str | None:
        whole = os.path.join(self._top, path)
        is_inside = whole.startswith(self._project.rstrip(b"/") + b"/")
        return (self._inside if is_inside else self._outside).reason(whole)

    def _claim(self, path: bytes, size: int | None) -> bool:
        """Take `size` bytes of what may be stored; None where git does not have the blob."""
        if size is None:
            self._lose(path, "git does not have the staged blob")
            return False
        reason = self._exhausted() or (TOO_LARGE if size > self._bytes_left else "")
        if reason:
            self._lose(path, reason)
            return False
        self._files_left -= 1
        self._bytes_left -= size
        return True

    def _exhausted(self) -> str:
        if time.monotonic() >= self._deadline:
            return OUT_OF_TIME
        return "" if self._files_left else TOO_MANY

    def _exclude_if(self, path: bytes, reason: str | None) -> bool:
        """Name the file with the reason, if there is one."""
        if reason and len(self.excluded) < limits.CHANGES_FILES:
            self.excluded.append((path_json(path), reason))
        return bool(reason)

    def _lose(self, path: bytes, reason: str) -> None:
        self.lost[reason] = self.lost.get(reason, 0) + 1
        self._exclude_if(path, reason)


def _read_regular(path: bytes, limit: int) -> tuple[str, bytes] | None:
    """Mode and bytes of a file; None if it has more than `limit` bytes. Raises OSError."""
    fd, seen = _open_regular(path)
    try:
        chunks = []
        left = limit + 1 if seen.st_size <= limit else 0
        while left > 0 and (chunk := os.read(fd, min(left, seen.st_size + 1))):
            chunks.append(chunk)
            left -= len(chunk)
    finally:
        os.close(fd)
    return (_mode(seen), b"".join(chunks)) if left > 0 else None


def _open_regular(path: bytes) -> tuple[int, os.stat_result]:
    """A file that was regular when it was looked at: what stands there by now must be as well."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    seen = os.fstat(fd)
    if not stat.S_ISREG(seen.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, _NOT_REGULAR)
    return fd, seen


def _mode(seen: os.stat_result) -> str:
    return "100755" if seen.st_mode & stat.S_IXUSR else "100644"
