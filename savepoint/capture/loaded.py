"""Files that the agent read, was given or wrote: hashed as they are on disk, stored where allowed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from savepoint.capture.agents import FileNote, ReadNote
from savepoint.capture.exclusion import Exclusion
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.core.segments import Segment, cut
from savepoint.core.strict_json import Json
from savepoint.store.files import open_regular
from savepoint.store.packs import PackWriter
from savepoint.store.sessions import CachedFile, Stamp


class Roots(NamedTuple):
    """Below what a loaded file may be stored. Real paths."""

    project: str  # paths below it are named relative to it
    others: tuple[str, ...]  # worktrees, the agent's memory and plan folders

    def holds(self, path: str) -> bool:
        """Is this real path below one of them?"""
        return any(is_below(path, root) for root in (self.project, *self.others))

    def name(self, path: str) -> str:
        """How the snapshot names a file: relative where it is below the project."""
        real = os.path.realpath(path)
        return os.path.relpath(real, self.project) if is_below(real, self.project) else path


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

    def load(self, path: str, note: FileNote, ignored: frozenset[str]) -> LoadedFile:
        """`path` as the agent named it; `ignored`: real paths that .gitignore excludes."""
        real = os.path.realpath(path)
        reason = self._refusal(real, ignored)
        if reason:
            return LoadedFile(note.kind, None, None, None, reason, None)
        try:
            fd = open_regular(real)
        except FileNotFoundError:
            return LoadedFile(note.kind, None, None, True, "no longer there", None)
        except (OSError, SavepointError) as failure:
            return LoadedFile(note.kind, None, None, None, _words(failure), None)
        try:
            return self._load(fd, path, real, note)
        except OSError as failure:
            return LoadedFile(note.kind, None, None, None, _words(failure), None)
        finally:
            os.close(fd)

    def _refusal(self, real: str, ignored: frozenset[str]) -> str:
        if not self._roots.holds(real):
            return "outside the project"
        if real in ignored:
            return "excluded by .gitignore"
        return self._exclusion.reason(os.path.relpath(real, self._roots.project)) or ""

    def _load(self, fd: int, path: str, real: str, note: FileNote) -> LoadedFile:
        seen = os.fstat(fd)
        stamp = Stamp.of(seen)
        before = self._before.get(real)
        if before and before.stamp == stamp and _extra(before) and _extra(before)[0] == note.offset:
            self.cached[real] = before
            _, changed, sha256 = _extra(before)
            return LoadedFile(note.kind, sha256, stamp.size, changed, None, before.segments)
        if seen.st_size > min(limits.LOADED_FILE_BYTES, self._left):
            return LoadedFile(note.kind, None, seen.st_size, None, "too large", None)
        data = _read(fd, seen.st_size)
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


def _read(fd: int, size: int) -> bytes:
    data = os.pread(fd, size, 0)
    while len(data) < size and (more := os.pread(fd, size - len(data), len(data))):
        data += more
    return data


def _extra(cached: CachedFile) -> tuple[int, bool | None, str] | tuple[()]:
    extra = cached.extra
    return tuple(extra) if isinstance(extra, list) and len(extra) == 3 else ()  # type: ignore[return-value]  # written just above; a foreign one compares unequal


def _words(failure: Exception) -> str:
    if isinstance(failure, OSError):
        return (failure.strerror or "cannot be read").lower()
    return "not a regular file"
