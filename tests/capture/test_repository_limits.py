"""What git is asked within limits of bytes, files and time; what it ignores, or cannot say."""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

from savepoint.capture.exclusion import Exclusion
from savepoint.capture.git import changes, repository
from savepoint.capture.realpaths import RealPaths
from savepoint.core import limits
from tests.capture.gitrepo import Repo, contents, environment, look, request

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_limit_of_bytes(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_BYTES", 1000)
    repo.write("a", "x" * 600)
    repo.git("add", "a")
    repo.write("b", "y" * 600)
    repo.write("new", "z" * 399)
    repo.write("staged", "s" * 1001)
    repo.git("add", "staged")
    found = look(repo.path)
    assert set(contents(found)) == {("staged", "a"), ("untracked", "new")}
    assert dict(found.excluded).keys() == {"b", "staged"}
    assert found.omitted == f"{changes.TOO_LARGE} (2)"


def test_a_large_file_that_did_not_change_is_not_lost(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHANGES_BYTES", 1000)
    repo.write("large", "x" * 3_000_000)
    repo.git("add", "large")
    repo.git("commit", "-qm", "x")
    os.utime(repo.path / "large")
    assert look(repo.path).state["status"] == "clean"
    repo.write("large", "x" * 2_999_999 + "y")
    found = look(repo.path)
    assert found.excluded == (("large", changes.TOO_LARGE),)
    assert found.state["status"] == "dirty"


def test_limit_of_files(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_FILES", 3)
    for number in range(10):
        repo.write(f"n{number}", "x")
    found = look(repo.path)
    assert len(found.changes) == 3
    assert len(found.excluded) == 3
    assert found.omitted == f"{changes.TOO_MANY} (7)"


def test_a_huge_staged_blob_is_not_even_printed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHANGES_BYTES", 1000)
    monkeypatch.setattr(limits, "GIT_OUTPUT_BYTES", 100_000)
    repo.write("big", os.urandom(1_000_000))
    repo.write("small", "x")
    repo.git("add", ".")
    repo.settle()
    assert contents(look(repo.path)) == {("staged", "small"): b"x"}


def test_no_time(repo: Repo) -> None:
    repo.write("a", "changed")
    found = look(repo.path, seconds=0)
    assert found.state["status"] == "unknown"
    assert found.state["branch"] == "main"
    assert found.omitted == (
        "staged changes: out of time; changed files: out of time; untracked files: out of time"
    )


def test_time_that_ends_while_files_are_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        repo.write(f"n{number}", "x")
    read, clock = changes.Collector._read, time.monotonic
    count = itertools.count(1)

    def slowly(self: changes.Collector, path: bytes, limit: int) -> tuple[str, bytes] | str | None:
        found = read(self, path, limit)
        if next(count) == 3:
            monkeypatch.setattr(time, "monotonic", lambda: clock() + 1000)
        return found

    monkeypatch.setattr(changes.Collector, "_read", slowly)
    found = look(repo.path)
    assert len(found.changes) == 2, "the third took too long"
    assert found.omitted == f"{changes.OUT_OF_TIME} (3)"


def test_waiting_is_limited_whatever_the_caller_allows(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHANGES_SECONDS", 0.3)
    os.mkfifo(repo.path / ".gitignore")  # git opens it, and waits
    assert "untracked files: out of time" in str(look(repo.path, seconds=1000).omitted)


def test_git_that_was_done_long_ago_is_still_heard(
    repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long transcript may be read between begin and collect: only waiting is limited."""
    monkeypatch.setattr(limits, "CHANGES_SECONDS", 0.5)
    repo.write("a", "changed")
    scratch = home / "scratch"
    scratch.mkdir()
    with repository.begin(request(repo.path, repo.path), str(scratch)) as pending:
        for running in pending._running.values():
            os.waitid(os.P_PID, running._pid, os.WEXITED | os.WNOWAIT)
        time.sleep(0.7)
        found = pending.collect(time.monotonic() + 120, Exclusion(str(repo.path)))
    assert contents(found) == {("working", "a"): b"changed"}


def test_what_is_begun_and_not_collected_is_ended(repo: Repo, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with repository.begin(request(repo.path, repo.path), str(scratch)):
        assert list(scratch.iterdir())
    assert list(scratch.iterdir()) == []


def test_scratch_that_cannot_be_written(repo: Repo, tmp_path: Path) -> None:
    with repository.begin(request(repo.path, repo.path), str(tmp_path / "gone")) as pending:
        found = pending.collect(time.monotonic() + 5, Exclusion(str(repo.path)))
    assert found.state["current_commit"] == repo.git("rev-parse", "HEAD")
    assert found.omitted
    assert found.state["status"] == "unknown"


def test_no_git_in_path(repo: Repo) -> None:
    repo.write("a", "changed")
    found = look(repo.path, env={"PATH": "/nowhere", "HOME": "/nowhere"})
    assert found.state["current_commit"] == repo.git("rev-parse", "HEAD")
    assert found.state["status"] == "unknown"
    assert found.omitted
    assert found.omitted.startswith("staged changes: there is no git in PATH")


def test_ignored(repo: Repo, tmp_path: Path) -> None:
    repo.write(".gitignore", "*.log\nbuild/\n!keep.log\n")
    for name in ("x.log", "build/y", "keep.log", "plain", "tracked.log"):
        repo.write(name, name)
    repo.git("add", "-f", "tracked.log")
    Repo.with_commit(tmp_path / "other").write(".gitignore", "plain")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    names = ["x.log", "build/y", "keep.log", "plain", "tracked.log", "a", "gone.log", "nul\0.log"]
    paths = [str(repo.path / name) for name in names]
    paths += [str(tmp_path / "other/plain"), str(tmp_path / "outside.log"), "/", ""]
    with repository.begin(request(repo.path, repo.path), str(scratch)) as pending:
        found = pending.ignored(paths, RealPaths()).answer(time.monotonic() + 120)
        again = pending.ignored(paths, RealPaths()).answer(time.monotonic() + 120)
    excluded = [repo.path / "x.log", repo.path / "build/y", repo.path / "gone.log"]
    excluded.append(tmp_path / "other/plain")
    assert found == {str(path): "excluded by .gitignore" for path in excluded}
    assert again == found
    assert list(scratch.iterdir()) == []


def test_ignored_through_a_link(repo: Repo, tmp_path: Path) -> None:
    repo.write(".gitignore", "*.log\n")
    repo.write("folder/x.log", "x")
    (repo.path / "link").symlink_to("folder")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with repository.begin(request(repo.path, repo.path), str(scratch)) as pending:
        asked = pending.ignored([str(repo.path / "link/x.log")], RealPaths())
        found = asked.answer(time.monotonic() + 120)
    assert set(found) == {str(repo.path / "folder/x.log")}


def test_ignored_beside_paths_that_git_cannot_judge(repo: Repo, tmp_path: Path) -> None:
    """A submodule that is registered but not there: git stops at any path in it."""
    repo.write(".gitignore", "*.log\n")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    names = ["1.log", "module/x", "2.log", "a", "module/y", "3.log"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with repository.begin(request(repo.path, repo.path), str(scratch)) as pending:
        paths = [str(repo.path / name) for name in names]
        found = pending.ignored(paths, RealPaths()).answer(time.monotonic() + 120)
        many = [str(repo.path / f"module/{number}") for number in range(20)]
        undecided = pending.ignored(many, RealPaths()).answer(time.monotonic() + 120)
    told = {name: found.get(path, "") for name, path in zip(names, paths, strict=True)}
    excluded = {name for name, reason in told.items() if reason == "excluded by .gitignore"}
    assert excluded == {"1.log", "2.log", "3.log"}
    assert told["a"] == ""
    assert "is in submodule" in told["module/x"]
    assert "is in submodule" in told["module/y"]
    assert set(undecided) == set(many)


def test_where_git_cannot_tell_files_are_left_out(repo: Repo, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tracked, other = str(repo.path / "a"), str(repo.path / "new")
    for env, seconds in (({"PATH": "/nowhere"}, 10), (environment(), 0)):
        asked = request(repo.path, repo.path, env)
        with repository.begin(asked, str(scratch)) as pending:
            ignored = pending.ignored([tracked, other], RealPaths())
            found = ignored.answer(time.monotonic() + seconds)
        assert set(found) == {other}, "a tracked file is never excluded, whatever git can say"
        assert found[other].startswith("git cannot say whether .gitignore excludes it: ")
