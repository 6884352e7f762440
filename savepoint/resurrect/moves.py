"""Files are brought back under other names first, whole, and appear by a rename each.

What a rename still waits for is written down with the successor (arrival.py), so that a run which
died is finished by the next.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import DiskError, MalformedError, OutputExistsError
from savepoint.core.named import NamedTuple
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.core.strict_json import Json
    from savepoint.store.durable import Folder

_LEFT = re.compile(re.escape(durable.TEMPORARY_PREFIX) + "[0-9a-f]{16}")
MOVE = schema.members(
    {
        "root": schema.text,
        "below": schema.array(schema.text),
        "temporary": schema.text,
        "name": schema.text,
        "folder": schema.truth,
        "inode": schema.count,
    }
)


class Move(NamedTuple):
    """A file or folder that waits under a temporary name, beside where it is to be."""

    root: str  # real path of a folder that was there before
    below: tuple[str, ...]  # folders in it, made where they are missing
    temporary: str
    name: str
    folder: bool
    inode: int | None = None  # by which it is known again, once it has been written

    def to_json(self) -> Json:
        """For the note of what is still to be done."""
        return {**self._asdict(), "below": list(self.below)}

    @classmethod
    def from_json(cls, value: Json) -> Move:
        """The inverse. Raises MalformedError."""
        MOVE(value, "move")
        match value:
            case {"below": [*below], **rest}:
                return cls(below=tuple(map(str, below)), **rest)  # type: ignore[arg-type]  # MOVE
            case _:
                raise MalformedError("a move is not what its shape says")

    @property
    def path(self) -> str:
        """Where it is to be."""
        return os.path.join(self.root, *self.below, self.name)

    @contextmanager
    def place(self) -> Iterator[Folder]:
        """The folder that it is in. Raises OutputExistsError (a link is in the way), DiskError."""
        with ExitStack() as held:
            at = held.enter_context(durable.Folder.at(self.root))
            for name in self.below:
                try:
                    at = held.enter_context(at.folder(os.fsencode(name)))
                except DiskError:
                    self._refuse_link(os.path.join(at.path, name))
                    raise
            yield at

    def _refuse_link(self, path: str) -> None:
        if os.path.islink(path):
            hint = "put a folder there, or bring the parts back with `--only … -o DIR`"
            raise OutputExistsError(f"{path} is a link, which is not followed", hint=hint)

    def written(self) -> Move:
        """The same, for a note: what waits is known again by its inode, whatever is written to it
        later. Raises DiskError.
        """
        with self.place() as at:
            return self._replace(inode=_inode(at, self.temporary))

    def make(self) -> None:
        """It is where it is to be, durably; if it is already, nothing is done.

        Raises OutputExistsError (something else is there), DiskError, also where it is neither
        there nor waiting any more.
        """
        temporary, name = os.fsencode(self.temporary), os.fsencode(self.name)
        with self.place() as at:
            if not at.has(temporary):
                self._demand(at)
            elif self.folder:
                self._publish(at)
            elif not at.take(temporary, name):
                self._settle(at)

    def _demand(self, at: Folder) -> None:
        """A run died behind the rename: then it is there, and it is the one that waited."""
        if self.inode is None or _inode(at, self.name) != self.inode:
            raise DiskError(
                f"{self.path}: what waited for this name, under another, is gone",
                hint="run it again: everything comes back anew",
            )

    def _publish(self, at: Folder) -> None:
        temporary, name = os.fsencode(self.temporary), os.fsencode(self.name)
        try:
            at.publish(temporary, name)
        except DiskError as failure:
            if at.has(temporary) and at.has(name):
                raise OutputExistsError(f"{self.path} is there already") from failure
            raise

    def _settle(self, at: Folder) -> None:
        """A run may have died when the file had both names."""
        if _inode(at, self.temporary) != _inode(at, self.name):
            raise OutputExistsError(f"{self.path} is there already")
        self.drop()

    def drop(self) -> None:
        """What waits is not wanted any more. Never raises: a leftover is harmless."""
        where = os.path.join(self.root, *self.below, self.temporary)
        if self.folder:
            durable.remove_folder(where)
        else:
            durable.remove_quietly(where)


def _inode(at: Folder, name: str) -> int | None:
    fd = at.descriptor(os.fsencode(name))
    if fd is None:
        return None
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def beside(root: str, below: tuple[str, ...], name: str, *, folder: bool) -> Move:
    """A move to that name, from one that nothing has yet."""
    return Move(root, below, durable.temporary_name().decode(), name, folder)


def sweep(folder: str, now: float) -> None:
    """Remove what runs that died have left in a folder, if it is old enough to be nobody's now. It
    is harmless: so no failure counts. now: Unix seconds.
    """
    try:
        entries = [one for one in os.scandir(folder) if _LEFT.fullmatch(one.name)]
        old = [
            one
            for one in entries
            if now - one.stat(follow_symlinks=False).st_mtime > limits.GC_AGE_SECONDS
        ]
    except OSError:
        return
    for one in old:
        if one.is_dir(follow_symlinks=False):
            durable.remove_folder(one.path)
        else:
            durable.remove_quietly(one.path)


def write(
    folder: Folder, parts: tuple[bytes, ...], pieces: Iterable[bytes], mode: int = durable.FILE_MODE
) -> int | None:
    """A file below a folder that is being filled; its size, or None if its name is taken. Raises
    DiskError, also where a file stands in the place of a folder.
    """
    with ExitStack() as held:
        for name in parts[:-1]:
            folder = held.enter_context(folder.folder(name))
        return folder.new(parts[-1], pieces, mode)
