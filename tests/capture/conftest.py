"""What a busy machine must not change: how long git may take for an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from tests.capture.gitrepo import Repo
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that looks at what git says waits for it; what the limit does has tests of its own."""
    monkeypatch.setattr(limits, "CHANGES_SECONDS", 20.0)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.with_commit(tmp_path / "p")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project and a store."""
    return Scene.make(tmp_path / "scene")
