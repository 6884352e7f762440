"""Fixtures of the worker's tests: a project with a store whose remote is a bare repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.store import config
from tests.cli.scene import Scene
from tests.gitlayer.remotes import Pushing
from tests.work.scene import Working

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    """A made-up store, whose savepoints are of made-up transcripts."""
    return Pushing.new(tmp_path)


@pytest.fixture
def work(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Working:
    """A project as a person has it, initialised, with a session and a remote. No worker starts by
    itself: it would do what the test looks at.
    """
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)
    folder = tmp_path / "project"
    folder.mkdir()
    return Working.new(Scene(folder, capsysbinary), tmp_path / "remote.git")


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands alone push here."""
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)


@pytest.fixture
def no_wait(request: pytest.FixtureRequest) -> None:
    if "work" in request.fixturenames:
        store = request.getfixturevalue("work").store
        config.load(store)._replace(push_wait=0).save(store)
