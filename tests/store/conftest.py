"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.store import config
from savepoint.store.keys import safekeeping
from savepoint.store.layout import Home
from tests.store.scene import NOW, Scene
from tests.verify import builder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verify.builder import Built


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    built = builder.new(tmp_path / "home", tmp_path / "project")
    builder.save(built, b"one\n")
    store = built.paths.store
    config.load(store)._replace(remote="/srv/remote.git").save(store)
    taken = safekeeping.take(store, config.load(store), NOW)
    assert taken.left_out == ()
    safekeeping.note_made(store, taken.backup)
    return Scene(built, taken.backup, Home(str(tmp_path / "empty")))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("template")
    return builder.store_of(folder / "home", folder / "project", 3)


@pytest.fixture
def built(template: Built, tmp_path: Path) -> Built:
    return builder.copy(template, tmp_path / "home")
