"""Fixtures of the tests of resurrection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's folder, in no git repository."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def bare(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Scene:
    """A project without a store."""
    return Scene(project, capsysbinary)


@pytest.fixture
def cli(bare: Scene) -> Scene:
    """A project with a store of `Gabriel #215`, and a session with two messages."""
    bare.good("init", "--instance", "Gabriel #215")
    bare.say("hello", "world")
    return bare
