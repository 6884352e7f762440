"""A link in the place of a file of ours: not followed, and called a link by every command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.scene import Scene

_PLACES: dict[str, Callable[[Scene], str]] = {
    "config": lambda cli: cli.paths.store.config,
    "index": lambda cli: cli.paths.index_file,
    "snapshot": lambda cli: str(next(Path(cli.paths.snapshots).iterdir())),
    "key": lambda cli: cli.paths.authority,
    "root": lambda cli: cli.paths.store.root_seed,
    "pack": lambda cli: str(next(Path(cli.paths.store.objects).glob("*/*.pack"))),
}
_TOLD_BY = {
    "config": ("list", "create", "fsck", "doctor"),
    "index": ("list", "create", "verify", "fsck", "doctor"),
    "snapshot": ("verify", "fsck"),
    "key": ("create", "doctor"),
    "root": ("doctor",),
    "pack": ("verify", "fsck"),
}


@pytest.mark.parametrize("place", _PLACES)
def test_a_link_is_called_a_link(cli: Scene, place: str) -> None:
    cli.created()
    path = Path(_PLACES[place](cli))
    target = path.rename(f"{path}.elsewhere")
    path.symlink_to(target)
    for command in _TOLD_BY[place]:
        ran = cli(command)
        assert ran.code != 0, command
        assert "is a link" in ran.text + ran.err, (command, ran)
        assert "Too many levels" not in ran.text + ran.err


@pytest.mark.parametrize("name", ["lock", "logs/precompact-status.jsonl"])
def test_a_link_where_we_write(cli: Scene, name: str) -> None:
    """It was: too many levels of symbolic links; free space."""
    cli.created()
    folder = cli.paths.store.path if name == "lock" else cli.paths.path
    path = Path(folder, name)
    path.unlink()
    path.symlink_to("/dev/null")
    ran = cli("create")
    assert "is a link" in ran.err
    assert "space" not in ran.err
