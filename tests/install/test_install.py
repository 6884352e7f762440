"""`install` adds to the agent's settings what is ours alone; `uninstall` leaves no trace."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from savepoint.cli.agent import agent_settings
from savepoint.cli.worker.worker import is_running
from tests.cli.scene import SESSION, Scene
from tests.install.settings import FULL, INSTALL, TEXTS, UNINSTALL, local, ours


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_uninstall_leaves_the_bytes_of_before(bare: Scene, settings: Path, text: str) -> None:
    """cycodehq/cycode-cli#537: the whole file went, or nothing."""
    settings.write_bytes(text.encode())
    settings.chmod(0o644)
    bare.good(*INSTALL)
    assert set(ours(settings)) == set(agent_settings.SECONDS)
    assert settings.stat().st_mode & 0o777 == 0o644
    bare.good(*UNINSTALL)
    assert settings.read_bytes() == text.encode()
    assert settings.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_else_changes(bare: Scene, settings: Path, text: str) -> None:
    settings.write_bytes(text.encode())
    before = json.loads(text.removeprefix("\ufeff"))
    bare.good(*INSTALL)
    after = json.loads(settings.read_text("utf-8-sig"))
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    own = before.pop("statusLine", {})
    assert after["statusLine"] == {"type": "command", **own, **after["statusLine"]}
    assert [name for name in after if name in before] == list(before)
    assert {name: after[name] for name in before if name != "hooks"} == {
        name: value for name, value in before.items() if name != "hooks"
    }


def test_no_file_before_none_after(bare: Scene, settings: Path) -> None:
    settings.parent.rmdir()
    bare.good(*INSTALL)
    assert set(ours(settings)) == set(agent_settings.SECONDS)
    assert settings.read_bytes().endswith(b"}\n")
    bare.good(*UNINSTALL)
    assert not settings.parent.exists()


def test_an_empty_object_of_the_user_stays(bare: Scene, settings: Path) -> None:
    """`uninstall` removed it, since there had been no file before."""
    bare.good(*INSTALL)
    settings.write_text("{}")
    bare.good(*UNINSTALL)
    assert settings.read_text() == "{}"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_second_install_changes_nothing(bare: Scene, settings: Path, text: str) -> None:
    settings.write_bytes(text.encode())
    bare.good(*INSTALL)
    once = settings.read_bytes()
    told = bare.good(*INSTALL, "--json").json
    assert (told["result"], told["diff"]) == ("unchanged", [])
    assert settings.read_bytes() == once
    bare.good(*UNINSTALL)
    assert settings.read_bytes() == text.encode()


