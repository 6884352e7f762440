"""Git object, git pack, its index, ref: what the command line says, and the way out."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import durable
from tests.cli.witnesses import (
    git_dir,
    git_failures,
    git_of,
    push_to_remote,
    ref_of,
    remote_of,
    save_and_push,
    use_remote,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.scene import Scene

pytestmark = pytest.mark.usefixtures("no_worker", "remote")


def _flip(path: Path, at: int) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


# one flipped byte


def _pack(cli: Scene) -> Path:
    return max((git_dir(cli) / "objects/pack").glob("*.pack"), key=lambda one: one.stat().st_size)


def _index_of_pack(cli: Scene) -> Path:
    return _pack(cli).with_suffix(".idx")


def _object(cli: Scene) -> Path:
    """Git keeps objects loose after a person unpacked them."""
    folder = git_dir(cli) / "objects"
    packs = [path.rename(folder.parent / path.name) for path in (folder / "pack").glob("*.pack")]
    for path in (folder / "pack").iterdir():
        path.unlink()
    for path in packs:
        with path.open("rb") as file:
            subprocess.run(
                ["git", f"--git-dir={folder.parent}", "unpack-objects", "-q"],
                stdin=file,
                check=True,
            )
        path.unlink()
    loose = [path for path in folder.glob("??/*") if path.is_file()]
    return max(loose, key=lambda one: one.stat().st_size)


_PLACES: dict[str, tuple[Callable[[Scene], Path], int]] = {
    "object": (_object, -40),
    "pack": (_pack, 60),
    "index": (_index_of_pack, 1040),
    "ref": (ref_of, 3),
}


def _named(cli: Scene, path: Path) -> str:
    """How a finding names the file."""
    if path.parent.name == "savepoints":
        return f"refs/heads/savepoints/{cli.paths.slug}"
    if path.suffix:
        return path.stem
    return path.parent.name + path.name


@pytest.mark.parametrize("what", _PLACES)
def test_a_flipped_byte_is_named_and_repaired_from_the_remote(cli: Scene, what: str) -> None:
    save_and_push(cli)
    find, at = _PLACES[what]
    path = find(cli)
    _flip(path, at)
    ran = cli("fsck")
    assert ran.code == 20, ran.text
    assert _named(cli, path) in ran.text
    assert cli("verify", "--all").code == 20
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "is lost" not in ran.text
    assert "repaired" in ran.text
    for command in (["verify", "--all"], ["verify", "--deep", "--all"], ["fsck"]):
        assert cli.good(*command).code == 0
    assert remote_of(cli).tip(cli.paths.slug) == ref_of(cli).read_text().strip()


@pytest.mark.parametrize("what", _PLACES)
def test_a_flipped_byte_without_a_remote(cli: Scene, what: str) -> None:
    """What git has lost is committed again, and the old commit named as lost."""
    for number in range(3):
        cli.say(f"message {number}")
        cli.created()
    find, at = _PLACES[what]
    path = find(cli)
    before = ref_of(cli).read_text().strip()
    _flip(path, at)
    ran = cli("fsck")
    assert ran.code == 20, ran.text
    assert _named(cli, path) in ran.text
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert cli.good("verify", "--all").code == 0
    is_lost = ref_of(cli).read_text().strip() != before
    assert is_lost == (what in ("object", "pack"))
    if is_lost:
        assert f"commit {before} is lost; it is committed again" in ran.text
        assert before in Path(cli.paths.status_log).read_text()
    assert cli.good("fsck", "--repair", "--json").json["repaired"] == []


def test_a_lost_repository_comes_back_from_the_remote(cli: Scene) -> None:
    save_and_push(cli)
    tip = ref_of(cli).read_text()
    shutil.rmtree(git_dir(cli))
    ran = cli("verify", "--json")
    assert ran.code == 20
    assert "repo.git is missing" in git_failures(ran)["VERIFY-9"]
    assert cli("fsck").code == 20
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert ref_of(cli).read_text() == tip
    cli.good("verify", "--all")


def test_a_damaged_repository_is_left_alone_while_its_remote_is_away(cli: Scene) -> None:
    """A new beginning would diverge from what the remote has."""
    save_and_push(cli)
    _flip(_pack(cli), 60)
    before = sorted(git_dir(cli).rglob("*"))
    away = remote_of(cli).path.rename(cli.project.parent / "away.git")
    ran = cli("fsck", "--repair")
    assert ran.code == 20
    assert "not repaired" in ran.text
    assert sorted(git_dir(cli).rglob("*")) == before
    away.rename(remote_of(cli).path)
    assert cli("fsck", "--repair").code == 0


def test_what_the_disk_lost_comes_back_from_git(cli: Scene) -> None:
    save_and_push(cli)
    _flip(next(Path(cli.paths.snapshots).iterdir()), 20)
    next(Path(cli.paths.store.objects).rglob("*.pack")).unlink()
    _flip(Path(cli.paths.index_file), 30)
    assert cli("verify", "--all").code == 20
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "came back from git" in ran.text
    cli.good("verify", "--all")


@pytest.mark.parametrize("stopped", [1, 2])
def test_a_repair_killed_between_its_renames_loses_nothing(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    """The damaged repository was set aside, and the new one had no name yet: the next save began a
    third one, whose commits nobody knew.
    """
    for number in range(3):
        cli.say(f"message {number}")
        cli.created()
    _flip(min((git_dir(cli) / "objects/pack").glob("*.pack"), key=_age), 60)
    real, count = durable.publish_folder, itertools.count(1)

    def killed(temporary: str, path: str) -> None:
        real(temporary, path)
        if "repo.git" in path and ".tmp-" not in path and next(count) == stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(durable, "publish_folder", killed)
    assert cli("fsck", "--repair").code == 130
    monkeypatch.setattr(durable, "publish_folder", real)
    cli.say("more")
    cli("create")
    cli.good("fsck", "--repair")
    cli.good("verify", "--all")
    assert not Path(f"{git_dir(cli)}.next").exists()


def _age(path: Path) -> float:
    return path.stat().st_mtime_ns


# what cannot be looked at


def test_without_the_age_identity(cli: Scene) -> None:
    save_and_push(cli)
    Path(cli.paths.store.age_identity).unlink()
    ran = cli("verify", "--json")
    assert ran.code == 21
    assert "content is skipped" in git_failures(ran)["VERIFY-12"]
    assert "links and signatures hold" in cli("verify").err
    assert cli("fsck").code == 0


def test_without_git(cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cli.created()
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = cli("verify", "--json")
    assert (ran.code, git_of(ran)["verdict"]) == (21, "UNVERIFIABLE")
    assert cli("fsck").code == 21


def test_nothing_was_ever_committed(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli("create").code == 1
    ran = cli("verify", "--json")
    assert (ran.code, git_of(ran)["verdict"]) == (3, "PENDING")
    assert "not committed yet" in git_failures(ran)["VERIFY-9"]
    monkeypatch.setenv("PATH", path)
    cli.good("fsck", "--repair")
    cli.good("verify")


def test_damaged_when_it_was_to_be_committed_is_not_shown_as_committed(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    cli("create")
    next(Path(cli.paths.snapshots).iterdir()).unlink()
    monkeypatch.setenv("PATH", path)
    cli.say("more")
    cli.created()
    oldest, newest = cli.good("list", "--json").json["savepoints"]
    assert newest["layer_2_status"] == "COMMITTED_LOCALLY"
    assert (oldest["layer_2_status"], oldest["layer_2_commit"]) == ("QUEUED_FOR_COMMIT", None)
    assert cli("verify", "2").code == 20


@pytest.mark.parametrize("before", [0, 1])
def test_damaged_when_it_was_to_be_committed_and_whole_again_is_committed(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int
) -> None:
    """It stayed tampered with for ever."""
    for _ in range(before):
        cli.created()
        cli.say("then")
    _damaged_and_passed_over(cli, monkeypatch, tmp_path)
    assert "is whole again" in cli.good("fsck", "--repair").text
    cli.good("verify", "--all")
    cli.good("fsck")
    assert cli.good("fsck", "--repair", "--json").json["repaired"] == []


def test_what_was_pushed_is_not_committed_anew(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _damaged_and_passed_over(cli, monkeypatch, tmp_path)
    use_remote(cli)
    push_to_remote(cli)
    tip = ref_of(cli).read_text()
    cli("fsck", "--repair")
    assert ref_of(cli).read_text() == tip
    cli.good("verify", "latest")


def _damaged_and_passed_over(cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A savepoint that is whole now, and was not when it was to be committed."""
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    cli("create")
    snapshot = max(Path(cli.paths.snapshots).iterdir(), key=_age)
    whole = snapshot.read_bytes()
    snapshot.write_bytes(b"{}")  # its name stays taken
    monkeypatch.setenv("PATH", path)
    cli.say("more")
    cli.created()
    snapshot.write_bytes(whole)
    assert cli("verify", "--all").code == 20
