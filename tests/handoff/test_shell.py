"""Which line of shell is ours alone: all others have something that a handoff would cut off."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from succession.handoff import shell, turn
from tests.handoff.threads import agent, call, user

if TYPE_CHECKING:
    from pathlib import Path

OURS = [
    "savepoint handoff create",
    "  savepoint handoff create\n",
    "/x/.venv/bin/savepoint handoff ready --json",
    '"$HOME/bin/savepoint" handoff ready',
    "cd /p && savepoint handoff create 2>&1",
    "cd '/a b' && CLAUDE_CODE_SESSION_ID=x savepoint handoff create >/dev/null",
    "savepoint handoff item dismiss c-1 \\\n  c-2 --reason 'done; see `x` && $(y)'",
    "savepoint \\\nhandoff create",
    'savepoint handoff offer close OFFER-1 --evidence "it\'s \\`x\\` (done) & more; #7"',
    "savepoint handoff offer close OFFER-1 --evidence pr#7",
    "savepoint handoff gather && savepoint handoff create",
    "savepoint handoff item add a\\;b",
]
OTHERS = [
    "",
    "./deploy.sh prod  # later: savepoint handoff",
    "echo savepoint handoff; touch x",
    "savepoint handoff create; touch x",
    "savepoint handoff create & touch x",
    "savepoint handoff create | tee x",
    "savepoint handoff create || touch x",
    "savepoint handoff create > x",
    "savepoint handoff create >x",
    "savepoint handoff create\ntouch x",
    "touch x && savepoint handoff create",
    "savepoint handoff item add $(touch x)",
    'savepoint handoff item add "$(touch x)"',
    'savepoint handoff item add "`touch x`"',
    "savepoint handoff item add `touch x`",
    "savepoint handoff item add <(touch x)",
    "savepoint handoff item add $'\\''; touch x; echo $'\\''",
    "savepoint handoff ready # it's\ntouch x # it's",
    "savepoint handoff item add a#'\ntouch x\n'",
    "savepoint handoff item add 'no end",
    "savepoint handoff item add \\",
    "sudo savepoint handoff create",
    "sh -c 'savepoint handoff create'",
    "savepoints handoff create",
    "savepoint create",
    "savepoint create && savepoint handoff create",
    "cd /p",
    "A=b",
    "! savepoint handoff create",
]


@pytest.mark.parametrize("line", OURS)
def test_a_line_of_ours(line: str) -> None:
    assert set(shell.subcommands(line) or ()) == {"handoff"}
    assert turn.open_turn(user("hand off") + agent(call("1", command=line))) == []


@pytest.mark.parametrize("line", [one for one in OTHERS if one and "add a#" not in one])
def test_a_line_that_runs_something_else(line: str) -> None:
    assert set(shell.subcommands(line) or ()) != {"handoff"}
    (found,) = turn.open_turn(user("deploy") + agent(call("1", command=line)))
    assert "the call 1 of Bash has no result" in found.evidence


@pytest.mark.parametrize("line", [*OURS, *OTHERS])
def test_what_the_shell_says(line: str, tmp_path: Path) -> None:
    """Where a shell touches a file or starts another program, the line does not count as ours."""
    names = {"savepoint", "cd", "touch", "tee", "sudo", "sh"}
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name in names - {"cd"}:
        (stubs / name).write_text(f"#!/bin/bash\necho {name} >> {tmp_path}/ran\n", encoding="utf-8")
        (stubs / name).chmod(0o755)
    bash = shutil.which("bash")
    assert bash
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(
        [bash, "-c", f"cd() {{ :; }}\n{line}"],
        cwd=work,
        env={"PATH": str(stubs), "HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        timeout=60,
    )
    ran = tmp_path / "ran"
    told = set(ran.read_text(encoding="utf-8").split()) if ran.exists() else set()
    if told - {"savepoint"} or any(work.iterdir()):
        assert set(shell.subcommands(line) or ()) != {"handoff"}
