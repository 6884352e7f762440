"""A skip that nobody expects fails the run, alone and with several workers."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests import conftest
from tests.counted_skips import ANY, differences

if TYPE_CHECKING:
    from pathlib import Path

_TESTS = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_skipped(n):
    pytest.skip("needs luck")

@pytest.mark.xfail(reason="not a skip", strict=True)
def test_expected_failure():
    assert False

def test_passed():
    pass
"""
_SKIPPED_MODULE = """
import pytest
pytest.skip("needs a module", allow_module_level=True)
"""
_EXPECTED = """
[right]
"needs luck" = 3
"needs a module" = 1
[loose]
"needs luck" = "any"
"needs a module" = "any"
[fewer]
"needs luck" = 2
"needs a module" = 1
[unlisted]
"needs luck" = 3
[more]
"needs luck" = 3
"needs a module" = 1
"needs root" = 1
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "tests").mkdir()
    (folder / "tests/expected-skips.toml").write_text(_EXPECTED)
    (folder / "tests/test_some.py").write_text(_TESTS)
    (folder / "tests/test_module.py").write_text(_SKIPPED_MODULE)
    return folder


def _run(suite: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.counted_skips", "--rootdir", str(suite)]
    command += ["-c", "/dev/null", "-p", "no:cacheprovider", *options, str(suite / "tests")]
    return subprocess.run(
        command, cwd=conftest.PROJECT, capture_output=True, text=True, check=False, timeout=180
    )


@pytest.mark.parametrize(
    ("profile", "workers", "complaint"),
    [
        ("right", "-n0", None),
        ("right", "-n2", None),
        ("loose", "-n0", None),
        ("fewer", "-n0", "needs luck: 3 skipped, expected 2"),
        ("fewer", "-n2", "needs luck: 3 skipped, expected 2"),
        ("unlisted", "-n0", "needs a module: 1 skipped, expected none"),
        ("more", "-n0", "needs root: 0 skipped, expected 1"),
    ],
)
def test_run_fails_when_skips_are_not_those_of_the_profile(
    suite: Path, profile: str, workers: str, complaint: str | None
) -> None:
    result = _run(suite, workers, "--skip-profile", profile)
    assert result.returncode == (0 if complaint is None else 1), result.stdout + result.stderr
    assert "skipped 3: needs luck\n" in result.stdout
    assert "skipped 1: needs a module\n" in result.stdout
    if complaint:
        assert f"unexpected skips: {complaint}\n" in result.stdout


def test_unknown_profile_is_wrong_use(suite: Path) -> None:
    result = _run(suite, "--skip-profile", "nowhere")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no profile 'nowhere'" in result.stderr


def test_differences_are_empty_only_for_equal_counts() -> None:
    assert differences({"a": 1, "b": ANY}, {"a": 1, "b": 7}) == []
    assert differences({"a": 1}, {}) == ["a: 0 skipped, expected 1"]
    assert differences({}, {"a": 1}) == ["a: 1 skipped, expected none"]


def test_plain_profile_allows_exactly_what_fixtures_may_lack() -> None:
    fixtures = (conftest.PROJECT / "tests").rglob("conftest.py")
    source = "".join(one.read_text() for one in fixtures)
    profiles = tomllib.loads((conftest.PROJECT / "tests/expected-skips.toml").read_text())
    lacking = re.findall(r'(?:_lacking\("|pytest\.skip\("needs )([^"]+)"\)', source)
    assert {f"needs {what}" for what in lacking} == set(profiles["plain"])
