"""Fixtures of the tests of `install`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.scene import Scene


@pytest.fixture
def bare(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Scene:
    """A project without a store, and an agent without settings."""
    project = tmp_path / "project"
    project.mkdir()
    return Scene(project, capsysbinary)


@pytest.fixture
def settings() -> Path:
    """Where the agent keeps the user's settings."""
    path = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    path.parent.mkdir()
    return path
