"""A damaged or lost config.json, which nothing signs: every command names the one way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.scene import SESSION, Scene
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable


def _link(path: Path) -> None:
    aside = path.with_name("elsewhere.json")
    path.rename(aside)
    path.symlink_to(aside)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "no object": lambda path: path.write_bytes(b"[]\n"),
    "missing": Path.unlink,
    "link": _link,
    "dangling link": _dangling,
    "folder": _folder,
    "FIFO": _fifo,
}


@pytest.fixture(params=_DAMAGES)
def damaged(cli: Scene, request: pytest.FixtureRequest) -> Scene:
    """A store with one savepoint, whose config is damaged."""
    cli.created()
    _DAMAGES[request.param](Path(cli.paths.store.config))
    return cli


def _hook(cli: Scene) -> subprocess.CompletedProcess[bytes]:
    told = {"session_id": SESSION, "transcript_path": str(cli.transcript), "cwd": str(cli.project)}
    return subprocess.run(
        [sys.executable, "-c", "from savepoint.hook import main; main()", "PreCompact"],
        cwd=PROJECT,
        input=json.dumps({**told, "trigger": "manual"}).encode(),
        capture_output=True,
        check=True,
        timeout=180,
    )


def test_every_command_names_the_way_out(damaged: Scene) -> None:
    way_out = f"`savepoint init --adopt {damaged.paths.store.id[:8]}`"
    for command in ["create", "list", "show latest", "verify", "status", "init", "fsck"]:
        ran = damaged(*command.split())
        assert ran.code == 20, (command, ran.err)
        assert way_out in ran.err + ran.text, command
    ran = damaged("doctor")
    assert ran.code == 1
    assert way_out in ran.text


def test_adopt_writes_a_new_config_and_catches_up_what_was_missed(damaged: Scene) -> None:
    store, index = damaged.paths.store, Path(damaged.paths.index_file).read_bytes()
    config = Path(store.config)
    before = config.read_bytes() if config.is_file() else b""
    damaged.say("while it was damaged")
    time.sleep(1.01)  # a fire of the second of the last savepoint counts as served
    assert _hook(damaged).stdout == b""
    ran = damaged.good("init", "--adopt", store.id[:8])
    assert "Gabriel #215" in ran.text
    assert "savepoint config remote URL" in ran.err
    assert "1 missed session caught up" in ran.err
    assert Path(damaged.paths.index_file).read_bytes().startswith(index)
    assert len(damaged.good("list", "--json").json["savepoints"]) == 2
    kept = [one for one in config.parent.iterdir() if ".damaged-" in one.name]
    assert all(one.read_bytes() == before for one in kept if one.is_file())
    damaged.good("verify", "--all")
    damaged.good("fsck")


def test_the_instance_with_the_newest_record_becomes_the_current_one(cli: Scene) -> None:
    cli.created()
    cli.good("init", "--instance", "Raphael #1")
    cli.say("more", session="99999999-2222-4333-8444-555555555555")
    store = cli.good("status", "--json").json["store"]
    Path(cli.home.store(store).config).unlink()
    assert cli.good("init", "--adopt", store, "--json").json["instance"] == "Raphael #1"


def test_another_store_that_is_damaged_is_in_nobodys_way(cli: Scene, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    store = cli.good("init", "--json", "-C", str(other)).json["store"]
    Path(cli.home.store(store).config).write_bytes(b"{")
    own = cli.good("status", "--json").json["store"]
    moved = tmp_path / "moved"
    cli.project.rename(moved)
    cli.project = moved
    assert cli.good("init", "--adopt", own, "--json").json["result"] == "adopted"


def test_a_config_of_a_newer_version_is_never_set_aside(cli: Scene) -> None:
    config = Path(cli.paths.store.config)
    newer = json.dumps({**json.loads(config.read_bytes()), "v": 2}).encode()
    config.write_bytes(newer)
    for command in [("create",), ("init", "--adopt", cli.paths.store.id)]:
        assert cli(*command).code == 23
    assert config.read_bytes() == newer
