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
from savepoint.resurrect import members
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json
    from savepoint.store.durable import Folder

_BLOCK = 1 << 20  # bytes read at once
_REPLACED = "replaced"  # folder for what was there, beside the files that came over it
_NEW_MODE = 0o666  # less what the owner's umask takes
_SHAPE = schema.members(
    {"source": schema.text, "folder": schema.text, "project": schema.text, "force": schema.truth}
)


class Apply(NamedTuple):
    """Which files go over which project: all that came back, without those that lay outside."""

    source: str  # real path of the folder that came back
    folder: str  # name of the one in it whose files go over the project
    project: str  # real path
    force: bool

    def to_json(self) -> Json:
        """For the note of what is still to be done."""
        return {**self._asdict()}

    @classmethod
    def from_json(cls, value: Json) -> Apply:
        """The inverse. Raises MalformedError."""
        _SHAPE(value, "apply")
        match value:
            case {**members_}:
                return cls(**members_)  # type: ignore[arg-type]  # _SHAPE
            case _:
                raise MalformedError("apply is not what its shape says")

    def run(self) -> list[str]:
        """Put them over the project; those that stay out of it, since something else is there by
        now. Raises DiskError.
        """
        with durable.Folder.at(self.source) as source, durable.Folder.at(self.project) as target:
            kept = [parts for parts in self._paths() if not self._one(source, target, parts)]
        return [os.fsdecode(b"/".join(parts)) for parts in kept]

    def _paths(self) -> Iterator[tuple[bytes, ...]]:
        """The parts of each path."""
        top = os.fsencode(os.path.join(self.source, self.folder))
        if not os.path.isdir(top):
            return  # the savepoint has no loaded files
        for folder, _, names in os.walk(top, onerror=_refuse):
            below = folder[len(top) :].split(b"/")[1:]
            if below[:1] != [members.OUTSIDE]:
                yield from ((*below, name) for name in names)

    def _one(self, source: Folder, target: Folder, parts: tuple[bytes, ...]) -> bool:
        with ExitStack() as held:
            here = _enter(held, source, (os.fsencode(self.folder), *parts[:-1]))
            try:
                before = _at(target, parts)
            except DiskError:
                return False  # a link, or no file, in its place: to write through it is never meant
            if before == _digest(here, parts[-1]):
                return True
            there = _enter(held, target, parts[:-1])
            name, mode = parts[-1], _mode(there, parts[-1])
            if before is None:
                return there.put(name, _pieces(here, name), mode, over=False)
            if not self.force or _kept(source, there, parts) != _digest(there, name):
                return False
            return there.put(name, _pieces(here, name), mode, over=True)


def _kept(source: Folder, there: Folder, parts: tuple[bytes, ...]) -> str | None:
    """A copy of what is there, and the SHA-256 of it. One that a run which died has kept stays: of
    other bytes there is one in a folder of its own.
    """
    name, number = parts[-1], 1
    while True:
        top = _REPLACED if number == 1 else f"{_REPLACED}.{number}"
        with ExitStack() as held:
            kept = _enter(held, source, (top.encode(), *parts[:-1]))
            made = kept.put(name, _pieces(there, name), durable.FILE_MODE, over=False)
            found = _digest(kept, name)
        if made or found == _digest(there, name):
            return found
        number += 1


class Conflicts(NamedTuple):
    """Files of a project that are not as they would come back."""

    differ: list[str]
    barred: list[str]  # where a link stands, or something that is no file or no folder


def conflicts(project: str, wanted: dict[tuple[bytes, ...], str]) -> Conflicts:
    """Which of the files stand in the project with other content, or cannot. wanted: parts of a
    path → SHA-256. Raises DiskError (the project cannot be opened).
    """
    found = Conflicts([], [])
    with durable.Folder.at(project) as target:
        for parts, sha256 in wanted.items():
            try:
                here = _at(target, parts)
            except DiskError:
                found.barred.append(os.fsdecode(b"/".join(parts)))
                continue
            if here not in (None, sha256):
                found.differ.append(os.fsdecode(b"/".join(parts)))
    return found


def refuse(found: Conflicts, project: str, *, force: bool) -> None:
    """Raises OutputExistsError where files would be in the way of what came back."""
    if found.barred:
        raise OutputExistsError(
            f"{_shown(found.barred)} cannot be put over {project}: a link, or something that is "
            "no file, is in the way",
            hint="move that away, or leave out --apply",
        )
    if found.differ and not force:
        raise OutputExistsError(
            f"{len(found.differ)} files of {project} differ from the savepoint's: "
            f"{_shown(found.differ)}",
            hint="say --force to replace them, with a copy kept, or leave out --apply",
        )


def _shown(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")


def _refuse(failure: OSError) -> None:
    raise DiskError.of(failure) from failure


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
