"""The changes of a repository by bytes, with what is left out named."""

from __future__ import annotations

import base64
import os
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.git import changes
from savepoint.capture.git.gitindex import Entry
from tests.capture.gitrepo import Repo, contents, look

if TYPE_CHECKING:
    from pathlib import Path


def test_clean(repo: Repo) -> None:
    found = look(repo.path)
    assert found.state == {
        "current_commit": repo.git("rev-parse", "HEAD"),
        "branch": "main",
        "remotes": {},
        "status": "clean",
        "last_push": "unknown",
        "object_format": "sha1",
        "operation": None,
        "roots": {"project": str(repo.path), "worktree": str(repo.path)},
    }
    assert found[1:] == ((), (), (), None)


def test_every_kind_of_change(repo: Repo) -> None:
    repo.write("a", "staged\n")
    repo.git("add", "a")
    repo.write("a", "and changed again\n")
    repo.write("b", "changed\n")
    repo.write("new/file", "untracked\n")
    repo.write("added", "staged, new\n")
    repo.git("add", "added")
    repo.git("rm", "-q", "--cached", "folder/c")
    found = look(repo.path)
    assert contents(found) == {
        ("staged", "a"): b"staged\n",
        ("staged", "added"): b"staged, new\n",
        ("working", "a"): b"and changed again\n",
        ("working", "b"): b"changed\n",
        ("untracked", "folder/c"): b"folder/c as committed\n",
        ("untracked", "new/file"): b"untracked\n",
    }
    assert found.deleted == ("folder/c",)
    assert found.state["status"] == "dirty"
    assert found.omitted is None


def test_deleted_in_the_worktree_only(repo: Repo) -> None:
    (repo.path / "a").unlink()
    found = look(repo.path)
    assert found.deleted == ("a",)
    assert found.changes == ()
    assert found.state["status"] == "dirty"


def test_modes_links_and_types(repo: Repo) -> None:
    (repo.path / "a").chmod(0o755)
    (repo.path / "b").unlink()
    (repo.path / "b").symlink_to("/etc/passwd")
    (repo.path / "dangling").symlink_to("nowhere")
    repo.write("run", "#!/bin/sh\n").chmod(0o755)
    found = look(repo.path)
    assert {(one.path, one.mode, one.data) for one in found.changes} == {
        (b"a", "100755", b"a as committed\n"),
        (b"b", "120000", b"/etc/passwd"),
        (b"dangling", "120000", b"nowhere"),
        (b"run", "100755", b"#!/bin/sh\n"),
    }


def test_modes_count_for_nothing_where_the_config_says_so(repo: Repo) -> None:
    repo.git("config", "core.fileMode", "false")
    (repo.path / "a").chmod(0o755)
    os.utime(repo.path / "a")
    assert look(repo.path).state["status"] == "clean"
    repo.write("b", "changed")
    assert contents(look(repo.path)) == {("working", "b"): b"changed"}


def test_touched_but_not_changed_is_clean(repo: Repo) -> None:
    for name in ("a", "b", "folder/c"):
        os.utime(repo.path / name)
    assert look(repo.path).state["status"] == "clean"


