"""What a newcomer is told of stores: moved ones, other instances, fires that are not theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import journal
from tests.cli.scene import SESSION

if TYPE_CHECKING:
    from tests.cli.scene import Scene


@pytest.mark.parametrize("command", ["list", "create", "verify", "show latest", "status", "fsck"])
def test_a_moved_project_is_told_to_adopt_its_store(cli: Scene, command: str) -> None:
    cli.created()
    store = cli.good("status", "--json").json["store"]
    moved = cli.project.with_name("moved")
    cli.project.rename(moved)
    cli.project = moved
    ran = cli(*command.split())
    assert ran.code == 10
    assert f"`savepoint init --adopt {store[:8]}`" in ran.err


def test_a_project_that_is_gone_is_told_that_its_savepoints_are_not(cli: Scene) -> None:
    cli.created()
    gone = cli.project.with_name("gone")
    cli.project.rename(gone)
    where = str(cli.project)
    cli.project = gone
    assert "its savepoints are kept: make the folder again" in cli("list", "-C", where).err
    assert "-C DIR" in cli("list", "-C", f"{where}/nothing").err


def test_a_folder_that_was_never_a_project_is_told_to_init(bare: Scene) -> None:
    assert "run `savepoint init`" in bare("list").err


def test_a_folder_whose_path_is_not_utf8_is_told_to_be_renamed(bare: Scene) -> None:
    odd = bare.project / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    bare.project = odd
    for command in ["list", "create", "init"]:
        assert "rename the folder" in bare(command).err


@pytest.mark.parametrize("arguments", [[], ["--all"], ["latest"]])
def test_nothing_is_not_verified(cli: Scene, arguments: list[str]) -> None:
    ran = cli("verify", *arguments)
    assert ran.code == 1
    assert "VERIFIED" not in ran.text
    assert "no savepoint yet" in ran.err


def test_init_says_that_another_instance_is_the_current_one_now(cli: Scene) -> None:
    cli.created()
    ran = cli.good("init", "--instance", "Raphael #1")
    assert "Raphael #1 is the current instance from now on" in ran.err
    assert "`--instance 'Gabriel #215'`" in ran.err
    assert cli.good("init", "--instance", "Raphael #1").err.count("from now on") == 0
    again = cli.good("init", "--instance", "Gabriel #215", "--json").json
    assert again["previous_instance"] == "Raphael #1"
    assert cli.good("init", "--json").json["previous_instance"] is None


@pytest.mark.parametrize("named", ["", ".", "project"])
def test_a_fire_that_names_no_folder_is_nobodys(bare: Scene, named: str) -> None:
    Path(bare.home.path).mkdir(mode=0o700)
    fire = {"event": "Stop", "session_id": SESSION, "transcript": "/nowhere/at/all.jsonl"}
    journal.hook(bare.home, 1_700_000_000, {**fire, "project": named, "reason": "no store"})
    ran = bare.good("init")
    assert "missed" not in ran.err
    assert bare.good("status", "--json").json["missed_fires"] == 0