def test_what_others_changed_since_stays(bare: Scene, settings: Path) -> None:
    """The agent writes the file anew whenever the user allows something."""
    settings.write_text(json.dumps(FULL, indent=2))
    bare.good(*INSTALL)
    value = json.loads(settings.read_text())
    value["permissions"]["allow"].append("Bash(ls)")
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    settings.write_text(json.dumps(value, indent=2))
    bare.good(*UNINSTALL)
    expected = json.loads(json.dumps(FULL))
    expected["permissions"]["allow"].append("Bash(ls)")
    expected["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    assert settings.read_text() == json.dumps(expected, indent=2)


def test_a_file_that_others_began_meanwhile_stays(bare: Scene, settings: Path) -> None:
    bare.good(*INSTALL)
    value = json.loads(settings.read_text())
    settings.write_text(json.dumps({"model": "x", **value}))
    bare.good(*UNINSTALL)
    assert json.loads(settings.read_text()) == {"model": "x"}


def test_the_hook_runs_as_the_settings_say(bare: Scene, settings: Path) -> None:
    bare.good("init")
    bare.say("hello")
    bare.good(*INSTALL)
    (command,) = ours(settings)["PreCompact"]
    payload = {"session_id": SESSION, "transcript_path": str(bare.transcript), "trigger": "manual"}
    done = subprocess.run(
        command,
        cwd=bare.project,
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stdout + done.stderr == b""
    (one,) = bare.good("list", "--json").json["savepoints"]
    assert one["session_id"] == SESSION


def test_a_dead_path_is_named_and_replaced(bare: Scene, settings: Path) -> None:
    """bobmatnyc/claude-mpm#552: the environment was made anew elsewhere."""
    gone = agent_settings.Program(
        "/nowhere/bin/python", "/nowhere/bin/savepoint-hook", "/nowhere/bin/savepoint"
    )
    settings.write_text(agent_settings.added(json.dumps(FULL, indent=1), gone, "own line"))
    checks = bare("doctor", "--json").json["checks"]
    (named,) = {
        one["detail"]
        for one in checks
        if one["result"] == "fail" and "/nowhere" in one["detail"] and "Stop" in one["detail"]
    }
    assert "/nowhere/bin/python" in named
    bare.good(*INSTALL)
    assert "/nowhere" not in settings.read_text()
    assert {event: len(lines) for event, lines in ours(settings).items()} == dict.fromkeys(
        agent_settings.SECONDS, 1
    )
    assert "'own line'" in json.loads(settings.read_text())["statusLine"]["command"]
    bare.good(*UNINSTALL)
    assert ours(settings) == {}
    assert json.loads(settings.read_text()) == {
        **FULL,
        "statusLine": {**FULL["statusLine"], "command": "own line"},
    }


def test_dry_run_shows_and_changes_nothing(bare: Scene, settings: Path) -> None:
    settings.write_text("{}\n")
    shown = bare.good(*INSTALL, "--dry-run").text
    assert '+    "PreCompact": [' in shown
    assert settings.read_text() == "{}\n"
    bare.good(*INSTALL)
    assert "savepoint-hook" in bare.good(*UNINSTALL, "--dry-run").text
    assert set(ours(settings)) == set(agent_settings.SECONDS)


def test_the_diff_is_what_happens(bare: Scene, settings: Path) -> None:
    settings.write_text(json.dumps(FULL, indent=2))
    told = bare.good(*INSTALL, "--json").json
    added = {line[1:] for line in told["diff"] if line.startswith("+")}
    assert set(settings.read_text().splitlines()) - added <= set(
        json.dumps(FULL, indent=2).splitlines()
    )
    assert told["target"] == str(settings)


# The status line


def test_the_users_status_line_goes_on_inside_ours(bare: Scene, settings: Path) -> None:
    own = FULL["statusLine"]["command"]
    settings.write_text(json.dumps(FULL))
    bare.good(*INSTALL)
    line = json.loads(settings.read_text())["statusLine"]
    assert line["padding"] == 0
    assert shlex.split(line["command"])[-2:] == ["--then", own]


def test_a_status_line_of_another_kind_is_left_alone(bare: Scene, settings: Path) -> None:
    settings.write_text('{"statusLine": {"type": "new", "x": 1}}')
    bare.good(*INSTALL)
    assert json.loads(settings.read_text())["statusLine"] == {"type": "new", "x": 1}


# For one project


def test_local_scope_is_for_one_project(bare: Scene, settings: Path) -> None:
    bare.good(*INSTALL, "--scope", "local")
    assert set(ours(local(bare))) == set(agent_settings.SECONDS)
    assert not settings.exists()
    bare.good(*UNINSTALL, "--scope", "local")
    assert not local(bare).parent.exists()


def test_what_git_will_see_of_the_local_settings_is_said(bare: Scene, settings: Path) -> None:
    told = bare.good(*INSTALL, "--scope", "local").err
    assert "git" not in told
    subprocess.run(["git", "init", "-q", str(bare.project)], check=True)
    told = bare.good(*INSTALL, "--scope", "local").err
    assert "add .claude/settings.local.json to .git/info/exclude" in told
    assert "exclude" not in bare.good(*INSTALL).err


def test_local_scope_goes_around_the_status_line_that_counts(bare: Scene, settings: Path) -> None:
    settings.write_text(json.dumps(FULL))
    bare.good(*INSTALL, "--scope", "local")
    line = json.loads(local(bare).read_text())["statusLine"]["command"]
    assert shlex.split(line)[-1] == FULL["statusLine"]["command"]
    local(bare).write_text(local(bare).read_text() + "\n")
    bare.good(*UNINSTALL, "--scope", "local")
    assert not local(bare).exists()
    bare.good(*INSTALL)
    bare.good(*INSTALL, "--scope", "local")
    assert "statusLine" not in json.loads(local(bare).read_text())


# The command


def test_another_agent_is_refused(bare: Scene) -> None:
    ran = bare("install", "emacs")
    assert ran.code == 2
    assert "say claude-code" in ran.err


def test_a_hook_that_does_not_run_is_not_installed(
    bare: Scene, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert "savepoint-hook is not there" in ran.err
    for name in ("savepoint-hook", "savepoint"):
        (python.parent / name).write_text("raise SystemExit(3)\n")
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert "does not run" in ran.err
    assert not settings.exists()


def test_uninstall_keeps_savepoints_and_keys_and_says_where(bare: Scene, settings: Path) -> None:
    bare.good("init")
    bare.say("hello")
    bare.created()
    before = sorted(Path(os.environ["SAVEPOINT_HOME"]).rglob("*"))
    settings.write_text("{}")
    bare.good(*INSTALL)
    told = bare.good(*UNINSTALL).text
    assert f"{bare.home.stores}" in told
    assert set(before) <= set(Path(os.environ["SAVEPOINT_HOME"]).rglob("*"))
    bare.good("verify", "latest")


def test_uninstall_ends_the_worker(bare: Scene, settings: Path) -> None:
    """One that waits for a remote to come back would go on for a quarter of an hour."""
    bare.good("init", "--remote", str(bare.project / "no.git"))
    bare.say("hello")
    bare("create")
    settings.write_text("{}")
    bare.good(*INSTALL)
    bare.good(*UNINSTALL)
    assert not is_running(bare.paths.store)


def test_uninstall_of_nothing_changes_nothing(bare: Scene, settings: Path) -> None:
    settings.write_text('{"a":1}')
    assert "nothing to change" in bare.good(*UNINSTALL).text
    assert settings.read_text() == '{"a":1}'
    settings.unlink()
    assert "nothing to change" in bare.good(*UNINSTALL).text
