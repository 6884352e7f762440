"""`savepoint doctor`: every finding names what to do, and doing it makes the finding go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.cli import place
from savepoint.cli.doctor import hooks, machine
from savepoint.core import limits
from savepoint.store import journal
from tests.cli.scene import OTHER_SESSION, SESSION, Scene

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with the hook's program in it, wherever the tests run."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (folder / "savepoint-hook").write_text(f"#!{folder}/python\n")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    settle(f"{folder}/savepoint-hook PreCompact")


def settle(command: str, *args: str, event: str = "PreCompact", **more: object) -> None:
    """The agent's own settings, with one hook."""
    hook: dict[str, object] = {"type": "command", "command": command}
    if args:
        hook["args"] = args
    path = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}]}, **more}))


def look(cli: Scene) -> tuple[int, dict[str, Any]]:
    """The exit code, and the checks by name."""
    ran = cli("doctor", "--json")
    return ran.code, {one["name"]: one for one in ran.json["checks"]}


def look_at(cli: Scene, folder: Path) -> tuple[int, dict[str, Any]]:
    """The same for another folder."""
    ran = cli("doctor", "--json", "-C", str(folder))
    return ran.code, {one["name"]: one for one in ran.json["checks"]}


def test_all_is_well(cli: Scene) -> None:
    cli.created()
    code, checks = look(cli)
    assert code == 0
    results = {name: one["result"] for name, one in checks.items()}
    assert (results.pop("backup"), results.pop("remote")) == ("warn", "warn")
    assert set(results.values()) == {"ok"}, checks
    assert checks["in the clear"]["detail"].startswith(cli.paths.store.path)
    text = cli.good("doctor").text
    assert "warn  backup: KEYS NOT BACKED UP\n      → run `savepoint keys backup" in text


def test_no_store(bare: Scene) -> None:
    settle("something else")
    code, checks = look(bare)
    assert code == 1
    assert checks["home"]["result"] == checks["store"]["result"] == "fail"
    assert "savepoint init" in checks["store"]["todo"]


def _loosen_key(cli: Scene) -> None:
    Path(cli.paths.authority).chmod(0o640)


def _lose_key(cli: Scene) -> None:
    Path(cli.paths.authority).unlink()


def _swap_halves(cli: Scene) -> None:
    path = Path(cli.paths.authority)
    path.write_text("[" + ",".join(["1"] * 64) + "]\n")


def _change_root(cli: Scene) -> None:
    Path(cli.paths.store.root_seed).write_bytes(bytes(32))


def _shorten_root(cli: Scene) -> None:
    Path(cli.paths.store.root_seed).write_bytes(b"x")


def _damage_index(cli: Scene) -> None:
    with Path(cli.paths.index_file).open("ab") as file:
        file.write(b"rubbish\n")


def _roll_back(cli: Scene) -> None:
    path = Path(cli.paths.index_file)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _open_store(cli: Scene) -> None:
    Path(cli.paths.store.config).chmod(0o644)


@pytest.mark.parametrize(
    ("spoil", "name", "said"),
    [
        (_loosen_key, "signing key", "chmod 600"),
        (_lose_key, "signing key", "is missing"),
        (_swap_halves, "signing key", "halves"),
        (_change_root, "root key", "does not give the key"),
        (_shorten_root, "root key", "has 1 bytes"),
        (_damage_index, "index", "verify --all"),
        (_roll_back, "trusted head", "fsck --repair"),
        (_open_store, "permissions", "config.json has mode 0644"),
    ],
)
def test_what_is_wrong_is_a_failure(
    cli: Scene, spoil: Callable[[Scene], None], name: str, said: str
) -> None:
    cli.created()
    spoil(cli)
    code, checks = look(cli)
    assert code == 1
    assert checks[name]["result"] == "fail"
    assert said in checks[name]["detail"] + checks[name]["todo"]
    assert checks[name]["todo"]


def test_no_hook_in_the_settings(cli: Scene) -> None:
    """Whoever has forgotten it learns of it when the conversation is gone."""
    Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json").unlink()
    code, checks = look(cli)
    assert (code, checks["agent"]["result"]) == (0, "warn")
    assert "savepoint install claude-code" in checks["agent"]["todo"]
    settle("echo hello")
    assert look(cli)[1]["agent"]["result"] == "warn"
    settle(f"{Path(sys.executable).parent}/savepoint-hook Stop", event="Stop")
    assert "PreCompact" in look(cli)[1]["agent"]["todo"]


def test_the_hook_in_the_project_settings(cli: Scene) -> None:
    user = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    (cli.project / ".claude").mkdir()
    user.rename(cli.project / ".claude/settings.local.json")
    assert look(cli)[1]["agent"]["result"] == "ok"


