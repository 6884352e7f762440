"""What all tests share: a home that is nobody's, and what a test may need of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.claude import client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

pytest_plugins = ["tests.counted_skips", "tests.ledger.validator"]

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"
_OWN_HOME = Path.home()  # before any test has a home of its own
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", _OWN_HOME / ".cache"), "savepoint-tests")

# Derandomized, so that a run that passed here passes there; bounded, so that it ends.
hypothesis.settings.register_profile(
    "ci", derandomize=True, max_examples=100, deadline=None, print_blob=True
)
hypothesis.settings.load_profile("ci")

_FOREIGN = ("GIT_", "SAVEPOINT_", "CLAUDE", "XDG_")  # what a developer's shell may have set
_GIT_CONFIG = """\
[user]
    name = Ada
    email = ada@example.invalid
[init]
    defaultBranch = main
"""


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Holds for fixtures of wider scope than one test."""
    with pytest.MonkeyPatch.context() as patch:
        _live_in(tmp_path_factory.mktemp("session-home"), patch)
        yield


@pytest.fixture(autouse=True)
def home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A new home for each test: none sees or touches the real one, its keys or git settings."""
    folder = tmp_path_factory.mktemp("home")
    _live_in(folder, monkeypatch)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _live_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        patch.delenv(name)
    (folder / ".gitconfig").write_text(_GIT_CONFIG, encoding="utf-8")
    patch.setenv("HOME", str(folder))
    patch.setenv("SAVEPOINT_HOME", str(folder / ".savepoint"))
    patch.setenv("CLAUDE_CONFIG_DIR", str(folder / ".claude"))
    patch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("GIT_TERMINAL_PROMPT", "0")


# A test that needs something asks for its fixture. Each skips with one fixed reason; how often that
# may happen on which machine stands in expected-skips.toml.


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real transcripts and vectors beside the project; read-only."""
    return SHARED if SHARED.is_dir() else _lacking("../shared")


@pytest.fixture(scope="session")
def root() -> None:
    """Run as root."""
    if os.geteuid() != 0:
        _lacking("root")


@pytest.fixture(scope="session")
def strace() -> str:
    """The path of a strace that may trace."""
    program = shutil.which("strace")
    return program if program and _works(program, "-o", os.devnull, "true") else _lacking("strace")


@pytest.fixture(scope="session")
def zstd() -> str:
    """The path of the stock zstd program."""
    return shutil.which("zstd") or _lacking("zstd")


@pytest.fixture(scope="session")
def age() -> str:
    """The path of the stock age program."""
    return shutil.which("age") or _lacking("age")


@pytest.fixture(scope="session")
def claude_program() -> Path:
    """The path of the real client; installed with npm, once a machine and outside the tree."""
    return client.installed(_CACHE / "claude", _OWN_HOME) or _lacking("npm")


@pytest.fixture(scope="session")
def tmux() -> str:
    """The path of tmux: a terminal whose picture can be read."""
    return shutil.which("tmux") or _lacking("tmux")


@pytest.fixture(scope="session")
def loop_mount() -> None:
    """An ext4 image can be made and mounted through a loop device."""
    if not (
        sys.platform == "linux"
        and os.geteuid() == 0
        and shutil.which("mkfs.ext4")
        and _works("losetup", "--find")
    ):
        _lacking("a loop-mounted ext4")


@pytest.fixture(scope="session")
def validator_program() -> Path:
    """The real `solana-test-validator`: SOLANA_TEST_VALIDATOR (from the project's root), PATH,
    ../shared/bin.
    """
    named = os.environ.get("SOLANA_TEST_VALIDATOR")
    if named:
        return PROJECT / named
    found = Path(shutil.which("solana-test-validator") or SHARED / "bin/solana-test-validator")
    return found if found.exists() else _lacking("solana-test-validator")


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=90).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _lacking(what: str) -> NoReturn:
    pytest.skip(f"needs {what}")
