"""Branches and their folders."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core.errors import UnverifiableError
from succession.dynasty import branch
from tests.succession.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("main", "main"),
        ("feature-a", "feature-a"),
        ("feature/a", "feature-a~"),
        ("Main", "main~"),
        ("../x", "x~"),
        ("v1.2", "v1-2~"),
        ("detached-0123456789ab", "detached-0123456789ab~"),
        ("b" * 300, "b" * 40 + "~"),
        ("長い", "x~"),
        ("-", "x~"),
    ],
)
def test_folder(name: str, folder: str) -> None:
    made = branch.folder(name)
    assert made == folder if "~" not in folder else made.startswith(folder)
    assert len(made) <= 64
    assert "/" not in made
    assert not made.startswith(".")


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=6, unique=True))
def test_no_two_names_share_a_folder_whatever_their_case(names: list[str]) -> None:
    assert len({branch.folder(name).lower() for name in names}) == len(names)


def test_without_a_repository(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", git=False)
    assert scene.branch.folder == "no-repository~"
    scene.record("A decision", "because")
    scene.run()
    assert "none (no repository)" in (scene.own / "dawn.md").read_text()


def test_before_the_first_commit(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", git=False)
    scene.git("init", "-q", "-b", "trunk")
    assert (scene.branch.name, scene.branch.commit) == ("trunk", None)
    scene.record("A decision", "because")
    scene.run()
    assert scene.state.meta.current == 2


def test_a_head_that_cannot_be_read_is_no_other_branch(scene: Scene) -> None:
    (scene.project.project / ".git/HEAD").write_bytes(b"rubbish\n")
    with pytest.raises(UnverifiableError):
        scene.record("A decision", "because")
    assert not scene.folder.exists()


def test_a_repository_whose_refs_are_no_files(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", git=False)
    command = ["git", "init", "-q", "-b", "side", "--ref-format=reftable", "."]
    made = subprocess.run(command, cwd=scene.project.project, capture_output=True, check=False)
    if made.returncode:  # an older git: what it says of its own repository is asked for anyway
        scene.git("init", "-q", "-b", "side")
        scene.git("config", "extensions.refstorage", "other")
        scene.git("config", "core.repositoryformatversion", "0")
    assert scene.branch.name == "side"


def test_a_worktree_has_its_own_branch(scene: Scene, tmp_path: Path) -> None:
    scene.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    asked = scene.request()
    there = branch.current(asked.project, str(tmp_path / "tree"), asked.environment)
    assert (there.name, scene.branch.name) == ("other", "main")
