"""The remote as a witness on the command line: what became of it, and the way out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import savepoints
from tests.cli.witnesses import (
    git_dir,
    git_failures,
    git_of,
    push_to_remote,
    ref_of,
    remote_of,
    save_and_push,
)
from tests.fault.scene import settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.scene import Scene

pytestmark = pytest.mark.usefixtures("no_worker", "remote")


def test_a_fork_is_not_repaired_and_says_so(cli: Scene) -> None:
    save_and_push(cli)
    _diverge(cli)
    ran = cli("fsck", "--repair", "--json")
    assert (ran.code, ran.json["exit_code"], ran.json["repaired"]) == (22, 22, [])
    assert "--accept-remote" in ran.json["problems"][0]["hint"]


def test_pushed_committed_and_queued(cli: Scene) -> None:
    save_and_push(cli, 1)
    git = git_of(cli.good("verify", "--json"))
    assert git["verdict"] == "VERIFIED"
    rules = [one["rule"] for one in git["findings"]]
    assert rules == [f"VERIFY-{n}" for n in (9, 10, 11, 12, 14, 15, 16)]
    assert (git["commit"], git["remote"]) == (
        ref_of(cli).read_text().strip(),
        str(remote_of(cli).path),
    )
    away = remote_of(cli).path.rename(cli.project.parent / "away.git")
    cli.say("more")
    assert cli("create").code in (0, 1)
    away.rename(remote_of(cli).path)
    ran = cli("verify", "--json")
    assert (ran.code, git_of(ran)["verdict"]) == (3, "PENDING")
    assert "is not at" in git_failures(ran)["VERIFY-14"]
    assert cli.good("verify", "2").code == 0
    push_to_remote(cli)
    cli.good("verify")


def test_offline_and_away_are_unverifiable(cli: Scene) -> None:
    save_and_push(cli)
    ran = cli("verify", "--offline", "--json")
    assert ran.code == 21
    assert set(git_failures(ran)) == {"VERIFY-14", "VERIFY-15", "VERIFY-16"}
    assert "last read back" in git_failures(ran)["VERIFY-14"]
    assert "without --offline" in cli("verify", "--offline").err
    remote_of(cli).path.rename(cli.project.parent / "away.git")
    ran = cli("verify", "--json")
    assert ran.code == 21
    assert "cannot be reached" in git_failures(ran)["VERIFY-14"]
    assert cli("verify", "--offline", "--deep").code == 2


def _roll_back(cli: Scene) -> None:
    older = remote_of(cli).git("rev-parse", f"{remote_of(cli).tip(cli.paths.slug)}~1")
    remote_of(cli).put(cli.paths.slug, older)


def _empty(cli: Scene) -> None:
    remote_of(cli).git("update-ref", "-d", f"refs/heads/savepoints/{cli.paths.slug}")


def _replace(cli: Scene) -> None:
    remote = remote_of(cli)
    remote.put(cli.paths.slug, remote.foreign_commit(None))


def _diverge(cli: Scene) -> None:
    """Another machine with the same key went on, while we did."""
    home = Path(cli.paths.store.home)
    copy = shutil.copytree(home, home.with_name("copy"))
    cli.say("theirs")
    cli("create")
    push_to_remote(cli)
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
    save_and_push(cli)
    change(cli)
    ran = cli("verify", "--json")
    assert (ran.code, git_of(ran)["verdict"]) == (22, "ROLLED_BACK")
    assert words in git_failures(ran)[rule]
    ran = cli("verify")
    assert "savepoint sync --accept-remote" in ran.err
    ran = cli("sync", "--accept-remote")
    assert ran.code == 0, ran.text + ran.err
    assert cli.good("verify", "--all").code == 0


def test_local_behind_the_remote_adopts(cli: Scene) -> None:
    """borg#4908, with a remote: the store is put back from an old copy, and saved to."""
    save_and_push(cli, 1)
    store = Path(cli.paths.store.path)
    shutil.copytree(store, store.with_name("copy"))
    cli.say("later")
    cli("create")
    push_to_remote(cli)
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(store)
    store.with_name("copy").rename(store)
    ran = cli("verify", "--json")
    assert ran.code == 22
    assert "has records up to 3" in git_failures(ran)["VERIFY-16"]
    cli.say("after")
    assert cli("create").code == 1
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "taken over from the remote" in ran.text
    push_to_remote(cli)
    cli.good("verify", "--all")
    assert [one["seq"] for one in cli.good("list", "--json").json["savepoints"]] == [2, 3, 4]


def test_an_accepted_gap_is_at_the_remote_without_another_savepoint(cli: Scene) -> None:
    """Whoever fetches meanwhile must not find a gap that nobody accepted."""
    save_and_push(cli)
    lines = Path(cli.paths.index_file).read_bytes().splitlines(keepends=True)
    cli.say("lost")
    cli("create")
    Path(cli.paths.index_file).write_bytes(b"".join(lines))
    shutil.rmtree(git_dir(cli))
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text + ran.err
    assert "accepted as lost" in ran.text
    last = savepoints.records(cli.paths).all[-1]
    assert last.kind == "accept"
    push_to_remote(cli)
    branch = f"savepoints/{cli.paths.slug}"
    assert f"Savepoint-Record: {last.hash}" in remote_of(cli).git("log", "-1", branch)
    for command in (["verify", "--all"], ["verify", "--deep", "--all"], ["fsck"]):
        assert cli.good(*command).code == 0


def test_a_lost_trusted_head_with_a_remote(cli: Scene) -> None:
    """Freshness comes from the remote."""
    save_and_push(cli)
    Path(cli.paths.trusted).unlink()
    cli.good("verify")
    assert cli("verify", "--offline").code == 21
    cli.good("fsck", "--repair")
    assert Path(cli.paths.trusted).exists()
    cli.good("verify", "--all")
