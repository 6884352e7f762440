"""A project as a person has it, anchored on the real validator."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.scene import Scene
from tests.ledger.entries import SOL, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ledger.validator import Validator


@pytest.fixture
def anchored(
    validator: Validator, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> Scene:
    """A store with a remote and a payer with coins; the program was deployed from here."""
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote.git")], check=True)
    scene = Scene(project, capsysbinary)
    scene.anchors = True
    scene.good("init", "--instance", "Gabriel #215")
    scene.good("config", "remote", str(tmp_path / "remote.git"))
    scene.good("config", "ledger", validator.url)
    fund(scene)
    return scene


def fund(scene: Scene) -> None:
    """The payer has coins when this returns: what was asked for comes some moments later."""
    scene.good("ledger", "airdrop", str(10 * SOL))
    until(lambda: scene.good("ledger", "balance", "--json").json["balance"] >= SOL)
