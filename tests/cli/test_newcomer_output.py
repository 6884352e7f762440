"""A file that `-o` names: never one of the stores' own, and never stdout by a guess."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.scene import Scene

_COMMANDS = [("export", "latest"), ("keys", "backup")]


def _bytes_of_all(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize("which", ["index_file", "root_seed", "config", "stores_file", "new"])
@pytest.mark.parametrize("through", ["path", "link", "relative"])
def test_force_does_not_overwrite_what_is_ours(
    cli: Scene, command: tuple[str, ...], which: str, through: str
) -> None:
    cli.created()
    paths, home = cli.paths, Path(cli.home.path)
    target = {
        "index_file": paths.index_file,
        "root_seed": paths.store.root_seed,
        "config": paths.store.config,
        "stores_file": cli.home.stores_file,
        "new": str(home / "new.json"),
    }[which]
    if through == "link":
        (cli.project / "door").symlink_to(home)
        target = str(cli.project / "door" / os.path.relpath(target, home))
    elif through == "relative":
        target = os.path.relpath(target, cli.project)
    before = _bytes_of_all(home)
    ran = cli(*command, "-o", target, "--force")
    assert ran.code == 2, ran.text
    assert "choose a file elsewhere" in ran.err
    assert _bytes_of_all(home) == before


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_dash_is_not_taken_for_a_file(cli: Scene, command: tuple[str, ...]) -> None:
    cli.created()
    ran = cli(*command, "-o", "-")
    assert ran.code == 2
    assert "name a file" in ran.err
    assert not (cli.project / "-").exists()
