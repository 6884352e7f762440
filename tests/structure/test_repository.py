"""What is tracked names no machine and no package index, and every requirement has its hashes."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import NamedTuple

import pytest

from tests.structure.sources import PROJECT

# A path that only one machine has: it would work there and nowhere else. Homes of made-up people
# may stand in test data. The brackets keep this file from finding itself.
_MACHINE_PATH = re.compile(
    r"(?<![\w.>}~*-])[/](?:(?:work|root)[/]|home[/](?!(?:user|ada|example)\b)\w)"
)
# Cargo.lock names its registry by the address of a repository, wherever the crates came from.
_INDEX = re.compile(
    r"pypi[.]org|pythonhosted[.]org|[/]crates[.]io(?!-index\b)|registry[.]npmjs|proxy[.]golang|repo[.]maven"
    r"|--(?:extra-)?index[-]url|--find[-]links|--trusted[-]host"
)
_REQUIREMENT = re.compile(r"([a-z0-9.-]+)==(\S+)(?: ; ([^\\]+?))? \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def _tracked() -> dict[str, str]:
    """Path → text of every tracked file; what is not UTF-8 is no text that names anything."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(
        command, cwd=PROJECT, capture_output=True, check=True, timeout=180
    ).stdout
    files = [PROJECT / name for name in listed.decode().split("\0") if name]
    return {
        file.relative_to(PROJECT).as_posix(): file.read_bytes().decode(errors="replace")
        for file in files
        if file.is_file() and not file.is_symlink()
    }


def _matches(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in _tracked().items()
        for number, line in enumerate(text.split("\n"), 1)
        if pattern.search(line)
    ]


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    assert _matches(_MACHINE_PATH) == []


def test_no_tracked_file_names_a_package_index() -> None:
    assert _matches(_INDEX) == []


@pytest.mark.parametrize("where", ["/work" + "/main", "cd '/root" + "/x'", "/home" + "/jenkins/x"])
def test_machine_path_is_found(where: str) -> None:
    assert _MACHINE_PATH.search(where)


@pytest.mark.parametrize(
    "where", ["savepoint/work/outbox.py", "<root>/root/x", "/home/user/project"]
)
def test_other_path_is_fine(where: str) -> None:
    assert not _MACHINE_PATH.search(where)


class Pin(NamedTuple):
    """One requirement."""

    version: str
    marker: str
    hashes: int


def _pins(name: str) -> dict[str, Pin]:
    """Package → pin. Fails on any line that is neither a requirement nor a hash."""
    pins: dict[str, Pin] = {}
    package = ""
    for line in (PROJECT / "requirements" / name).read_text(encoding="utf-8").splitlines():
        if found := _REQUIREMENT.fullmatch(line):
            package = found[1]
            pins[package] = Pin(found[2], found[3] or "", 0)
        elif not line.startswith("#"):
            assert _HASH.fullmatch(line), f"{name}: {line}"
            pins[package] = pins[package]._replace(hashes=pins[package].hashes + 1)
    return pins


def _declared(names: list[str]) -> set[str]:
    return {re.split(r"[^a-z0-9.]", name, maxsplit=1)[0].replace(".", "-") for name in names}


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_requirement_has_hashes(name: str) -> None:
    pins = _pins(name)
    assert len(pins) > 5
    assert [package for package, pin in pins.items() if not pin.hashes] == []


def test_requirements_hold_what_the_project_declares() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    run, dev = _pins("run.txt"), _pins("dev.txt")
    assert _declared(project["project"]["dependencies"]) <= set(run)
    assert _declared(project["dependency-groups"]["dev"]) <= set(dev)
    assert {package: dev.get(package) for package in run} == run


def test_versions_agree() -> None:
    code = (PROJECT / "savepoint/__init__.py").read_text(encoding="utf-8")
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert version is not None
    assert newest is not None
    assert newest[1] == version[1]
