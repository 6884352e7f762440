"""Loaded files over a project: those that are missing or equal without a word, those that differ
only if the owner says so, and then with a copy of what was there.

Between the test and the write a link may be put in the place of a folder or a file: each step is
taken from an open folder, and a file appears by a rename into it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING

from savepoint.core import schema
from savepoint.core.errors import DiskError, MalformedError, OutputExistsError
from savepoint.core.named import NamedTuple
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json
    from savepoint.store.durable import Folder

_BLOCK = 1 << 20  # bytes read at once
_REPLACED = b"replaced"  # folder for what was there, beside the files that came over it
_NEW_MODE = 0o666  # less what the owner's umask takes
_SHAPE = schema.members(
    {
        "source": schema.text,
        "folder": schema.text,
        "project": schema.text,
        "names": schema.array(schema.text),
        "force": schema.truth,
    }
)


class Apply(NamedTuple):
    """Which files go over which project."""

    source: str  # real path of the folder that came back
    folder: str  # name of the one in it whose files go over the project
    project: str  # real path
    names: tuple[str, ...]  # relative paths, in hex of their bytes
    force: bool

    def to_json(self) -> Json:
        """For the note of what is still to be done."""
        return {**self._asdict(), "names": list(self.names)}

    @classmethod
    def from_json(cls, value: Json) -> Apply:
        """The inverse. Raises MalformedError."""
        _SHAPE(value, "apply")
        match value:
            case {"names": [*names], "force": force, **rest}:
                return cls(names=tuple(map(str, names)), force=force is True, **rest)  # type: ignore[arg-type]  # _SHAPE
            case _:
                raise MalformedError("apply is not what its shape says")

    def paths(self) -> Iterator[tuple[bytes, ...]]:
        """The parts of each path."""
        for one in self.names:
            yield tuple(bytes.fromhex(one).split(b"/"))

    def run(self) -> None:
        """Put them over the project. Raises OutputExistsError (some differ by now; all others are
        in their place), DiskError.
        """
        with durable.Folder.at(self.source) as source, durable.Folder.at(self.project) as target:
            kept = [parts for parts in self.paths() if not self._one(source, target, parts)]
        left = [os.fsdecode(b"/".join(parts)) for parts in kept]
        if left:
            raise differing(left, self.project)

    def _one(self, source: Folder, target: Folder, parts: tuple[bytes, ...]) -> bool:
        with ExitStack() as held:
            here = _enter(held, source, (os.fsencode(self.folder), *parts[:-1]))
            there = _enter(held, target, parts[:-1])
            if there.put(parts[-1], _pieces(here, parts[-1]), _NEW_MODE, over=False):
                return True
            if _digest(here, parts[-1]) == _digest(there, parts[-1]):
                return True
            if not self.force:
                return False
            kept = _enter(held, source, (_REPLACED, *parts[:-1]))
            kept.put(parts[-1], _pieces(there, parts[-1]), durable.FILE_MODE, over=False)
            mode = _mode(there, parts[-1])
            return there.put(parts[-1], _pieces(here, parts[-1]), mode, over=True)


def conflicts(project: str, wanted: dict[tuple[bytes, ...], str]) -> list[str]:
    """Which of the files stand in the project with other content, or behind a link. wanted: parts
    of a path → SHA-256. Raises DiskError (the project cannot be opened).
    """
    found = []
    with durable.Folder.at(project) as target:
        for parts, sha256 in wanted.items():
            try:
                here = _at(target, parts)
            except DiskError:
                here = ""  # a link, or no folder, in the way
            if here not in (None, sha256):
                found.append(os.fsdecode(b"/".join(parts)))
    return found


def differing(names: list[str], project: str) -> OutputExistsError:
    """What to say of files that differ from what came back."""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
    return OutputExistsError(
        f"{len(names)} files of {project} differ from the savepoint's: {shown}",
        hint="say --force to replace them, with a copy kept, or leave out --apply",
    )


def _at(target: Folder, parts: tuple[bytes, ...]) -> str | None:
    """The SHA-256 of a file of the project; None where there is none. Makes nothing."""
    with ExitStack() as held:
        for name in parts[:-1]:
            fd = target.descriptor(name)
            if fd is None:
                return None
            target = held.enter_context(
                durable.Folder(fd, os.path.join(target.path, os.fsdecode(name)))
            )
        return _digest(target, parts[-1])


def _enter(held: ExitStack, folder: Folder, parts: tuple[bytes, ...]) -> Folder:
    for name in parts:
        folder = held.enter_context(folder.folder(name))
    return folder


def _digest(folder: Folder, name: bytes) -> str | None:
    digest = hashlib.sha256()
    fd = folder.descriptor(name)
    if fd is None:
        return None
    os.close(fd)
    for piece in _pieces(folder, name):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(folder: Folder, name: bytes) -> Iterator[bytes]:
    fd = folder.descriptor(name)
    if fd is None:
        return
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise DiskError(f"{os.path.join(folder.path, os.fsdecode(name))} is no file")
        while data := file.read(_BLOCK):
            yield data


def _mode(folder: Folder, name: bytes) -> int:
    fd = folder.descriptor(name)
    if fd is None:
        return _NEW_MODE
    try:
        return stat.S_IMODE(os.fstat(fd).st_mode)
    finally:
        os.close(fd)
