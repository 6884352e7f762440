"""`savepoint init`: one store a project, however often; moved folders; missed fires."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import journal
from tests.cli.scene import OTHER_SESSION, SESSION, Scene, start

if TYPE_CHECKING:
    from savepoint.store.layout import Home
    from tests.cli.scene import Ran


def _stores(cli: Scene) -> list[str]:
    return sorted(os.listdir(cli.home.stores))


def _at(cli: Scene, folder: Path, *arguments: str) -> Ran:
    return cli.good("init", "--json", "-C", str(folder), *arguments)


def test_it_says_where_everything_is(bare: Scene) -> None:
    ran = bare.good("init")
    assert "Claude #1 (key " in ran.text
    assert f"  store     {bare.home.stores}/" in ran.text
    assert "KEYS NOT BACKED UP" in ran.err
    assert oct(Path(bare.home.path).stat().st_mode)[-3:] == "700"


def test_a_second_time_changes_nothing(bare: Scene) -> None:
    first = bare.good("init", "--json").json
    before = Path(bare.paths.index_file).read_bytes()
    second = bare.good("init", "--json").json
    assert (first["result"], second["result"]) == ("created", "there")
    assert first["store"] == second["store"]
    assert len(_stores(bare)) == 1
    assert Path(bare.paths.index_file).read_bytes() == before


def test_many_at_once_make_one_store(bare: Scene) -> None:
    running = [start("init", cwd=bare.project) for _ in range(6)]
    told = [one.communicate(timeout=180)[1] for one in running]
    assert [one.returncode for one in running] == [0] * 6, told
    assert len(_stores(bare)) == 1


@pytest.mark.parametrize("name", ["Gabriel", "Gabriel #0", "#1", "Gabriel #1 ", "a\x1b #1"])
def test_what_is_no_instance_is_2(bare: Scene, name: str) -> None:
    ran = bare("init", "--instance", name)
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert not Path(bare.home.path).exists()


def test_another_instance_of_the_same_store(cli: Scene) -> None:
    cli.created()
    ran = cli.good("init", "--instance", "Raphael #1", "--json").json
    assert (ran["result"], ran["instance"]) == ("there", "Raphael #1")
    assert len(_stores(cli)) == 1
    assert cli.good("list", "--json").json["savepoints"] == []
    named = cli.good("list", "--json", "--instance", "Gabriel #215").json
    assert len(named["savepoints"]) == 1
    again = cli.good("init", "--instance", "Gabriel #215", "--json").json
    assert again["instance"] == "Gabriel #215"
    assert len(os.listdir(Path(cli.home.stores, again["store"], "instances"))) == 2


def test_a_subfolder_has_the_projects_store_and_a_repository_in_it_its_own(bare: Scene) -> None:
    store = bare.good("init", "--json").json["store"]
    inside = bare.project / "inside"
    inside.mkdir()
    assert _at(bare, inside).json["store"] == store
    subprocess.run(["git", "init", "-q", str(inside / "repo")], check=True)
    assert _at(bare, inside / "repo").json["store"] != store


def test_worktrees_share_the_store(bare: Scene, tmp_path: Path) -> None:
    git = ["git", "-C", str(bare.project)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    store = bare.good("init", "--json").json["store"]
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "wt")], check=True)
    assert _at(bare, tmp_path / "wt").json["store"] == store


def test_a_lost_key_is_derived_again(cli: Scene) -> None:
    key = Path(cli.paths.authority)
    before = key.read_bytes()
    key.unlink()
    assert cli("create").code == 12
    cli.good("init")
    assert key.read_bytes() == before
    assert cli.good("create").code == 0


def test_a_lost_map_is_made_anew(cli: Scene) -> None:
    Path(cli.home.stores_file).write_bytes(b"")
    cli.created()
    cli.good("init")
    assert len(_stores(cli)) == 1


def test_a_damaged_config_does_not_make_a_second_store(cli: Scene) -> None:
    Path(cli.paths.store.config).write_bytes(b"{")
    ran = cli("init")
    assert ran.code == 20
    assert "config.json" in cli("list").err
    assert len(_stores(cli)) == 1
    assert cli("fsck").code == 20


# A moved project (claude-code#71568)


def _moved(cli: Scene, *, link: bool) -> Path:
    there = cli.project.with_name("moved")
    cli.project.rename(there)
    if link:
        cli.project.symlink_to(there)
    return there


@pytest.mark.parametrize("link", [False, True])
def test_a_moved_folder_is_not_adopted_by_itself(cli: Scene, link: bool) -> None:
    cli.created()
    (store,) = _stores(cli)
    there = _moved(cli, link=link)
    cli.project = there
    ran = cli("doctor", "--json")
    assert ran.code == 1
    moved = next(one for one in ran.json["checks"] if one["name"] == "moved")
    assert f"init --adopt {store[:8]}" in moved["todo"]
    ran = cli.good("init")
    assert f"savepoint init --adopt {store[:8]}" in ran.err
    assert len(_stores(cli)) == 2
    assert cli.good("list", "--json").json["savepoints"] == []


@pytest.mark.parametrize("made_a_new_one", [False, True])
def test_adopt_continues_the_store(cli: Scene, made_a_new_one: bool) -> None:
    cli.created()
    (store,) = _stores(cli)
    cli.project = _moved(cli, link=False)
    if made_a_new_one:
        cli.good("init")
    ran = cli.good("init", "--adopt", store[:8], "--json").json
    assert (ran["store"], ran["result"]) == (store, "adopted")
    assert len(cli.good("list", "--json").json["savepoints"]) == 1
    assert cli.good("init", "--adopt", store[:8], "--json").json["result"] == "there"


def test_adopt_of_no_store_is_10(bare: Scene) -> None:
    bare.good("init")
    ran = bare("init", "--adopt", "ffff")
    assert ran.code == 10
    assert "'ffff'" in ran.err


# Fires that found no store


def _missed(
    home: Home, project: Path, transcript: Path, session: str, at: int = 1_700_000_000
) -> None:
    members = {
        "event": "PreCompact",
        "session_id": session,
        "transcript": str(transcript),
        "project": str(project),
        "reason": "no store",
    }
    journal.hook(home, at, dict(members))


def test_missed_fires_are_caught_up_once(bare: Scene, tmp_path: Path) -> None:
    Path(bare.home.path).mkdir(mode=0o700)
    _missed(bare.home, bare.project, bare.say("one"), SESSION)
    _missed(bare.home, bare.project, bare.path_of(SESSION), SESSION)
    _missed(bare.home, tmp_path, bare.say("of elsewhere", session=OTHER_SESSION), OTHER_SESSION)
    _missed(bare.home, bare.project, tmp_path / "gone.jsonl", "33333333")
    before = bare("doctor", "--json").json["checks"]
    assert "3 fires found no store since 2023-11-14" in before[-1]["detail"]
    ran = bare.good("init", "--json").json
    assert (ran["caught_up"], ran["transcripts_gone"]) == ([2], 1)
    (save,) = bare.good("list", "--json").json["savepoints"]
    assert (save["session_id"], save["trigger"]) == (SESSION, "sweep")
    notes = bare.good("show", "latest", "--json").json["notes"]
    assert notes == ["PreCompact at 2023-11-14T22:13:20Z made no savepoint: no store"]
    assert bare.good("init", "--json").json["caught_up"] == []


def test_missed_fires_of_a_moved_folder_wait_for_the_adoption(cli: Scene) -> None:
    cli.created()
    (store,) = _stores(cli)
    old = cli.project
    cli.project = _moved(cli, link=True)
    _missed(cli.home, old, cli.say("after the move"), SESSION, int(time.time()) + 1)
    assert cli.good("init", "--json").json["caught_up"] == []
    assert cli.good("init", "--adopt", store, "--json").json["caught_up"] == [3]


@pytest.mark.parametrize("what", ["a link", "not a regular file"])
def test_a_hook_log_that_is_no_file_is_no_tampering(bare: Scene, what: str) -> None:
    """It is a log for people; what stands in its place is named, with the way out."""
    home = Path(bare.home.path)
    home.mkdir(mode=0o700)
    log = home / "hook.log"
    log.symlink_to("/dev/null") if what == "a link" else os.mkfifo(log)
    ran = bare("init", "--json")
    assert ran.code == ran.json["error"]["code"] == 40
    assert ran.json["error"]["message"] == f"{log} is {what}"
    assert "move it away" in ran.json["error"]["hint"]
    log.unlink()
    assert bare.good("init", "--json").json["result"] == "there"


def test_lines_of_the_log_that_are_none_are_skipped(bare: Scene) -> None:
    home = Path(bare.home.path)
    home.mkdir(mode=0o700)
    rubbish = [b"", b"{", b"\xff\xfe", json.dumps({"event": 1}).encode(), b"[" * 5000]
    (home / "hook.log").write_bytes(b"\n".join(rubbish) + b"\n")
    _missed(bare.home, bare.project, bare.say("one"), SESSION)
    assert bare.good("init", "--json").json["caught_up"] == [2]
