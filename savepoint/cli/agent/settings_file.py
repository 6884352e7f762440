"""A settings file of the agent on disk: read whole, changed whole, through a link to what it means.

The link stays and its target changes (antigravity-cli-statusline#48: dotfiles became plain files);
what its owner made read-only is refused (agent-of-empires#3930).
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from savepoint.core import limits
from savepoint.core.errors import DiskError, SavepointError, SettingsError
from savepoint.store import durable
from savepoint.store.files import read_bounded

_ANY_WRITE = 0o222


class SettingsFile(NamedTuple):
    """The file as it was read."""

    path: str  # as the agent names it
    target: str  # where it really is
    text: str | None  # None: there is none
    mode: int  # permission bits

    @classmethod
    def read(cls, path: str) -> SettingsFile:
        """Raises SettingsError, DiskError."""
        target = os.path.realpath(path)
        text, mode = _read(target, path)
        return cls(path, target, text, mode)

    def write(self, text: str) -> str | None:
        """Change the file, or make it; the topmost folder that had to be made for it.

        Raises SettingsError where that is refused, DiskError. The file is then as it was.
        """
        self._refuse()
        folder = os.path.dirname(self.target)
        made = _first_missing(folder)
        if made is not None and os.path.islink(self.path):
            raise SettingsError(
                f"{self.path} is a link to {self.target}, whose folder is not there"
            )
        durable.make_directories(folder)
        if SettingsFile.read(self.path).text != self.text:
            raise SettingsError(f"{self.target} was changed just now by another program")
        durable.replace(self.target, text.encode("utf-8"), mode=self.mode)
        return made

    def remove(self, folder: str | None) -> None:
        """There is no file, as before `install`, nor the folder that was made for it, if it is
        empty. Raises SettingsError, DiskError.
        """
        self._refuse()
        durable.remove(self.target)
        if folder is not None:
            durable.remove_empty_folder(folder)

    def _refuse(self) -> None:
        if self.text is not None and not self.mode & _ANY_WRITE:
            raise SettingsError(
                f"{self.target} is read-only", hint="its owner manages it: add the hooks there"
            )


def _read(target: str, path: str) -> tuple[str | None, int]:
    try:
        data = read_bounded(target, limits.SMALL_DOCUMENT_BYTES)
        mode = stat.S_IMODE(os.stat(target).st_mode) if data is not None else durable.FILE_MODE
    except DiskError:
        raise
    except (SavepointError, OSError) as failure:
        raise SettingsError(f"{path}: {failure}") from None
    if data is None:
        return None, mode
    try:
        return data.decode("utf-8"), mode
    except UnicodeDecodeError:
        raise SettingsError(f"{target} is not UTF-8") from None


def _first_missing(folder: str) -> str | None:
    """The topmost folder that is not there."""
    missing = None
    while not os.path.isdir(folder):
        missing, folder = folder, os.path.dirname(folder)
    return missing
