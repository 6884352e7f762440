"""`install` adds to the agent's settings what is ours alone; `uninstall` leaves no trace."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from savepoint.cli.agent import agent_settings
from savepoint.cli.worker.worker import is_running
from tests.cli.scene import SESSION, Scene

INSTALL, UNINSTALL = ("install", "claude-code"), ("uninstall", "claude-code")
FULL: dict[str, Any] = {
    "zeta": 1,
    "permissions": {"allow": ["Bash(git log:*)", "Read(~/x ü)"], "deny": []},
    "mcpServers": {"a": {"command": "x", "args": []}},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done", "timeout": 3}]}],
        "PreToolUse": [],
    },
    "statusLine": {"type": "command", "command": "echo 'it is' \"$USER\"", "padding": 0},
    "env": {},
}
TEXTS = {
    "three blanks, no line end": json.dumps(FULL, indent=3, ensure_ascii=False),
    "two blanks": json.dumps(FULL, indent=2) + "\n",
    "tabs": json.dumps(FULL, indent="\t") + "\n",
    "one line": json.dumps(FULL),
    "dense": json.dumps(FULL, separators=(",", ":")) + "\n\n",
    "BOM, CRLF": "\ufeff" + json.dumps(FULL, indent=4).replace("\n", "\r\n") + "\r\n",
    "empty object": "{}",
    "empty object on lines": "{\n}\n",
    "empty hooks": '{\n  "hooks": {}\n}\n',
    "odd": '{ "b" : [ ]\n,\t"hooks":{ "Stop" : [ ] } , "a":{"x" :1}}   \n\n',
    "only hooks of others": '{"hooks":{"PreCompact":[{"matcher":"auto","hooks":[]}]}}',
}


def hooks(path: Path) -> dict[str, list[list[str]]]:
    """Event → command lines of its hooks."""
    found: dict[str, list[list[str]]] = {}
    for event, groups in json.loads(path.read_text("utf-8-sig"))["hooks"].items():
        listed = [hook for group in groups for hook in group["hooks"]]
        found[event] = [[hook["command"], *hook.get("args", [])] for hook in listed]
    return found


def ours(path: Path) -> dict[str, list[list[str]]]:
    """Those of them that run our hook."""
    named = {
        event: [words for words in lines if any(word.endswith("/savepoint-hook") for word in words)]
        for event, lines in hooks(path).items()
    }
    return {event: lines for event, lines in named.items() if lines}


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


# Links and permissions


def test_a_link_stays_and_its_target_changes(bare: Scene, settings: Path, tmp_path: Path) -> None:
    """weby-homelab/antigravity-cli-statusline#48: dotfiles became plain files."""
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text('{"a": 1}')
    settings.symlink_to(target)
    told = bare.good(*INSTALL).text
    assert f"{target} (through the link {settings})" in told
    assert settings.readlink() == target
    assert "savepoint-hook" in target.read_text()
    bare.good(*UNINSTALL)
    assert settings.readlink() == target
    assert target.read_text() == '{"a": 1}'


def test_a_dangling_link(bare: Scene, settings: Path, tmp_path: Path) -> None:
    settings.symlink_to(tmp_path / "target.json")
    bare.good(*INSTALL)
    assert "savepoint-hook" in (tmp_path / "target.json").read_text()
    bare.good(*UNINSTALL)
    assert settings.is_symlink()
    assert not settings.exists()


def test_a_link_into_nowhere_is_refused(bare: Scene, settings: Path, tmp_path: Path) -> None:
    settings.symlink_to(tmp_path / "no" / "target.json")
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert str(tmp_path / "no" / "target.json") in ran.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_read_only_target_is_refused(
    bare: Scene, settings: Path, tmp_path: Path, linked: bool
) -> None:
    """agent-of-empires#3930: another program manages it."""
    target = tmp_path / "store.json" if linked else settings
    target.write_text('{"a": 1}')
    target.chmod(0o444)
    if linked:
        settings.symlink_to(target)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert str(target) in ran.err
    assert "read-only" in ran.err
    assert target.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"a": 1,}', b"\xff\xfe{", b'{"hooks": []}', b'{"hooks":{"Stop":1}}'],
)
def test_what_is_no_settings_file_is_refused(bare: Scene, settings: Path, data: bytes) -> None:
    settings.write_bytes(data)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert "savepoint: hint: nothing was changed" in ran.err
    assert settings.read_bytes() == data


WRONG = {
    "": "is empty: write {} into it",
    '{"a": 1, // why\n}': "line 1, column 10: a comment, which JSON does not have",
    '{\n  "a": 1 /* why */\n}': "line 2, column 10: a comment",
    '{\n  "a": 1,\n}': ": a comma before }",
    '{"a": [1, ]}': ": a comma before ]",
    '{"a" 1}': "line 1, column 6: ",
    "[]": "is a list and no JSON object",
    '{"hooks":null}': "`hooks` is null and no object",
    '{"hooks":{"Stop":{}}}': "`Stop` in `hooks` is an object and no list",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_settings_is_said_with_the_file_and_the_place(
    bare: Scene, settings: Path, text: str
) -> None:
    """`is no JSON: Expecting value` named neither."""
    settings.write_text(text)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert f"error: {settings} " in ran.err
    assert WRONG[text] in ran.err


def test_settings_of_the_project_that_are_wrong_are_named(bare: Scene, settings: Path) -> None:
    settings.write_text("{")
    ran = bare(*INSTALL, "--scope", "local")
    assert ran.code == 1
    assert f"error: {settings} is no JSON at line 1" in ran.err
    assert not local(bare).exists()


@pytest.mark.parametrize("scope", ["user", "local"])
def test_hooks_that_are_switched_off_are_said(bare: Scene, settings: Path, scope: str) -> None:
    """All seemed well, and nothing was ever saved."""
    settings.write_text('{"disableAllHooks": true}')
    told = bare.good(*INSTALL, "--scope", scope).err
    assert f"note: {settings} says disableAllHooks: no hook runs" in told
    settings.write_text("{}")
    assert "disableAllHooks" not in bare.good(*INSTALL, "--scope", scope).err


def test_a_folder_in_the_place_of_the_file(bare: Scene, settings: Path) -> None:
    settings.mkdir()
    assert bare(*INSTALL).code == 1


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


def local(scene: Scene) -> Path:
    """The project's local settings."""
    return scene.project / ".claude" / "settings.local.json"


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
