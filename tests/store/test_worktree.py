"""Which repository a folder belongs to, as git itself says."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from savepoint.store import worktree
from savepoint.store.worktree import Worktree, current_worktree, find_worktree
from tests.capture.gitrepo import Repo

if TYPE_CHECKING:
    from pathlib import Path


def told_by_git(folder: Path) -> Worktree | None:
    command = ["git", "rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if len(lines) < 2:
        return None
    top = os.path.realpath(lines[2]) if len(lines) > 2 else None
    common = os.path.realpath(os.path.join(folder, lines[1]))
    return Worktree(top, os.path.realpath(lines[0]), common)


def test_from_the_top_and_from_below(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    git_dir = str(repo.path / ".git")
    expected = Worktree(str(repo.path), git_dir, git_dir)
    for folder in (repo.path, repo.path / "folder", repo.path / "gone/and/gone"):
        assert find_worktree(str(folder)) == expected
    for folder in (repo.path, repo.path / "folder"):
        assert told_by_git(folder) == expected


def test_linked_worktree_and_submodule(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("worktree", "add", "-q", str(tmp_path / "w"))
    Repo.with_commit(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "add", "-q")
    repo.git(*local, str(tmp_path / "other"), "module")
    (repo.path / "module/deep").mkdir()
    for folder in (tmp_path / "w", repo.path / "module", repo.path / "module/deep"):
        found = find_worktree(str(folder))
        assert found is not None
        assert found == told_by_git(folder)


def test_relative_gitdir_file(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git").rename(tmp_path / "elsewhere")
    (repo.path / ".git").write_text("gitdir: ../elsewhere\n")
    found = find_worktree(str(repo.path / "folder"))
    assert found == told_by_git(repo.path / "folder")
    assert found
    assert found.git_dir == str(tmp_path / "elsewhere")


def test_links_on_the_way(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "real")
    (tmp_path / "link").symlink_to(repo.path)
    assert find_worktree(str(tmp_path / "link/folder")) == find_worktree(str(repo.path))
    (repo.path / ".git").rename(tmp_path / "moved")
    (repo.path / ".git").symlink_to(tmp_path / "moved")
    assert find_worktree(str(repo.path)) == Worktree(
        str(repo.path), str(tmp_path / "moved"), str(tmp_path / "moved")
    )


def test_bare_repository(tmp_path: Path) -> None:
    bare = Repo.make(tmp_path / "b.git", "--bare")
    path = str(bare.path)
    for folder in (bare.path, bare.path / "refs/heads"):
        assert find_worktree(str(folder)) == Worktree(None, path, path)
        assert told_by_git(folder) == Worktree(None, path, path)


def test_worktree_of_a_bare_repository(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "b.git"))
    Repo(tmp_path / "b.git").git("worktree", "add", "-q", str(tmp_path / "w"))
    found = find_worktree(str(tmp_path / "w"))
    assert found
    assert found == told_by_git(tmp_path / "w")
    assert found.common_dir == str(tmp_path / "b.git")


def test_inside_dot_git_it_is_the_worktree_around(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    assert find_worktree(str(repo.path / ".git/objects")) == find_worktree(str(repo.path))


def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    assert find_worktree(str(tmp_path / "p")) is None
    assert find_worktree("/") is None
    for odd in ("", "\0", "a\0b", "x" * 10_000, "/" + "y/" * 5000, "\udcff"):
        find_worktree(odd)


@pytest.mark.parametrize("kind", ["empty folder", "fifo", "garbage", "empty file", "zeros"])
def test_what_is_no_repository_is_passed_by(tmp_path: Path, kind: str) -> None:
    """Sandboxes put an empty `.git` into a folder; a FIFO must not block."""
    outer = Repo.with_commit(tmp_path / "p")
    inner = outer.path / "inner"
    inner.mkdir()
    if kind == "empty folder":
        (inner / ".git").mkdir()
    elif kind == "fifo":
        os.mkfifo(inner / ".git")
    else:
        content = {"garbage": b"x" * 99, "empty file": b"", "zeros": b"gitdir: a\0b\n"}[kind]
        (inner / ".git").write_bytes(content)
    assert find_worktree(str(inner)) == find_worktree(str(outer.path))


def test_pointer_to_nothing_is_not_taken_for_the_repository_around(tmp_path: Path) -> None:
    outer = Repo.with_commit(tmp_path / "p")
    inner = outer.path / "inner"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: /nowhere/x\n")
    assert find_worktree(str(inner)) == Worktree(str(inner), "/nowhere/x", "/nowhere/x")
    assert told_by_git(inner) is None


def test_lost_head_is_still_a_repository(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    before = find_worktree(str(repo.path))
    (repo.path / ".git/HEAD").unlink()
    assert find_worktree(str(repo.path)) == before


def test_search_ends_at_the_root_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As git's does: a mounted folder does not belong to what it is mounted in."""
    repo = Repo.with_commit(tmp_path / "p")
    mounted = str(repo.path / "folder")
    monkeypatch.setattr(worktree, "_device", lambda path: 2 if path.startswith(mounted) else 1)
    assert find_worktree(mounted) is None
    assert find_worktree(str(repo.path)) is not None


def test_state_follows_the_agent_into_a_worktree_of_the_project_only(tmp_path: Path) -> None:
    """claude-code#87890: the project folder of the hooks stays where the session began."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("worktree", "add", "-q", str(tmp_path / "w"))
    other = Repo.with_commit(tmp_path / "other")
    project = str(repo.path)
    entered = current_worktree(project, str(tmp_path / "w"))
    assert entered
    assert entered.top == str(tmp_path / "w")
    for elsewhere in (other.path, tmp_path, tmp_path / "gone", repo.path / "folder"):
        assert current_worktree(project, str(elsewhere)) == find_worktree(project)
    assert current_worktree(str(tmp_path), project) is None
