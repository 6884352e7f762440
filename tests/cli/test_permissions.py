"""What the user may not read or write: said as that, with what helps; never taken for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.scene import Scene, without_privileges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PLACES: dict[str, Callable[[Scene], str]] = {
    "home": lambda cli: cli.home.path,
    "stores": lambda cli: cli.home.stores,
    "store": lambda cli: cli.paths.store.path,
    "config": lambda cli: cli.paths.store.config,
    "index": lambda cli: cli.paths.index_file,
}


@pytest.fixture(params=_PLACES)
def closed(cli: Scene, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A place that nobody may read."""
    cli.created()
    path = Path(_PLACES[request.param](cli))
    mode = path.stat().st_mode
    path.chmod(0)
    yield path
    path.chmod(mode)


@pytest.mark.parametrize("command", ["list", "create", "verify", "show"])
def test_what_may_not_be_read_is_40(cli: Scene, closed: Path, command: str) -> None:
    """It was `no store here: run savepoint init`, or: free space."""
    ran = without_privileges(command, cwd=cli.project)
    told = ran.stderr.decode() + ran.stdout.decode()
    assert ran.returncode == 40, told
    assert f"{closed}" in told
    assert "permission denied" in told
    assert "hint: look at its permissions" in told


def test_a_lost_map_and_a_store_that_may_not_be_read(cli: Scene, tmp_path: Path) -> None:
    """Nobody can say that the folder has no store; a store that the map knows is not asked for."""
    other = tmp_path / "other"
    other.mkdir()
    store = Path(cli.paths.store.path)
    store.chmod(0)
    try:
        assert without_privileges("list", cwd=other).returncode == 10
        Path(cli.home.stores_file).unlink()
        assert without_privileges("list", cwd=other).returncode == 40
    finally:
        store.chmod(0o700)
    assert cli.good("list")


def test_a_folder_that_may_not_be_written(cli: Scene) -> None:
    path = Path(cli.paths.snapshots)
    path.chmod(0o500)
    try:
        ran = without_privileges("create", cwd=cli.project)
    finally:
        path.chmod(0o700)
    assert ran.returncode == 40
    assert b"hint: look at its permissions" in ran.stderr
