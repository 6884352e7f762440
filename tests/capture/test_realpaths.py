"""Real paths, found once a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.realpaths import RealPaths
from savepoint.store.worktree import find_worktree, worktree_above

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.store.worktree import Worktree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    (tmp_path / "to_b").symlink_to("a/b")
    (tmp_path / "a/b/up").symlink_to("..")
    (tmp_path / "a/to_file").symlink_to(tmp_path / "to_b/file")
    (tmp_path / "gone").symlink_to("nowhere/at/all")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        *("a/b/file", "to_b/file", "to_b/up/b/file", "a/to_file", "a/b/up/to_file", "to_b"),
        *("gone", "gone/x", "loop", "loop/x", "missing", "missing/x/y", "a/b/file/x"),
        *("a/./b/file", "a/b/../b/file", "to_b/../file", "a//b/file", "a/b/", "a/b/."),
        "x/" * 300 + "file",
    ],
)
def test_it_is_what_realpath_says(tree: Path, path: str) -> None:
    whole = f"{tree}/{path}"
    ours = RealPaths()
    assert ours.of(whole) == os.path.realpath(whole)
    assert ours.of(whole) == os.path.realpath(whole), "asked again"
    assert ours.of(f"{tree}/to_b/file") == f"{os.path.realpath(tree)}/a/b/file", "and after it"


@pytest.mark.parametrize("path", ["/", "//", "//tmp", "", ".", "a", "/..", "/usr/.."])
def test_odd_ones(path: str) -> None:
    assert RealPaths().of(path) == os.path.realpath(path)


def test_a_worktree_is_found_alike_with_what_is_known(tmp_path: Path) -> None:
    for folder in (
        "one/.git/objects",
        "one/a/b",
        "one/a/inner/.git/objects/",
        "two/c",
        "bare/refs",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bare/objects").mkdir()
    for repository in ("one/.git", "one/a/inner/.git", "bare"):
        (tmp_path / repository / "HEAD").write_text("ref: refs/heads/main\n")
    names = [
        "one/a/b",
        "one",
        "one/a/inner",
        "one/a/inner/x/y",
        "one/a",
        "two/c",
        "bare",
        "one/gone",
    ]
    for order in (names, names[::-1], names * 2):
        known: dict[str, Worktree | None] = {}
        for name in order:
            path = os.path.realpath(tmp_path / name)
            assert worktree_above(path, known) == find_worktree(path), name
    assert find_worktree(str(tmp_path / "one/a/inner/x")) != find_worktree(str(tmp_path / "one/a"))
