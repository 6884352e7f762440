"""Fixtures of the command line's tests."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from savepoint.store.keys import backup
from tests.cli.scene import WORD, Scene
from tests.gitlayer.remotes import Bare
from tests.store import scrypt_age

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What is started takes SIGINT: a shell that puts a test run in its background ignores it for
    all that comes below.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backups that take no seconds: the same format, with less work."""
    monkeypatch.setattr(backup, "seal", scrypt_age.seal)


@pytest.fixture
def word(tmp_path: Path) -> str:
    """The path of a file with the passphrase."""
    path = tmp_path / "passphrase"
    path.write_text(f"{WORD}\n")
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "keys.age"


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker that starts by itself would do, `sync` does when a test says so."""
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)


@pytest.fixture
def anchored(cli: Scene) -> Scene:
    """Savepoints 2 and 3, the newer one in an entry on the embedded ledger."""
    for text in ("one", "two"):
        cli.say(text)
        cli.created()
    cli.good("config", "ledger", "embedded")
    cli.good("sync")
    return cli


@pytest.fixture
def remote(tmp_path: Path) -> None:
    """Beside the project."""
    Bare.new(tmp_path / "remote.git")
