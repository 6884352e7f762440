"""`init --remote` and `doctor`: what a remote holds already, and whether it answers."""

import subprocess
from pathlib import Path

from tests.cli.scene import Scene


def _bare(folder: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    return folder


def _checks(cli: Scene) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in cli("doctor", "--json").json["checks"]}


def test_init_says_what_the_remote_holds_of_others(cli: Scene, tmp_path: Path) -> None:
    """An unrelated history, and nothing listed, is what entireio/cli#1374 made of it."""
    remote = _bare(tmp_path / "remote.git")
    made = cli.created()
    assert made["layer_2_status"] == "COMMITTED_LOCALLY"
    slug = cli.paths.slug
    subprocess.run(
        ["git", "push", "--quiet", str(remote), f"savepoints/{slug}:savepoints/other-1-00000000"],
        cwd=cli.paths.store.repository,
        check=True,
    )
    ran = cli.good("init", "--remote", str(remote))
    assert "the remote also holds other-1-00000000" in ran.err
    assert "savepoint bootstrap" in ran.err
    assert cli.created()["layer_2_status"] == "PUSHED_TO_GITHUB"


def test_init_takes_a_remote_that_does_not_answer(cli: Scene, tmp_path: Path) -> None:
    ran = cli.good("init", "--remote", str(tmp_path / "nothing.git"))
    assert "the remote does not answer yet" in ran.err
    assert cli.good("config", "remote").text.strip() == str(tmp_path / "nothing.git")


def test_doctor_tells_whether_the_remote_answers(cli: Scene, tmp_path: Path) -> None:
    assert _checks(cli)["remote"]["result"] == "warn"
    remote = _bare(tmp_path / "remote.git")
    cli.good("config", "remote", str(remote))
    assert _checks(cli)["remote"]["result"] == "ok"
    remote.rename(tmp_path / "moved.git")
    found = _checks(cli)["remote"]
    assert found["result"] == "fail"
    assert found["todo"]


def test_config_says_that_a_path_is_no_repository(cli: Scene, tmp_path: Path) -> None:
    """A misspelt path was taken in silence, and nothing was ever pushed."""
    for url in (str(tmp_path / "nothing.git"), f"file://{tmp_path}/nothing.git"):
        assert "the remote does not answer yet" in cli.good("config", "remote", url).err
    assert "note" not in cli.good("config", "remote", str(_bare(tmp_path / "remote.git"))).err


def test_a_remote_that_is_away_is_told_once_with_where_to_change_it(
    cli: Scene, tmp_path: Path
) -> None:
    """`status` said the same of each instance; a save that waits for its remote is no failure."""
    cli.created()
    cli.good("resurrect")
    cli.good("config", "remote", str(tmp_path / "nothing.git"))
    assert cli("sync").code == 30
    text = cli.good("status").text
    assert text.count("`savepoint config remote` shows where that is") == 1
    assert text.count("cannot be reached") == 1
    ran = cli("create")
    assert (ran.code, "QUEUED_FOR_PUSH" in ran.text) == (0, True)


def test_status_says_that_all_is_pushed(cli: Scene, tmp_path: Path) -> None:
    cli.created()
    assert "; all committed here" in cli.good("status").text
    remote = _bare(tmp_path / "remote.git")
    cli.good("config", "remote", str(remote))
    assert "all pushed" not in cli.good("status").text
    cli.good("sync")
    assert f"git         {remote}: all pushed" in cli.good("status").text