@pytest.mark.parametrize(
    ("command", "args", "said"),
    [
        ("/gone/bin/savepoint-hook PreCompact", (), "/gone/bin/savepoint-hook is not there"),
        ("/gone/python", ("-I", "{hook}", "PreCompact"), "/gone/python is not there"),
        ("{python}", ("-I", "/gone/savepoint-hook", "PreCompact"), "/gone/savepoint-hook is not"),
        ("{hook} PreCompct", (), "there is no event 'PreCompct'"),
        ("{hook}", (), "no event is named"),
        ("no-such-program/savepoint-hook PreCompact", (), "is not there"),
    ],
)
def test_a_hook_that_cannot_work(
    cli: Scene, command: str, args: tuple[str, ...], said: str
) -> None:
    names = {"python": sys.executable, "hook": str(Path(sys.executable).parent / "savepoint-hook")}
    settle(command.format(**names), *(one.format(**names) for one in args))
    code, checks = look(cli)
    assert code == 1
    assert checks["agent"]["result"] == "fail"
    assert said in checks["agent"]["detail"]


def test_a_hook_as_the_readme_shows_it(cli: Scene) -> None:
    hook = Path(sys.executable).parent / "savepoint-hook"
    settle(sys.executable, "-I", str(hook), "PreCompact")
    assert look(cli)[1]["agent"]["result"] == "ok"
    settle('"$HOME/x/savepoint-hook" PreCompact')
    assert look(cli)[1]["agent"]["result"] == "ok", "what a shell expands is not judged"


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"\xff", b'{"disableAllHooks": true}'])
def test_settings_with_which_no_hook_runs(cli: Scene, content: bytes) -> None:
    Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json").write_bytes(content)
    code, checks = look(cli)
    assert code == 1
    assert "agent" in checks


@pytest.mark.parametrize(
    "content",
    ["[]", '{"hooks": 1}', '{"hooks": {"Stop": [1, {"hooks": 2}]}}'],
)
def test_settings_of_another_shape_name_no_hook(cli: Scene, content: str) -> None:
    Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json").write_text(content)
    assert look(cli)[1]["agent"]["result"] == "warn"


def test_the_events_that_doctor_knows_are_those_of_the_hook() -> None:
    probe = "from savepoint import hook; print(*hook.SECONDS, *hook.IGNORED)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {*hooks.EVENTS, *hooks.QUIET}


def test_a_misspelt_event_that_was_fired(cli: Scene) -> None:
    journal.hook(
        cli.home,
        1_795_000_000,
        {
            "event": "PreCompct",
            "session_id": OTHER_SESSION,
            "transcript": str(cli.transcript),
            "project": str(cli.project),
            "reason": "there is no event 'PreCompct' to save at",
        },
    )
    told = look(cli)[1]["missed fires"]
    assert told["result"] == "ok"
    assert "there is no event 'PreCompct' to save at (1 fire, the last at 2026" in told["detail"]
    assert cli.good("status", "--json").json["missed_fires"] == 0
    assert "missed" not in cli.good("init").err


def test_a_missed_fire_of_a_session_that_was_saved_before_is_none(cli: Scene) -> None:
    """`status` said for ever that a session was missed: `init` found nothing new to save."""
    cli.created()
    fire = {"event": "Stop", "session_id": SESSION, "transcript": str(cli.transcript)}
    later = int(time.time()) + 100
    journal.hook(cli.home, later, {**fire, "project": str(cli.project), "reason": "disk full"})
    assert cli.good("status", "--json").json["missed_fires"] == 0
    cli.say("more")
    assert "missed      1 session: run" in cli.good("status").text


def test_a_lost_trusted_head_is_a_warning(cli: Scene) -> None:
    cli.created()
    Path(cli.paths.trusted).unlink()
    code, checks = look(cli)
    assert (code, checks["trusted head"]["result"]) == (0, "warn")
    cli.good("fsck", "--repair")
    assert look(cli)[1]["trusted head"]["result"] == "ok"


def test_a_config_that_cannot_be_read(cli: Scene) -> None:
    path = cli.paths.store.config
    Path(path).write_bytes(b"{")
    code, checks = look(cli)
    assert code == 1
    assert path in checks["stores"]["detail"]
    assert path in checks["store"]["detail"]


def test_a_map_that_is_old(cli: Scene) -> None:
    Path(cli.home.stores_file).write_text('{"v":1,"stores":{}}\n')
    code, checks = look(cli)
    assert checks["stores"]["result"] == "warn"
    cli.good("init")
    assert look(cli)[1]["stores"]["result"] == "ok"
    assert len(os.listdir(cli.home.stores)) == 1
    assert code == 0  # the agent's next event would find it as well


def test_pending_with_its_age(cli: Scene) -> None:
    Path(cli.paths.authority).chmod(0o644)
    cli("create")
    _, checks = look(cli)
    assert checks["pending"]["result"] == "warn"
    assert "1 draft to sign" in checks["pending"]["detail"]


