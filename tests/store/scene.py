"""A store with a savepoint and the backup of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from savepoint.store.keys.backup import Backup
    from savepoint.store.layout import Home, Store
    from tests.verify.builder import Built

NOW = 1_795_000_000


class Scene(NamedTuple):
    """A store with a savepoint and a remote, and the backup of its keys."""

    built: Built
    kept: Backup
    empty: Home  # another machine

    @property
    def store(self) -> Store:
        return self.built.paths.store

    @property
    def files(self) -> dict[str, bytes]:
        """Keys and trusted heads, by their path in the home."""
        return files_below(Path(self.store.home), "keys", "trusted")


def files_below(home: Path, *folders: str) -> dict[str, bytes]:
    found = [path for folder in folders for path in Path(home, folder).rglob("*")]
    return {str(one.relative_to(home)): one.read_bytes() for one in found if one.is_file()}
