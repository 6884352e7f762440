"""What the tests of the program share."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.program.scene import Scene
from tests.structure.sources import PROJECT

# Before any test has a home of its own: the toolchain is in the user's.
_OWN = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
_CACHE = Path(_OWN.get("XDG_CACHE_HOME", Path.home() / ".cache"), "savepoint")
_VERSIONS = re.compile(r"^readonly rustc_version=(\S+) llvm=\S+ linker_version=(\S+)", re.MULTILINE)


@pytest.fixture
def scene() -> Scene:
    """Nothing on chain yet."""
    return Scene()


@pytest.fixture
def begun() -> Scene:
    """With a first entry."""
    return Scene().begun()


@pytest.fixture
def program_toolchain() -> dict[str, str]:
    """The environment in which scripts/build-program builds; a test installs nothing."""
    found = _VERSIONS.search((PROJECT / "scripts/build-program").read_text(encoding="utf-8"))
    assert found is not None
    compiler, linker = found.groups()
    if (
        not _is_version("/usr/bin/rustc", compiler)
        or not (_CACHE / f"sbpf-linker-{linker}").is_dir()
    ):
        pytest.skip("needs the program's toolchain")
    return {**os.environ, **_OWN}


def _is_version(program: str, version: str) -> bool:
    if not os.access(program, os.X_OK):
        return False
    told = subprocess.run([program, "--version"], capture_output=True, check=True, timeout=180)
    return told.stdout.split()[1] == version.encode()
