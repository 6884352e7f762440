"""Files that the agent read, was given or wrote: hashed as on disk, stored where allowed."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.capture.exclusion import key_reason
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.segments import Segment, cut
from savepoint.store.files import open_regular, read_at
from savepoint.store.session.sessions import CachedFile, Stamp
from savepoint.store.worktree import find_worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from savepoint.capture.agents import FileNote, ReadNote
    from savepoint.capture.exclusion import Exclusion
    from savepoint.core.strict_json import Json
    from savepoint.store.packs import PackWriter


class Roots(NamedTuple):
    """Below what a loaded file may be stored. Real paths."""

    project: str  # paths below it are named relative to it
    common_dir: str | None  # of its repository: another worktree of it counts as the project
    own: tuple[str, ...]  # the agent's memory and plan folders

    @classmethod
    def of(cls, project: str, own: Iterable[str]) -> Roots:
        """For a project's folder, as the agent names it."""
        real = os.path.realpath(project)
        tree = find_worktree(real)
        return cls(real, tree.common_dir if tree else None, tuple(map(os.path.realpath, own)))

    def holds(self, path: str) -> bool:
        """Is this real path below one of them?"""
        return any(is_below(path, root) for root in (self.project, *self.own)) or self._is_beside(
            path
        )

    def _is_beside(self, path: str) -> bool:
        tree = find_worktree(os.path.dirname(path)) if self.common_dir else None
        return tree is not None and tree.common_dir == self.common_dir

    def name(self, path: str, real: str) -> str:
        """How the snapshot names a file: relative where it is below the project."""
        if not is_below(real, self.project):
            return path
        return real[len(self.project.rstrip("/")) + 1 :]


def is_below(path: str, root: str) -> bool:
    """Is `path` inside the folder `root`? Both real."""
    return path.startswith(root.rstrip("/") + "/")


class LoadedFile(NamedTuple):
    """One file of the list. Segments have stand-ins for packs until the save settles."""

    known: str  # read | attached | written
    sha256: str | None
    size: int | None
    changed: bool | None  # since the agent saw it; None where that cannot be told
    reason: str | None  # why it is not stored
    segments: tuple[Segment, ...] | None

    def to_json(self, settled: Callable[[Segment], Segment]) -> Json:
        """The entry of `loaded_files`."""
        listed = None if self.segments is None else [settled(s).to_json() for s in self.segments]
        return {**self._asdict(), "segments": listed}


class Loader:
    """Looks at each file that a session names. One instance a save."""

    def __init__(
        self,
        roots: Roots,
        exclusion: Exclusion,
        packs: PackWriter,
        before: Mapping[str, CachedFile],
        note_of: Callable[[FileNote, str], ReadNote | None],
    ) -> None:
        self._roots = roots
        self._exclusion = exclusion
        self._packs = packs
        self._before = before
        self._note_of = note_of
        self._left = limits.LOADED_TOTAL_BYTES
        self.cached: dict[str, CachedFile] = {}  # real path → what the next save may build on

    def load(self, path: str, real: str, note: FileNote, ignored: Mapping[str, str]) -> LoadedFile:
        """`path` as the agent named it; `ignored`: real path → why git leaves it out."""
        reason = self._refusal(real, ignored)
        if reason:
            return _unstored(note, reason)
        try:
            known = self._known(os.lstat(real), real, note)
            if known:
                return known
            fd = open_regular(real)
        except FileNotFoundError:
            return _unstored(note, "no longer there")
        except (OSError, SavepointError) as failure:
            return _unstored(note, _words(failure))
        try:
            return self._load(fd, path, real, note)
        except OSError as failure:
            return _unstored(note, _words(failure))
        finally:
            os.close(fd)

    def _refusal(self, real: str, ignored: Mapping[str, str]) -> str | None:
        if not self._roots.holds(real):
            return "outside the project"
        return ignored.get(real) or self._exclusion.reason(real)

    def _known(self, seen: os.stat_result, real: str, note: FileNote) -> LoadedFile | None:
        """What the last savepoint has of the file, if neither it nor what was shown is newer."""
        before = self._before.get(real)
        seen_before = _SeenBefore.of(before)
        stamp = Stamp.of(seen)
        if not before or not seen_before:
            return None
        if (before.stamp, seen_before.offset) != (stamp, note.offset):
            return None
        self.cached[real] = before
        _, changed, sha256 = seen_before
        return LoadedFile(note.kind, sha256, stamp.size, changed, None, before.segments)

    def _load(self, fd: int, path: str, real: str, note: FileNote) -> LoadedFile:
        seen = os.fstat(fd)
        stamp = Stamp.of(seen)
        if seen.st_size > min(limits.LOADED_FILE_BYTES, self._left):
            return _unstored(note, "too large")._replace(size=seen.st_size)
        data = read_at(fd, seen.st_size, 0)
        secret = key_reason(data)
        if secret:
            return _unstored(note, secret)
        self._left -= len(data)
        sha256 = hashlib.sha256(data).hexdigest()
        changed = _changed(data, self._note_of(note, path))
        segments = store_bytes(data, self._packs)
        stamp = stamp._replace(size=len(data))
        self.cached[real] = CachedFile(stamp, segments, [note.offset, changed, sha256])
        return LoadedFile(note.kind, sha256, len(data), changed, None, segments)


def store_bytes(data: bytes, packs: PackWriter) -> tuple[Segment, ...]:
    """Cut and store a file that is in memory. Raises DiskError."""
    found = []
    start = 0
    while (stop := cut(data, start, final=True)) is not None:
        found.append(packs.add(data[start:stop]))
        start = stop
    return tuple(found)


def _changed(data: bytes, note: ReadNote | None) -> bool | None:
    """Does the file still hold the lines that the agent was shown? Most reads show a part only."""
    if note is None:
        return None
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    first = note.start_line - 1
    shown = b"\n".join(lines if note.whole else lines[first : first + note.line_count])
    hashes = {hashlib.sha256(text).hexdigest() for text in (data if note.whole else shown, shown)}
    return note.sha256 not in hashes


class _SeenBefore(NamedTuple):
    """What the cache of a session says of a loaded file."""

    offset: int  # of the record that showed it
    changed: bool | None
    sha256: str

    @classmethod
    def of(cls, cached: CachedFile | None) -> _SeenBefore | None:
        """None where there is nothing of this kind."""
        match cached.extra if cached else None:
            case [int(offset), bool() | None as changed, str(sha256)]:
                return cls(offset, changed, sha256)
            case _:
                return None


def _unstored(note: FileNote, reason: str) -> LoadedFile:
    return LoadedFile(note.kind, None, None, None, reason, None)


def _words(failure: Exception) -> str:
    if isinstance(failure, OSError):
        return (failure.strerror or "cannot be read").lower()
    return "not a regular file"
