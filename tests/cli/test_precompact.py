"""The specification's hook script and skill: its options, its three exit codes, its three lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.cli import precompact
from tests.cli.scene import SESSION, Ran, Scene
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Run = Callable[..., Ran]

_SKILL = PROJECT / "scripts/precompact_skill.py"
_HOOK = PROJECT / "scripts/precompact-hook.sh"


def skill(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run the skill with the Python of the tests, as if savepoint were installed in it."""
    return subprocess.run(
        [sys.executable, str(_SKILL), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **(env or {})},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=180,
    )


@pytest.fixture
def run(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """The skill in this process."""
    monkeypatch.chdir(cli.project)

    def call(*arguments: str) -> Ran:
        capsysbinary.readouterr()
        code = precompact.run(list(arguments))
        out, err = capsysbinary.readouterr()
        return Ran(code, out, err.decode())

    return call


def test_as_the_specification_calls_it(cli: Scene) -> None:
    done = skill(
        "--instance",
        "Gabriel #215",
        "--timestamp",
        "2026-11-30T13:26:49Z",
        "--context-utilization",
        "85",
        cwd=cli.project,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line.split(":")[0] for line in done.stdout.decode().splitlines()] == [
        "✓ Layer 1",
        "  Hash",
        "  Size",
        "  Conversation",
        "  Location",
        "✓ Layer 2",
        "  Commit",
        "· Layer 3",
    ]
    (one,) = cli.good("list", "--json").json["savepoints"]
    assert one["timestamp"] == "2026-11-30T13:26:49Z"
    assert one["context_utilization_percent"] == 85
    assert one["trigger"] == "context_limit_approaching"
    assert one["session_id"] == SESSION
    assert cli.good("verify").code == 0


@pytest.mark.parametrize("text", ["85", " 85 % ", "85.9", "85%"])
def test_utilization_as_people_write_it(run: Run, cli: Scene, text: str) -> None:
    assert run("--context-utilization", text).code == 0
    tokens = cli.good("show", "--json").json["tokens"]
    assert tokens["percent"] == 85
    assert "as told by the caller" in tokens["source"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--instance", "Nobody #1"],
        ["--timestamp", "yesterday"],
        ["--timestamp", "2026-02-30T00:00:00Z"],
        ["--context-utilization", "much"],
        ["--bogus"],
    ],
)
def test_what_it_does_not_know_is_2_and_nothing_is_saved(
    run: Run, cli: Scene, arguments: list[str]
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.startswith("savepoint: error: ")
    assert cli.good("list", "--json").json["savepoints"] == []


def test_an_instance_that_is_not_the_current_one_is_2(run: Run, cli: Scene) -> None:
    cli.good("init", "--instance", "Raphael #1")
    ran = run("--instance", "Gabriel #215")
    assert ran.code == 2
    assert "savepoint config instance" in ran.err


def test_no_store_is_2(bare: Scene) -> None:
    bare.say("x")
    assert skill(cwd=bare.project).returncode == 2


def test_no_session_is_2(bare: Scene) -> None:
    bare.good("init")
    assert skill(cwd=bare.project).returncode == 2


def test_a_key_that_is_missing_is_2(run: Run, cli: Scene) -> None:
    Path(cli.paths.authority).unlink()
    assert run().code == 2


def test_what_fails_after_the_savepoint_is_1(run: Run, cli: Scene) -> None:
    log = Path(cli.paths.status_log)
    log.unlink(missing_ok=True)
    log.mkdir()
    ran = run()
    assert ran.code == 1
    assert "Layer 1: Local savepoint created" in ran.text
    assert "savepoint: note: " in ran.err


def test_the_project_is_the_agents(cli: Scene, tmp_path: Path) -> None:
    done = skill(cwd=tmp_path, env={"CLAUDE_PROJECT_DIR": str(cli.project)})
    assert done.returncode == 0
    assert len(cli.good("list", "--json").json["savepoints"]) == 1


@pytest.mark.parametrize("payload", ["whole", "torn", "of an unknown project"])
def test_with_a_payload_it_is_the_hook(cli: Scene, tmp_path: Path, payload: str) -> None:
    cwd = tmp_path if payload.startswith("of") else cli.project
    told = {
        "hook_event_name": "PreCompact",
        "session_id": SESSION,
        "transcript_path": str(cli.transcript),
        "cwd": str(cwd),
        "trigger": "manual",
    }
    data = json.dumps(told).encode()
    if payload == "torn":
        data = data[:-3]
    done = skill("--instance", "Nobody #1", cwd=tmp_path, stdin=data)
    assert (done.returncode, done.stdout) == (0, b"")
    saves = cli.good("list", "--json").json["savepoints"]
    assert len(saves) == (0 if payload.startswith("of") else 1)


@pytest.mark.parametrize("payload", ["whole", "torn"])
def test_an_agent_that_never_closes_stdin_is_not_waited_for(cli: Scene, payload: str) -> None:
    """It was read to its end, before any alarm was set: a compaction waited for ever."""
    told = {"session_id": SESSION, "transcript_path": str(cli.transcript), "cwd": str(cli.project)}
    data = json.dumps(told).encode()
    process = subprocess.Popen(
        [sys.executable, str(_SKILL)],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(data if payload == "whole" else data[:-1])
        process.stdin.flush()
        assert process.wait(timeout=50) == 0
    finally:
        process.kill()
        process.communicate()
    assert len(cli.good("list", "--json").json["savepoints"]) == 1


def test_the_script_without_its_environment(tmp_path: Path) -> None:
    """A checkout that was never set up: a person is told, an agent is not kept from compacting."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for file in (_HOOK, _SKILL):
        (scripts / file.name).write_bytes(file.read_bytes())
    command = ["sh", str(scripts / _HOOK.name), "85"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    assert b"savepoint: hint: run " in done.stderr
    done = subprocess.run(command, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_script_finds_its_environment(cli: Scene, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    (checkout / ".venv/bin").mkdir(parents=True)
    for file in (_HOOK, _SKILL):
        (checkout / "scripts" / file.name).write_bytes(file.read_bytes())
    python = checkout / ".venv/bin/python"
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -I ] && shift\nPYTHONPATH={PROJECT} exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    hook = ["sh", str(checkout / "scripts" / _HOOK.name), "85"]
    done = subprocess.run(hook, cwd=cli.project, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    (one,) = cli.good("list", "--json").json["savepoints"]
    assert one["context_utilization_percent"] == 85
