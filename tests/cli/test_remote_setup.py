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
