"""A git that was killed, or got no memory, descriptors or permission, says nothing of our history.

The kernel kills whoever takes too much memory: a check of a large repository first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cli.witnesses import git_dir, ref_of
from tests.gitlayer.layer import shim

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.scene import Scene

pytestmark = pytest.mark.usefixtures("no_worker", "remote")

_ENDS = {
    "killed": "kill -9 $$",
    "a child killed": "echo 'error: index-pack died of signal 9' >&2; exit 128",
    "memory": "echo 'fatal: Out of memory, malloc failed' >&2; exit 128",
    "descriptors": "echo 'error: unable to open x.pack: Too many open files' >&2; exit 1",
    "permission": "echo 'fatal: cannot open x.pack: Permission denied' >&2; exit 128",
    "none there": "echo 'git: libz.so.1: cannot open shared object file' >&2; exit 127",
}
_COMMANDS = ("fsck", "rev-list", "cat-file")


@pytest.fixture
def saved(cli: Scene) -> Scene:
    """Two savepoints."""
    for number in range(2):
        cli.say(f"message {number}")
        cli.created()
    return cli


def _hinder(monkeypatch: pytest.MonkeyPatch, folder: Path, ends: str, *commands: str) -> None:
    which = "|".join(f"*' {one} '*" for one in commands)
    script = f'case " $* " in {which}) {ends};; esac; exec "$REAL" "$@"'
    for name, value in shim(folder, script).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("how", "command"),
    [*((how, "fsck") for how in _ENDS), ("killed", "rev-list"), ("memory", "cat-file")],
)
def test_what_git_could_not_look_at_is_unverifiable(
    saved: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str, command: str
) -> None:
    """It was called TAMPERED, with `fsck --repair` as the way out."""
    _hinder(monkeypatch, tmp_path / "bin", _ENDS[how], command)
    ran = saved("verify", "--all", "--json")
    assert (ran.code, ran.json["verdict"]) == (21, "UNVERIFIABLE")
    assert "TAMPERED" not in ran.text
    assert saved("fsck").code in (21, 40)


@pytest.mark.parametrize("commands", [_COMMANDS, ("fsck", "cat-file"), ("cat-file", "fetch")])
@pytest.mark.parametrize("how", ["killed", "descriptors"])
def test_a_repair_leaves_a_history_alone_that_git_could_not_look_at(
    saved: Scene,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    how: str,
    commands: tuple[str, ...],
) -> None:
    """It made the repository anew, committed all again and named nothing as lost."""
    path, before = os.environ["PATH"], ref_of(saved).read_bytes()
    _hinder(monkeypatch, tmp_path / "bin", _ENDS[how], *commands)
    saved("fsck", "--repair")
    assert ref_of(saved).read_bytes() == before
    assert not list(git_dir(saved).parent.glob("repo.git.*"))
    monkeypatch.setenv("PATH", path)
    saved.good("verify", "--all")
    assert saved.good("fsck", "--repair", "--json").json["repaired"] == []


def test_a_damaged_repository_waits_for_a_git_that_can_look(
    saved: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is lost is not known before: it would be committed again, and not named."""
    path, before = os.environ["PATH"], ref_of(saved).read_text().strip()
    for pack in (git_dir(saved) / "objects/pack").glob("*.pack"):
        data = pack.read_bytes()
        pack.chmod(0o600)
        pack.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    for number, commands in enumerate([("cat-file",), ("fetch",)]):
        _hinder(monkeypatch, tmp_path / f"bin{number}", _ENDS["killed"], *commands)
        ran = saved("fsck", "--repair")
        assert ran.code != 0, commands
        assert ref_of(saved).read_text().strip() == before
        monkeypatch.setenv("PATH", path)
    assert f"commit {before} is lost" in saved.good("fsck", "--repair").text


def test_a_commit_is_named_as_lost_of_which_nothing_is_left(saved: Scene) -> None:
    before = ref_of(saved).read_text().strip()
    for path in (git_dir(saved) / "objects/pack").iterdir():
        path.unlink()
    assert f"commit {before} is lost" in saved.good("fsck", "--repair").text
    saved.good("verify", "--all")
