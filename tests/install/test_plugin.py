"""The plugin: the same events as the settings have, and no harm where the program is missing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from savepoint import __version__
from savepoint.cli import main
from savepoint.cli.agent import agent_settings
from tests.cli.scene import SESSION
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from tests.cli.scene import Scene

PLUGIN = PROJECT / "plugin" / "savepoint"


def hook(
    plugin: Path, event: str, path: str, data: bytes = b"{}"
) -> subprocess.CompletedProcess[bytes]:
    """Run a hook of the plugin as its hooks.json says."""
    listed = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    ((group,),) = ([one["hooks"] for one in listed[event]],)
    (told,) = group
    words = [word.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for word in told["args"]]
    environment = {**os.environ, "PATH": path, "CLAUDE_PLUGIN_DATA": str(plugin.parent / "data")}
    return subprocess.run(
        [told["command"], *words], input=data, env=environment, capture_output=True, check=False
    )


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The plugin on a machine that has no savepoint."""
    return Path(shutil.copytree(PLUGIN, tmp_path / "plugin with blanks"))


def test_it_hooks_into_the_same_events_as_the_settings() -> None:
    listed = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    assert {event: group[0]["hooks"][0]["timeout"] for event, group in listed.items()} == (
        agent_settings.SECONDS
    )


def test_without_the_program_it_is_silent_and_says_so_once(alone: Path) -> None:
    for event in ("PreCompact", "Stop", "SessionStart", "SessionStart", "SessionEnd"):
        done = hook(alone, event, "/usr/bin:/bin")
        assert (done.returncode, done.stderr) == (0, b"")
        if event == "SessionStart" and not (alone.parent / "seen").exists():
            (alone.parent / "seen").touch()
            assert "Install the package" in json.loads(done.stdout)["systemMessage"]
        else:
            assert done.stdout == b""


def test_a_folder_that_cannot_be_written_is_no_harm(alone: Path) -> None:
    (alone.parent / "data").write_bytes(b"")
    done = hook(alone, "SessionStart", "/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "first", ["#!{python}", "#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''"]
)
def test_it_finds_the_program_in_the_path(bare: Scene, alone: Path, first: str) -> None:
    """Also one whose first line names a shell, as pip writes it where a path is long."""
    program = alone.parent / "bin" / "savepoint-hook"
    program.parent.mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from savepoint.hook import main; main()"
    )
    program.write_text(first.format(python=sys.executable) + f"\n{code}\n")
    program.chmod(0o755)
    bare.say("hello")
    payload = {
        "session_id": SESSION,
        "transcript_path": str(bare.transcript),
        "cwd": str(bare.project),
    }
    done = hook(
        alone, "PreCompact", f"{program.parent}:/usr/bin:/bin", json.dumps(payload).encode()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (one,) = bare.good("list", "--json").json["savepoints"]
    assert one["session_id"] == SESSION


def test_a_dead_program_is_no_harm_to_the_agent(alone: Path) -> None:
    program = alone.parent / "bin" / "savepoint-hook"
    program.parent.mkdir()
    program.write_text("#!/no/such/python\n")
    program.chmod(0o755)
    assert hook(alone, "Stop", f"{program.parent}:/usr/bin:/bin").returncode == 0


def test_its_own_command_does_not_find_itself(alone: Path) -> None:
    own = alone / "bin" / "savepoint"
    environment = {"PATH": f"{own.parent}:/usr/bin:/bin", "HOME": str(alone)}
    done = subprocess.run([own, "list"], env=environment, capture_output=True, check=False)
    assert done.returncode == 127
    assert b"savepoint: hint: pipx install savepoint" in done.stderr


def test_the_skills_name_commands_that_exist() -> None:
    skills = sorted((PLUGIN / "skills").glob("*/SKILL.md"))
    assert {one.parent.name for one in skills} >= {"precompact", "status", "resurrect"}
    for skill in skills:
        text = skill.read_text()
        assert f"\nname: {skill.parent.name}\n" in text
        named = re.findall(r"(?:^|`)savepoint ([a-z]+)", text, flags=re.MULTILINE)
        known = typer.main.get_command(main.program()).commands  # type: ignore[attr-defined]  # a group
        assert named
        assert set(named) <= set(known)


def test_versions_agree() -> None:
    assert json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())["version"] == __version__
