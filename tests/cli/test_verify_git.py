"""Git object, git pack, its index, ref, remote: what the command line says, and the way out."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture import surroundings
from savepoint.cli import shapes
from savepoint.gitlayer import push, remote_url
from savepoint.gitlayer.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import durable, savepoints
from tests.fault.scene import settle
from tests.gitlayer.remotes import Bare

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.scene import Ran, Scene


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker that starts by itself would do, the tests do when they say so."""
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)


@pytest.fixture
def bare(tmp_path: Path, bare: Scene) -> Scene:
    Bare.new(tmp_path / "remote.git")
    return bare


def _remote(cli: Scene) -> Bare:
    return Bare(cli.project.parent / "remote.git")


def _use_remote(cli: Scene) -> None:
    cli.good("config", "remote", str(_remote(cli).path))


def _push(cli: Scene) -> None:
    """As the worker does it."""
    store = cli.paths.store
    env = surroundings.for_children(os.environ)
    repo = Repository.of(store, env, time.monotonic() + 120)
    remote = Remote.of(repo, remote_url.parse(str(_remote(cli).path), "/"))
    assert push.push(remote, cli.paths, lambda _done, _all: None)


def _pushed(cli: Scene, count: int = 2) -> None:
    """So many savepoints, at the remote as well."""
    for number in range(count):
        cli.say(f"message {number}")
        cli.created()
    _use_remote(cli)
    _push(cli)


def _git(ran: Ran) -> dict[str, Any]:
    """The git witness of the one savepoint."""
    shapes.Verification.model_validate(ran.json)
    (one,) = ran.json["savepoints"]
    witness: dict[str, Any] = one["witnesses"]["git"]
    return witness


def _failed(ran: Ran) -> dict[str, str]:
    """Rule → detail of what does not pass."""
    found = _git(ran)["findings"]
    return {one["rule"]: one["detail"] for one in found if one["result"] != "pass"}


def _git_dir(cli: Scene) -> Path:
    return Path(cli.paths.store.repository)


def _flip(path: Path, at: int) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


# one flipped byte


def _pack(cli: Scene) -> Path:
    return max((_git_dir(cli) / "objects/pack").glob("*.pack"), key=lambda one: one.stat().st_size)


def _index_of_pack(cli: Scene) -> Path:
    return _pack(cli).with_suffix(".idx")


def _ref(cli: Scene) -> Path:
    return _git_dir(cli) / "refs/heads/savepoints" / cli.paths.slug


def _object(cli: Scene) -> Path:
    """Git keeps objects loose after a person unpacked them."""
    folder = _git_dir(cli) / "objects"
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
    "ref": (_ref, 3),
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
    _pushed(cli)
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
    assert _remote(cli).tip(cli.paths.slug) == _ref(cli).read_text().strip()


@pytest.mark.parametrize("what", _PLACES)
def test_a_flipped_byte_without_a_remote(cli: Scene, what: str) -> None:
    """What git has lost is committed again, and the old commit named as lost."""
    for number in range(3):
        cli.say(f"message {number}")
        cli.created()
    find, at = _PLACES[what]
    path = find(cli)
    before = _ref(cli).read_text().strip()
    _flip(path, at)
    ran = cli("fsck")
    assert ran.code == 20, ran.text
    assert _named(cli, path) in ran.text
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert cli.good("verify", "--all").code == 0
    is_lost = _ref(cli).read_text().strip() != before
    assert is_lost == (what in ("object", "pack"))
    if is_lost:
        assert f"commit {before} is lost; it is committed again" in ran.text
        assert before in Path(cli.paths.status_log).read_text()
    assert cli.good("fsck", "--repair", "--json").json["repaired"] == []


def test_a_lost_repository_comes_back_from_the_remote(cli: Scene) -> None:
    _pushed(cli)
    tip = _ref(cli).read_text()
    shutil.rmtree(_git_dir(cli))
    ran = cli("verify", "--json")
    assert ran.code == 20
    assert "repo.git is missing" in _failed(ran)["VERIFY-9"]
    assert cli("fsck").code == 20
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert _ref(cli).read_text() == tip
    cli.good("verify", "--all")


