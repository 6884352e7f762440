"""`resurrect --worktree`: a new worktree at the recorded commit, with the changes of the savepoint;
nothing that the repository names is run for it.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from savepoint.cli.resurrect import tree
from savepoint.core.errors import DiskError
from savepoint.resurrect import arrival, successor
from savepoint.store import registry, savepoints
from tests.cli.scene import without_privileges
from tests.resurrect import test_killed
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
    bare.good("init", "--instance", "Gabriel #215")
    bare.write(Talk().say(1, "T").data)
    bare.created()
    return bare


def test_the_report_names_the_changes_and_how_they_come_back(
    repository: Scene, tmp_path: Path
) -> None:
    """Nothing said that there are any."""
    report = repository.good("resurrect", "--json").json
    folder = f"{report['folder']}/changes"
    text = repository.good("resurrect").text
    line = next(one for one in text.splitlines() if one.startswith("Changes: "))
    assert "uncommitted files in " in line
    assert line.endswith("; `--worktree DIR` puts them into a new worktree")
    assert os.path.isdir(folder)
    text = repository.good("resurrect", "--worktree", str(tmp_path / "wt")).text
    line = next(one for one in text.splitlines() if one.startswith("Changes: "))
    assert "--worktree" not in line


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


def born(scene: Scene) -> int:
    return len(savepoints.instances(registry.find(scene.home, str(scene.project)))) - 1


def left_of(scene: Scene, folder: Path) -> list[str]:
    """Worktrees that git knows of beside the first, and what waits in a folder."""
    known = git(scene.project, "worktree", "list", "--porcelain").split("\n\n")[1:]
    return [*filter(None, known), *(one.name for one in folder.glob(".tmp-*"))]


def test_a_run_that_dies_behind_the_birth_leaves_it_to_the_next(
    repository: Scene, tmp_path: Path
) -> None:
    """It was made behind the birth: half of it stayed, and no run finished it."""
    wanted, status = tmp_path / "wt", git(repository.project, "status", "--porcelain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "finish", _fail)
        assert repository("resurrect", "--worktree", str(wanted)).code == 40
    assert not wanted.exists()
    back = repository.good("resurrect", "--json").json
    assert (back["worktree"], back["instance"] is not None) == (str(wanted), True)
    assert git(wanted, "status", "--porcelain") == status
    (told,) = left_of(repository, tmp_path)
    assert told.startswith(f"worktree {wanted}\n")
    assert "prunable" not in told
    git(repository.project, "worktree", "remove", "--force", str(wanted))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [20, 30, 33, 37, 40, 44])
def test_killed_anywhere_it_is_absent_or_complete_and_the_next_run_finishes(
    repository: Scene, tmp_path: Path, number: int
) -> None:
    wanted, status = tmp_path / "wt", git(repository.project, "status", "--porcelain")
    asked = ("resurrect", "--instance", "Gabriel #215", "--worktree", str(wanted))
    died = test_killed.run(repository, number, *asked)
    assert died.returncode in (0, 137), died.stderr
    store = registry.find(repository.home, str(repository.project))
    waits = any(os.path.lexists(one.arrival) for one in savepoints.instances(store))
    if wanted.exists():
        assert git(wanted, "status", "--porcelain") == status
    if waits or not wanted.exists():
        again = test_killed.run(repository, 10**6, *asked)
        assert again.returncode == 0, again.stderr
        assert f"Worktree: {wanted}".encode() in again.stdout
    assert git(wanted, "status", "--porcelain") == status
    assert born(repository) == 1


def _fail(*_: object) -> None:
    raise DiskError("injected: no space left")


@pytest.mark.parametrize("name", ["_put", "_stage"])
def test_a_disk_that_is_full_is_40_and_nothing_is_born(
    repository: Scene, tmp_path: Path, name: str
) -> None:
    wanted = ("--worktree", str(tmp_path / "wt"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, name, _fail)
        assert repository("resurrect", *wanted).code == 40
    assert born(repository) == 0
    assert left_of(repository, tmp_path) == []
    repository.good("resurrect", *wanted)


def test_a_folder_that_cannot_be_written_is_40_and_nothing_is_born(
    repository: Scene, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    ran = without_privileges("resurrect", "--worktree", str(closed / "wt"), cwd=repository.project)
    assert (ran.returncode, b"permission denied" in ran.stderr) == (40, True), ran.stderr
    assert born(repository) == 0
    assert left_of(repository, closed) == []


def test_what_fails_behind_it_takes_it_away_again(repository: Scene, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(successor, "publish", _fail)
        assert repository("resurrect", "--worktree", str(tmp_path / "wt")).code == 40
    assert left_of(repository, tmp_path) == []


def test_its_folders_have_the_modes_of_others(repository: Scene, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        ran = repository.good("resurrect", "--worktree", str(tmp_path / "wt"))
    finally:
        os.umask(before)
    assert {(tmp_path / "wt" / one).stat().st_mode & 0o777 for one in ("", "sub")} == {0o755}
    assert f"the session belongs to {repository.project}" in ran.err


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