def test_racily_clean_change_of_the_same_size_is_found(tmp_path: Path) -> None:
    """Same second, same size: git's stat comparison alone would call it clean. (Its own answer is
    to compare contents, through the filters that the repository names.)
    """
    repo = Repo.make(tmp_path / "p")
    repo.write("a", "one")
    repo.git("add", "a")
    seen = (repo.path / "a").stat()
    repo.write("a", "two")
    os.utime(repo.path / "a", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    index = repo.path / ".git/index"
    os.utime(index, ns=(seen.st_mtime_ns, seen.st_mtime_ns))
    assert contents(look(repo.path))["working", "a"] == b"two"


def test_index_of_the_same_second_proves_nothing_without_nanoseconds(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    second = 1_700_000_000
    repo.write("a", "one")
    os.utime(repo.path / "a", (second, second))
    repo.git("add", "a")
    repo.git("commit", "-qm", "x")
    assert look(repo.path).state["status"] == "clean"
    facts = changes.IndexFacts(second * 10**9 + 5 * 10**8, "sha1", trust_modes=True)
    seen = (repo.path / "a").lstat()
    times = (*divmod(seen.st_ctime_ns, 10**9), second, 0, seen.st_ino, seen.st_size)
    entry = _entry(tuple(value % 2**32 for value in times))
    assert not facts.vouches_for(entry, seen)
    assert facts._replace(mtime=(second + 1) * 10**9).vouches_for(entry, seen)


@pytest.mark.parametrize(
    ("field", "younger", "vouched"),
    [
        (None, 10**9, True),
        (None, changes._TICK + 1, True),
        (None, changes._TICK, False),
        (None, 0, False),
        (None, -(10**9), False),
        *((field, 10**9, False) for field in range(6)),
    ],
)
def test_what_vouches_for_a_file(
    tmp_path: Path, field: int | None, younger: int, vouched: bool
) -> None:
    """Each part of the stat must be as it was, and the index younger than the last clock tick."""
    file = tmp_path / "a"
    file.write_text("x")
    os.utime(file, ns=(0, 1_700_000_000_123_456_789))
    seen = file.lstat()
    times = (*divmod(seen.st_ctime_ns, 10**9), *divmod(seen.st_mtime_ns, 10**9))
    stat = [value % 2**32 for value in (*times, seen.st_ino, seen.st_size)]
    if field is not None:
        stat[field] += 1
    facts = changes.IndexFacts(seen.st_mtime_ns + younger, "sha1", trust_modes=True)
    assert facts.vouches_for(_entry(tuple(stat)), seen) == vouched


def _entry(stat: tuple[int, ...]) -> Entry:
    return Entry(b"a", 0o100644, "0" * 40, stat, hidden=False)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_was_told_not_to_see(repo: Repo, flag: str) -> None:
    repo.git("update-index", flag, "a", "b")
    assert look(repo.path).state["status"] == "clean"
    repo.write("a", "local setting\n")
    (repo.path / "b").unlink()
    assert repo.git("status", "--porcelain") == ""
    found = look(repo.path)
    assert contents(found) == {("working", "a"): b"local setting\n"}
    assert found.deleted == ()


def test_ignored_files_are_not_captured(repo: Repo, home: Path) -> None:
    repo.write(".gitignore", "*.log\nbuild/\n")
    repo.write("x.log", "x")
    repo.write("build/y", "y")
    with (repo.path / ".git/info/exclude").open("a") as exclude:
        exclude.write("private\n")
    repo.write("private", "z")
    repo.write("ours.txt", "z")
    (home / ".gitignore-global").write_text("*.mine\n")
    repo.git("config", "--global", "core.excludesFile", str(home / ".gitignore-global"))
    repo.write("q.mine", "q")
    told = {("untracked", ".gitignore"), ("untracked", "ours.txt")}
    assert set(contents(look(repo.path))) == told
    (repo.path.parent / "rules").write_text("ours*\n")
    repo.git("config", "core.excludesFile", str(repo.path.parent / "rules"))
    assert ("untracked", "ours.txt") not in contents(look(repo.path))


def test_what_must_not_be_captured_is_named(repo: Repo) -> None:
    key = b"-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2"
    repo.write(".env", "SECRET=hunter2")
    repo.write("deploy", key)
    repo.write("data/big.csv", "hunter2")
    repo.write("a", key)
    for name in ("IDENTITY.md", "b"):
        repo.write(name, key)
        repo.git("add", name)
    found = look(repo.path, exclude=["data"])
    assert dict(found.excluded) == {
        ".env": "is an environment file",
        "IDENTITY.md": "is never captured as a file",
        "a": "holds a private key",
        "b": "holds a private key",
        "data/big.csv": "is excluded by the config: data",
        "deploy": "holds a private key",
    }
    assert not any(b"hunter2" in one.data for one in found.changes)
    assert found.omitted is None, "left out on purpose is not lost"
    assert found.state["status"] == "dirty"


def test_forbidden_file_that_did_not_change_is_not_mentioned(repo: Repo) -> None:
    repo.write(".env", "x")
    repo.git("add", "-f", ".env")
    repo.git("commit", "-qm", "x")
    os.utime(repo.path / ".env")
    assert look(repo.path).excluded == ()


def test_names_that_are_not_utf8(repo: Repo) -> None:
    name = os.fsdecode(b"\xff\xfe \n\"'")
    repo.write(name, "x")
    (repo.path / os.fsdecode(b"\xe9")).symlink_to(os.fsdecode(b"\xe8"))
    found = look(repo.path)
    told = {str(one.to_json()["path"]): one.data for one in found.changes}
    encoded = base64.b64encode(os.fsencode(name)).decode()
    assert told == {str({"b64": encoded}): b"x", str({"b64": "6Q=="}): b"\xe8"}


def test_project_below_the_worktree(repo: Repo) -> None:
    """Paths are those from the worktree's top; both roots are named."""
    repo.write("folder/new", "x")
    repo.write("above", "y")
    found = look(repo.path / "folder", exclude=["/new"])
    assert contents(found) == {("untracked", "above"): b"y"}
    assert found.excluded == (("folder/new", "is excluded by the config: /new"),)
    assert found.state["roots"] == {
        "project": str(repo.path / "folder"),
        "worktree": str(repo.path),
    }


def test_linked_worktree_that_the_agent_entered(repo: Repo, tmp_path: Path) -> None:
    """claude-code#87890: a save must show what is changed there, not in the first checkout."""
    repo.git("worktree", "add", "-q", "-b", "f", str(tmp_path / "w"))
    linked = Repo(tmp_path / "w")
    linked.write("a", "changed in w\n")
    linked.write("c", "staged in w\n")
    linked.git("add", "c")
    repo.write("b", "changed in p\n")
    found = look(repo.path, cwd=linked.path)
    assert found.state["branch"] == "f"
    assert found.state["roots"] == {"project": str(repo.path), "worktree": str(linked.path)}
    assert contents(found) == {
        ("staged", "c"): b"staged in w\n",
        ("working", "a"): b"changed in w\n",
    }
    assert set(contents(look(repo.path))) == {("working", "b")}


def test_merge_with_conflicts(repo: Repo) -> None:
    repo.git("checkout", "-qb", "other")
    repo.write("a", "theirs\n")
    repo.write("b", "theirs as well\n")
    repo.git("commit", "-qam", "theirs")
    repo.git("checkout", "-q", "main")
    repo.write("a", "ours\n")
    repo.git("commit", "-qam", "ours")
    with pytest.raises(Exception, match="merge"):
        repo.git("merge", "other")
    found = look(repo.path)
    assert found.state["operation"] == "merge"
    assert found.state["status"] == "dirty"
    told = contents(found)
    assert b"<<<<<<<" in told["working", "a"]
    assert told["staged", "b"] == b"theirs as well\n"
    assert len(told) == 2


def test_intent_to_add(repo: Repo) -> None:
    repo.write("soon", "content")
    repo.git("add", "-N", "soon")
    assert contents(look(repo.path)) == {("working", "soon"): b"content"}


def test_files_that_cannot_be_read_or_are_none(repo: Repo) -> None:
    (repo.path / "a").unlink()
    os.mkfifo(repo.path / "a")
    (repo.path / "b").unlink()
    (repo.path / "b").mkdir()
    os.mkfifo(repo.path / "fifo")
    found = look(repo.path)
    assert ("a", "is not a regular file") in found.excluded
    assert found.deleted == ("b",)
    assert found.changes == ()
    assert found.omitted == "is not a regular file (1)"


def test_what_takes_the_place_of_a_file_after_it_was_looked_at(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "."):
        with pytest.raises(OSError, match=r"symbolic links|not a regular file"):
            changes._open_regular(os.fsencode(tmp_path / name))


def test_folder_replaced_by_a_link_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    """Elsewhere, a tracked name would give a file that is not the project's."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/c").write_text("not the project's")
    (repo.path / "folder/c").unlink()
    (repo.path / "folder").rmdir()
    repo.git("update-index", "--assume-unchanged", "folder/c")
    (repo.path / "folder").symlink_to(tmp_path / "outside")
    found = look(repo.path)
    assert not any(b"not the project's" in one.data for one in found.changes)
    assert ("folder/c", "lies behind a symbolic link") in found.excluded


def test_repositories_inside(repo: Repo, tmp_path: Path) -> None:
    Repo.with_commit(repo.path / "nested")
    Repo.with_commit(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "add", "-q")
    repo.git(*local, str(tmp_path / "other"), "module")
    repo.git("commit", "-qm", "module")
    repo.write("module/a", "changed in the submodule")
    found = look(repo.path)
    assert set(found.excluded) == {
        ("nested/", "is a repository of its own"),
        ("module", "is a repository of its own"),
    }
    assert found.changes == ()


def test_a_home_folder_that_is_a_repository(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dotfiles in git: our own stores and keys lie below the worktree, under names with letters
    that mean something in a pattern.
    """
    ours = home / "\\our[s]*?"
    monkeypatch.setenv("SAVEPOINT_HOME", str(ours))
    (ours / "keys").mkdir(parents=True)
    (ours / "keys/root").write_text("hunter2")
    repo = Repo.make(home)
    repo.write(".profile", "x")
    repo.write("ours", "not ours")
    found = look(home)
    assert ("untracked", ".profile") in contents(found)
    assert ("untracked", "ours") in contents(found)
    assert found.excluded == ()
    assert not any(b"hunter2" in one.data for one in found.changes)


def test_no_filter_of_the_users_own_config_either(repo: Repo, tmp_path: Path) -> None:
    """`* filter=lfs` in the project, the driver in ~/.gitconfig: still the project names it."""
    mark = tmp_path / "MARK"
    later = time.time() + 1000  # younger than any index: git compares contents, through filters
    for name in ("a", "b"):
        os.utime(repo.path / name, (later, later))
    repo.git("update-index", "-q", "--refresh")
    repo.git("config", "--global", "filter.lfs.clean", f"touch {mark}; cat")
    repo.write(".gitattributes", "* filter=lfs\n")
    assert look(repo.path).state["status"] == "dirty"
    assert not mark.exists()
    repo.git("diff-files")
    assert mark.exists(), "the control: git in place"
