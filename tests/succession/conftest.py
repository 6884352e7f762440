"""Fixtures of the succession's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.succession.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project with a commit, and a store."""
    return Scene(tmp_path / "scene")