def test_a_damaged_repository_is_left_alone_while_its_remote_is_away(cli: Scene) -> None:
    """A new beginning would diverge from what the remote has."""
    _pushed(cli)
    _flip(_pack(cli), 60)
    before = sorted(_git_dir(cli).rglob("*"))
    away = _remote(cli).path.rename(cli.project.parent / "away.git")
    ran = cli("fsck", "--repair")
    assert ran.code == 20
    assert "not repaired" in ran.text
    assert sorted(_git_dir(cli).rglob("*")) == before
    away.rename(_remote(cli).path)
    assert cli("fsck", "--repair").code == 0


def test_what_the_disk_lost_comes_back_from_git(cli: Scene) -> None:
    _pushed(cli)
    _flip(next(Path(cli.paths.snapshots).iterdir()), 20)
    next(Path(cli.paths.store.objects).rglob("*.pack")).unlink()
    _flip(Path(cli.paths.index_file), 30)
    assert cli("verify", "--all").code == 20
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "came back from git" in ran.text
    cli.good("verify", "--all")


def test_a_fork_is_not_repaired_and_says_so(cli: Scene) -> None:
    _pushed(cli)
    _diverge(cli)
    ran = cli("fsck", "--repair", "--json")
    assert (ran.code, ran.json["exit_code"], ran.json["repaired"]) == (22, 22, [])
    assert "--accept-remote" in ran.json["problems"][0]["hint"]


# the remote


def test_pushed_committed_and_queued(cli: Scene) -> None:
    _pushed(cli, 1)
    git = _git(cli.good("verify", "--json"))
    assert git["verdict"] == "VERIFIED"
    rules = [one["rule"] for one in git["findings"]]
    assert rules == [f"VERIFY-{n}" for n in (9, 10, 11, 12, 14, 15, 16)]
    assert (git["commit"], git["remote"]) == (
        _ref(cli).read_text().strip(),
        str(_remote(cli).path),
    )
    away = _remote(cli).path.rename(cli.project.parent / "away.git")
    cli.say("more")
    assert cli("create").code in (0, 1)
    away.rename(_remote(cli).path)
    ran = cli("verify", "--json")
    assert (ran.code, _git(ran)["verdict"]) == (3, "PENDING")
    assert "is not at" in _failed(ran)["VERIFY-14"]
    assert cli.good("verify", "2").code == 0
    _push(cli)
    cli.good("verify")


def test_offline_and_away_are_unverifiable(cli: Scene) -> None:
    _pushed(cli)
    ran = cli("verify", "--offline", "--json")
    assert ran.code == 21
    assert set(_failed(ran)) == {"VERIFY-14", "VERIFY-15", "VERIFY-16"}
    assert "last read back" in _failed(ran)["VERIFY-14"]
    assert "without --offline" in cli("verify", "--offline").err
    _remote(cli).path.rename(cli.project.parent / "away.git")
    ran = cli("verify", "--json")
    assert ran.code == 21
    assert "cannot be reached" in _failed(ran)["VERIFY-14"]
    assert cli("verify", "--offline", "--deep").code == 2


def _roll_back(cli: Scene) -> None:
    older = _remote(cli).git("rev-parse", f"{_remote(cli).tip(cli.paths.slug)}~1")
    _remote(cli).put(cli.paths.slug, older)


def _empty(cli: Scene) -> None:
    _remote(cli).git("update-ref", "-d", f"refs/heads/savepoints/{cli.paths.slug}")


def _replace(cli: Scene) -> None:
    remote = _remote(cli)
    remote.put(cli.paths.slug, remote.foreign_commit(None))


def _diverge(cli: Scene) -> None:
    """Another machine with the same key went on, while we did."""
    home = Path(cli.paths.store.home)
    copy = shutil.copytree(home, home.with_name("copy"))
    cli.say("theirs")
    cli("create")
    _push(cli)
    settle(str(home))
    shutil.rmtree(home)
    copy.rename(home)
    cli.say("ours")
    cli("create")


