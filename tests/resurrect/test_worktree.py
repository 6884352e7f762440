"""`resurrect --worktree`: a new worktree at the recorded commit, with the changes of the savepoint;
nothing that the repository names is run for it.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.scene import Scene


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True, timeout=180
    )
    return done.stdout.decode()


@pytest.fixture
def repository(bare: Scene) -> Scene:
    """A commit; behind it a staged file, a changed, an untracked and a deleted one."""
    top = bare.project
    git(top, "init", "-q")
    for name in ("kept", "changed", "deleted", "staged"):
        (top / name).write_text(f"{name} 1\n")
    (top / "run").write_text("#!/bin/sh\n")
    (top / "run").chmod(0o755)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "one")
    (top / "changed").write_text("changed 2\n")
    (top / "deleted").unlink()
    (top / "staged").write_text("staged 2\n")
    (top / "fresh").write_text("fresh 1\n")
    git(top, "add", "staged", "fresh")
    (top / "staged").write_text("staged 3\n")
    (top / "sub").mkdir()
    (top / "sub/untracked").write_text("untracked 1\n")
    bare.good("init")
    bare.write(Talk().say(1, "T").data)
    bare.created()
    return bare


def test_the_state_of_then_is_there_again(repository: Scene, tmp_path: Path) -> None:
    top, wanted = repository.project, tmp_path / "wt"
    before, status = git(top, "rev-parse", "HEAD"), git(top, "status", "--porcelain")
    (top / "kept").write_text("later\n")
    git(top, "commit", "-qam", "two")
    back = repository.good("resurrect", "--worktree", str(wanted), "--json").json
    assert back["worktree"] == str(wanted)
    assert git(wanted, "rev-parse", "HEAD") == before
    assert git(wanted, "status", "--porcelain") == status
    assert {
        path.name: path.read_text()
        for path in wanted.iterdir()
        if path.name != ".git" and path.is_file()
    } == {
        "kept": "kept 1\n",
        "changed": "changed 2\n",
        "staged": "staged 3\n",
        "fresh": "fresh 1\n",
        "run": "#!/bin/sh\n",
    }
    assert (wanted / "sub/untracked").read_text() == "untracked 1\n"
    assert os.access(wanted / "run", os.X_OK)
    assert git(wanted, "show", ":staged") == "staged 2\n"


def test_no_program_of_the_repository_is_run(repository: Scene, tmp_path: Path) -> None:
    """Hooks and filters, also one whose name no override of git's can spell."""
    top, mark = repository.project, tmp_path / "MARK"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    hook = top / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    with (top / ".git/config").open("a") as file:
        file.write(f'[filter "a=b"]\n\tsmudge = {script}\n\tclean = {script}\n')
        file.write(f"[core]\n\tfsmonitor = {script}\n")
    (top / ".git/info").mkdir(exist_ok=True)
    (top / ".git/info/attributes").write_text("* filter=a=b\n")
    repository.good("resurrect", "--worktree", str(tmp_path / "wt"))
    assert not mark.exists()


def test_it_is_refused_before_anything_is_made(repository: Scene, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    assert repository("resurrect", "--worktree", str(there)).code == 1
    git(repository.project, "update-ref", "-d", "HEAD")
    for one in (repository.project / ".git/objects").glob("??"):
        for name in one.iterdir():
            name.unlink()
    ran = repository("resurrect", "--worktree", str(tmp_path / "new"))
    assert (ran.code, "does not have commit" in ran.err) == (1, True)
    assert repository.good("list", "--records").text.count("birth") == 1


def test_a_project_without_commits_has_no_worktree(cli: Scene, tmp_path: Path) -> None:
    cli.created()
    assert cli("resurrect", "--worktree", str(tmp_path / "wt")).code == 1