def test_without_a_store_an_installed_hook_is_all_that_is_needed(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor` failed right after `install`, though the first event makes the store."""
    (tmp_path / "new").mkdir()
    new = Scene(tmp_path / "new", capsysbinary)
    code, checks = look(new)
    assert (code, checks["store"]["result"]) == (0, "ok")
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "nothing"))
    code, checks = look(new)
    assert (code, checks["home"]["result"]) == (0, "ok")
    Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json").write_text("{}")
    code, checks = look(new)
    assert (code, checks["store"]["result"], checks["home"]["result"]) == (1, "fail", "fail")


def test_fires_below_a_folder_that_found_a_store_are_not_missed(cli: Scene) -> None:
    """That which made the store of a project counted as missed in the folder above."""

    def fire(project: Path) -> None:
        told = {"event": "Stop", "session_id": SESSION, "transcript": "", "project": str(project)}
        journal.hook(cli.home, 1_795_000_000, {**told, "reason": "disk full"})

    fire(cli.project)
    code, checks = look_at(cli, cli.project.parent)
    assert (code, checks["store"]["result"]) == (0, "ok")
    assert "missed fires" not in checks
    fire(cli.project.parent / "other")
    code, checks = look_at(cli, cli.project.parent)
    assert checks["missed fires"]["detail"].startswith("1 fire found no store")


def test_a_home_that_cannot_be_made_is_no_home_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "link" / "a" / "b"))
    check = machine.run(place.home(), installed=True)[3]
    assert (check.name, check.result) == ("home", "fail")
    assert f"nothing can be made in {tmp_path / 'link'}" in check.detail


def test_missed_fires_and_the_command_that_catches_them_up(cli: Scene) -> None:
    transcript = cli.say("missed", session=OTHER_SESSION)
    members = {"event": "Stop", "session_id": OTHER_SESSION, "transcript": str(transcript)}
    fire = {**members, "project": str(cli.project), "reason": "disk full"}
    journal.hook(cli.home, 1_700_000_000, dict(fire))
    _, checks = look(cli)
    assert checks["missed fires"]["result"] == "warn"
    assert "since 2023-11-14T22:13:20Z (disk full)" in checks["missed fires"]["detail"]
    assert cli.good("status", "--json").json["missed_fires"] == 1
    cli.good("init")
    assert look(cli)[1]["missed fires"] == {
        "name": "missed fires",
        "result": "ok",
        "detail": "none",
        "todo": "",
    }


def test_a_missed_fire_whose_transcript_is_gone_is_told_but_nothing_can_be_done(cli: Scene) -> None:
    members = {"event": "Stop", "session_id": SESSION, "transcript": "/gone.jsonl"}
    fire = {**members, "project": str(cli.project), "reason": "no store"}
    journal.hook(cli.home, 1_700_000_000, dict(fire))
    _, checks = look(cli)
    assert checks["missed fires"]["result"] == "ok"
    assert "transcripts are gone" in checks["missed fires"]["detail"]


def test_a_home_that_others_may_read(cli: Scene) -> None:
    Path(cli.home.path).chmod(0o755)
    _, checks = look(cli)
    assert checks["home"]["result"] == "warn"
    assert checks["home"]["todo"] == f"chmod 700 {cli.home.path}"


def test_little_room_left(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DISK_LOW_BYTES", 1 << 60)
    assert look(cli)[1]["disk"]["result"] == "warn"


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("#!/bin/sh\necho git version 2.35.9\n", "warn"),
        ("#!/bin/sh\necho git version 2.36.0.windows.1\n", "ok"),
        ("#!/bin/sh\necho rubbish\n", "warn"),
        ("#!/bin/sh\nexit 3\n", "warn"),
        (None, "warn"),
    ],
)
def test_git(
    cli: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, result: str
) -> None:
    folder = tmp_path / "path"
    folder.mkdir()
    if said is not None:
        (folder / "git").write_text(said)
        (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    code, checks = look(cli)
    assert checks["git"]["result"] == result
    assert code == 0


def test_the_hooks_program_is_gone_or_names_a_python_that_is(cli: Scene) -> None:
    hook = Path(sys.executable).with_name("savepoint-hook")
    hook.write_text("#!/nowhere/bin/python\n")
    code, checks = look(cli)
    assert (code, checks["hook"]["result"]) == (1, "fail")
    assert "/nowhere/bin/python" in checks["hook"]["detail"]
    hook.unlink()
    assert look(cli)[1]["hook"]["result"] == "fail"


def test_it_changes_nothing(cli: Scene) -> None:
    cli.created()
    Path(cli.home.stores_file).unlink()
    before = {path: path.stat().st_mtime_ns for path in Path(cli.home.path).rglob("*")}
    machine.run(cli.home, installed=True)
    assert {path: path.stat().st_mtime_ns for path in Path(cli.home.path).rglob("*")} == before
