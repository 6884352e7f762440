"""`sync` asks the remote before it says that it has everything; a store of which only the keys were
restored comes back from it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store.keys import backup
from tests.fault.scene import settle
from tests.gitlayer.remotes import Bare
from tests.store import scrypt_age

if TYPE_CHECKING:
    from tests.cli.scene import Scene


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker that starts by itself would do, the tests do when they say so."""
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)


@pytest.fixture
def pushed(cli: Scene, tmp_path: Path) -> Bare:
    """The remote of a store with two savepoints that are pushed."""
    remote = Bare.new(tmp_path / "remote.git")
    cli.good("config", "remote", str(remote.path))
    for text in ("one", "two"):
        cli.say(text)
        cli.created()
    cli.good("sync")
    return remote


@pytest.fixture
def passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a passphrase; the work that it costs is made small."""
    monkeypatch.setattr(backup, "seal", scrypt_age.seal)
    path = tmp_path / "passphrase"
    path.write_text("correct horse battery staple\n", "utf-8")
    path.chmod(0o600)
    return str(path)


def _emptied(remote: Bare) -> None:
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(remote.path)
    Bare.new(remote.path)


def _gone(remote: Bare) -> None:
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(remote.path)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [(_emptied, 22, "no branch of"), (_gone, 30, "cannot be reached")],
)
def test_sync_does_not_say_of_a_remote_that_lost_everything_that_it_has_everything(
    cli: Scene, pushed: Bare, change: object, code: int, words: str
) -> None:
    assert "has everything" in cli.good("sync").text
    assert callable(change)
    change(pushed)
    ran = cli("sync")
    assert ran.code == code
    assert words in ran.err
    assert "has everything" not in ran.text


def test_keys_that_were_restored_alone_bring_back_the_whole_store(
    cli: Scene, pushed: Bare, passphrase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `keys restore` says to do next is what helps: on a machine that has nothing else."""
    file = str(tmp_path / "keys.age")
    cli.good("keys", "backup", "-o", file, "--passphrase-file", passphrase)
    cli.say("after the backup")
    cli.created()
    cli.good("sync")
    before = cli.good("list", "--json").json
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "elsewhere"))
    ran = cli.good("keys", "restore", file, "--passphrase-file", passphrase)
    assert "savepoint fsck --repair" in ran.err
    (store,) = Path(tmp_path, "elsewhere", "stores").iterdir()
    ran = cli("status")
    assert (ran.code, f"--adopt {store.name[:8]}" in ran.err) == (10, True)
    cli.good("init", "--adopt", store.name[:8])
    ran = cli("sync")
    assert ran.code == 22
    assert "savepoint fsck --repair" in ran.err
    cli.good("fsck", "--repair")
    after = cli.good("list", "--json").json
    assert [one["snapshot_hash"] for one in after["savepoints"]] == [
        one["snapshot_hash"] for one in before["savepoints"]
    ]
    cli.good("sync")  # what the agent still has of the session was saved as well
    cli.good("verify", "--all")
    assert "has everything" in cli.good("sync").text
    branches = pushed.git("for-each-ref", "--format=%(refname)", "refs/heads").split()
    assert branches == [f"refs/heads/savepoints/{cli.paths.slug}"]


def test_a_folder_that_is_named_as_a_backup_is_not_said_to_be_missing(
    cli: Scene, passphrase: str, tmp_path: Path
) -> None:
    ran = cli("keys", "restore", str(tmp_path), "--passphrase-file", passphrase)
    assert (ran.code, f"{tmp_path} is no regular file" in ran.err) == (2, True)


def test_a_rule_that_fails_for_one_and_for_all_is_named_once(cli: Scene, pushed: Bare) -> None:
    """`VERIFY-9 to VERIFY-9 fail` was printed of a repository that is gone."""
    shutil.rmtree(cli.paths.store.repository)
    ran = cli("verify")
    assert ran.code == 20
    assert "VERIFY-9 fail: repo.git is missing" in ran.text
    assert pushed.path.exists()


def test_a_repository_alone_that_somebody_changed_says_where_and_names_no_fsck(
    cli: Scene, pushed: Bare
) -> None:
    slug = cli.paths.slug
    tree = pushed.git("rev-parse", f"savepoints/{slug}^{{tree}}").strip()
    pushed.put(slug, pushed.git("commit-tree", tree, "-m", "no savepoint").strip())
    ran = cli("verify", "--all", "--repository", str(pushed.path))
    assert ran.code == 20
    assert f"branch refs/heads/savepoints/{slug}" in ran.err
    assert str(pushed.path) in ran.err
    assert "fsck" not in ran.err
