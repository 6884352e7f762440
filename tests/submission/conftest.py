"""Fixtures of the tests of submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.scene import Scene
from tests.submission.scene import Anchoring

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def it(tmp_path: Path) -> Anchoring:
    """A store with two committed savepoints, of which none is anchored."""
    made = Anchoring(tmp_path)
    made.save()
    made.save()
    return made


@pytest.fixture
def cli(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """A store that anchors on the embedded ledger; no worker starts by itself."""
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)
    (tmp_path / "project").mkdir()
    made = Scene(tmp_path / "project", capsysbinary)
    made.anchors = True
    made.good("init", "--instance", "Gabriel #215")
    made.say("hello", "world")
    return made
