"""Tests of one xdist group run in one worker: each worker would start a validator of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TESTS = """
import os
import pytest

ONE = pytest.mark.xdist_group("one")

@pytest.fixture(params=["alone", pytest.param("grouped", marks=ONE)])
def kind(request):
    return request.param

def note(kind):
    with open("workers", "a") as file:
        file.write(kind + os.environ["PYTEST_XDIST_WORKER"] + chr(10))

@pytest.mark.parametrize("n", range(4))
def test_by_its_fixture(kind, n):
    note(kind)

@pytest.mark.parametrize("n", range(4))
@ONE
def test_by_its_mark(n):
    note("grouped")
"""


def test_a_group_runs_in_one_worker(tmp_path: Path) -> None:
    """With pytest 9.2 xdist 3.8 forgets the groups and says nothing (pytest-xdist#1386)."""
    (tmp_path / "test_some.py").write_text(_TESTS)
    options = ("-q", "-n2", "--dist", "loadgroup", "-p", "no:cacheprovider", "-c", "/dev/null")
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=180)
    assert done.returncode == 0, done.stdout
    ran = (tmp_path / "workers").read_text().split()
    assert len(ran) == 12
    assert len({one for one in ran if one.startswith("grouped")}) == 1
    assert len({one.removeprefix("alone").removeprefix("grouped") for one in ran}) == 2