@pytest.mark.parametrize(
    ("change", "rule", "words"),
    [
        (_roll_back, "VERIFY-15", "went back to"),
        (_empty, "VERIFY-15", "has no branch of"),
        (_replace, "VERIFY-15", "was replaced"),
        (_diverge, "VERIFY-16", "do not come from ours"),
    ],
)
def test_what_became_of_the_remote_is_22_with_a_way_out(
    cli: Scene, change: Callable[[Scene], None], rule: str, words: str
) -> None:
    _pushed(cli)
    change(cli)
    ran = cli("verify", "--json")
    assert (ran.code, _git(ran)["verdict"]) == (22, "ROLLED_BACK")
    assert words in _failed(ran)[rule]
    ran = cli("verify")
    assert "savepoint sync --accept-remote" in ran.err
    ran = cli("sync", "--accept-remote")
    assert ran.code == 0, ran.text + ran.err
    assert cli.good("verify", "--all").code == 0


def test_local_behind_the_remote_adopts(cli: Scene) -> None:
    """borg#4908, with a remote: the store is put back from an old copy, and saved to."""
    _pushed(cli, 1)
    store = Path(cli.paths.store.path)
    shutil.copytree(store, store.with_name("copy"))
    cli.say("later")
    cli("create")
    _push(cli)
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(store)
    store.with_name("copy").rename(store)
    ran = cli("verify", "--json")
    assert ran.code == 22
    assert "has records up to 3" in _failed(ran)["VERIFY-16"]
    cli.say("after")
    assert cli("create").code == 1
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "taken over from the remote" in ran.text
    _push(cli)
    cli.good("verify", "--all")
    assert [one["seq"] for one in cli.good("list", "--json").json["savepoints"]] == [2, 3, 4]


def test_an_accepted_gap_is_at_the_remote_without_another_savepoint(cli: Scene) -> None:
    """Whoever fetches meanwhile must not find a gap that nobody accepted."""
    _pushed(cli)
    lines = Path(cli.paths.index_file).read_bytes().splitlines(keepends=True)
    cli.say("lost")
    cli("create")
    Path(cli.paths.index_file).write_bytes(b"".join(lines))
    shutil.rmtree(_git_dir(cli))
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "accepted as lost" in ran.text
    last = savepoints.records(cli.paths).all[-1]
    assert last.kind == "accept"
    _push(cli)
    branch = f"savepoints/{cli.paths.slug}"
    assert f"Savepoint-Record: {last.hash}" in _remote(cli).git("log", "-1", branch)
    for command in (["verify", "--all"], ["verify", "--deep", "--all"], ["fsck"]):
        assert cli.good(*command).code == 0


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
    _flip(min((_git_dir(cli) / "objects/pack").glob("*.pack"), key=_age), 60)
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
    assert not Path(f"{_git_dir(cli)}.next").exists()


def _age(path: Path) -> float:
    return path.stat().st_mtime_ns


def test_a_lost_trusted_head_with_a_remote(cli: Scene) -> None:
    """Freshness comes from the remote."""
    _pushed(cli)
    Path(cli.paths.trusted).unlink()
    cli.good("verify")
    assert cli("verify", "--offline").code == 21
    cli.good("fsck", "--repair")
    assert Path(cli.paths.trusted).exists()
    cli.good("verify", "--all")


# what cannot be looked at


def test_without_the_age_identity(cli: Scene) -> None:
    _pushed(cli)
    Path(cli.paths.store.age_identity).unlink()
    ran = cli("verify", "--json")
    assert ran.code == 21
    assert "content is skipped" in _failed(ran)["VERIFY-12"]
    assert "links and signatures hold" in cli("verify").err
    assert cli("fsck").code == 0


def test_without_git(cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cli.created()
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = cli("verify", "--json")
    assert (ran.code, _git(ran)["verdict"]) == (21, "UNVERIFIABLE")
    assert cli("fsck").code == 21


def test_nothing_was_ever_committed(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli("create").code == 1
    ran = cli("verify", "--json")
    assert (ran.code, _git(ran)["verdict"]) == (3, "PENDING")
    assert "not committed yet" in _failed(ran)["VERIFY-9"]
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
    _use_remote(cli)
    _push(cli)
    tip = _ref(cli).read_text()
    cli("fsck", "--repair")
    assert _ref(cli).read_text() == tip
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
