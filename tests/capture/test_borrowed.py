"""What of the user's repository is lent to a git that only reads commits."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.git import gitfiles
from savepoint.capture.git.borrowed import Borrowed
from savepoint.store.worktree import find_worktree
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("index", [True, False])
def test_a_command_about_commits_takes_no_index(tmp_path: Path, *, index: bool) -> None:
    """It may be long, and such a command does not look at it."""
    scene = Scene.make(tmp_path / "scene")
    commit = scene.git("rev-parse", "HEAD").strip()
    tree = find_worktree(str(scene.project))
    assert tree is not None
    ours = Borrowed(tree, commit, gitfiles.read_config(tree), str(tmp_path), index=index)
    try:
        (folder,) = (one for one in tmp_path.iterdir() if one != tmp_path / "scene")
        assert ("index" in os.listdir(folder)) is index
        asked = ours.start({"PATH": os.environ["PATH"]}, "log", "--format=%H", commit)
        assert asked.finish(time.monotonic() + 60).out.decode().split()[0] == commit
    finally:
        ours.remove()
