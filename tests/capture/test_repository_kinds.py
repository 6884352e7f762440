"""Every kind of repository, whole or broken, gives a state or a reason: no error, no hang."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.capture.gitrepo import Repo, contents, environment, fingerprint, look

if TYPE_CHECKING:
    from pathlib import Path


def test_no_repository(tmp_path: Path) -> None:
    found = look(tmp_path)
    assert found.state == {
        "current_commit": None,
        "branch": None,
        "remotes": {},
        "status": "unknown",
        "last_push": "unknown",
        "object_format": None,
        "operation": None,
        "roots": {"project": str(tmp_path), "worktree": None},
    }
    assert found[1:] == ((), (), (), None)


def test_bare(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "b.git"))
    found = look(tmp_path / "b.git")
    assert found.state["current_commit"] == repo.git("rev-parse", "HEAD")
    assert found.state["branch"] == "main"
    assert found.state["status"] == "unknown"
    assert found.omitted is None


def test_bare_dot_git_with_worktrees_beside_it(tmp_path: Path) -> None:
    source = Repo.with_commit(tmp_path / "source")
    (tmp_path / "p").mkdir()
    source.git("clone", "-q", "--bare", str(source.path), str(tmp_path / "p/.git"))
    Repo(tmp_path / "p").git("worktree", "add", "-q", "w")
    linked = Repo(tmp_path / "p/w")
    linked.write("a", "changed")
    assert look(tmp_path / "p").changes == ()
    assert contents(look(linked.path)) == {("working", "a"): b"changed"}


@pytest.mark.parametrize("id_format", ["sha1", "sha256"])
def test_unborn(tmp_path: Path, id_format: str) -> None:
    repo = Repo.make(tmp_path / "p", f"--object-format={id_format}")
    assert look(repo.path).state["status"] == "clean"
    repo.write("staged", "s")
    repo.git("add", "staged")
    repo.write("new", "n")
    found = look(repo.path)
    assert found.state["current_commit"] is None
    assert found.state["branch"] == "main"
    assert found.state["object_format"] == id_format
    assert found.omitted is None
    assert contents(found) == {("staged", "staged"): b"s", ("untracked", "new"): b"n"}


def test_sha256(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p", "--object-format=sha256")
    assert look(repo.path).state["status"] == "clean"
    repo.write("a", "staged")
    repo.git("add", "a")
    for name in ("b", "folder/c"):
        os.utime(repo.path / name)  # only a hash can tell that it did not change
    found = look(repo.path)
    assert contents(found) == {("staged", "a"): b"staged"}
    assert len(str(found.state["current_commit"])) == 64


def test_shallow(tmp_path: Path) -> None:
    source = Repo.with_commit(tmp_path / "source")
    source.git("commit", "--allow-empty", "-qm", "second")
    source.git("clone", "-q", "--depth=1", f"file://{source.path}", str(tmp_path / "p"))
    repo = Repo(tmp_path / "p")
    assert look(repo.path).state["status"] == "clean"
    repo.write("a", "staged")
    repo.git("add", "a")
    assert contents(look(repo.path)) == {("staged", "a"): b"staged"}


def test_partial_clone_is_not_completed(tmp_path: Path) -> None:
    source = Repo.with_commit(tmp_path / "source")
    source.git("config", "uploadpack.allowFilter", "true")
    origin = f"file://{source.path}"
    source.git("clone", "-q", "--no-checkout", "--filter=blob:none", origin, str(tmp_path / "p"))
    repo = Repo(tmp_path / "p")
    repo.git("read-tree", "HEAD")
    repo.write("a", "changed\n")
    before = fingerprint(repo.path)
    found = look(repo.path)
    assert contents(found) == {("working", "a"): b"changed\n"}
    assert found.deleted == ("b", "folder/c")
    assert found.omitted is None
    assert fingerprint(repo.path) == before


def test_alternates(tmp_path: Path) -> None:
    source = Repo.with_commit(tmp_path / "source")
    source.git("clone", "-q", "--shared", str(source.path), str(tmp_path / "p"))
    repo = Repo(tmp_path / "p")
    alternates = repo.path / ".git/objects/info/alternates"
    alternates.write_text("../../../source/.git/objects\n")
    repo.git("rm", "-q", "--cached", "b")
    found = look(repo.path)
    assert found.omitted is None
    assert found.deleted == ("b",)


def test_symbolic_link_to_the_project(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (tmp_path / "link").symlink_to(repo.path)
    repo.write("folder/c", "changed")
    found = look(tmp_path / "link")
    assert contents(found) == {("working", "folder/c"): b"changed"}
    assert found.state["roots"] == {"project": str(repo.path), "worktree": str(repo.path)}


def test_path_that_is_not_utf8_and_looks_like_options(tmp_path: Path) -> None:
    for name in (b"\xff \n=x", b"-c core.bare=true", b"a:b;c"):
        repo = Repo.with_commit(tmp_path / os.fsdecode(name))
        repo.write("a", "changed")
        assert contents(look(repo.path)) == {("working", "a"): b"changed"}


def test_split_index_with_changes(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("update-index", "--split-index")
    repo.write("a", "staged")
    repo.git("add", "a")
    repo.git("update-index", "--assume-unchanged", "b")
    repo.write("b", "hidden change")
    assert contents(look(repo.path)) == {
        ("staged", "a"): b"staged",
        ("working", "b"): b"hidden change",
    }


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_index_versions(tmp_path: Path, version: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("update-index", "--index-version", version)
    repo.write("a", "b" * len("a as committed"))
    assert set(contents(look(repo.path))) == {("working", "a")}


@pytest.mark.parametrize("sparse_index", ["false", "true"])
def test_sparse_checkout(tmp_path: Path, sparse_index: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("out/x", "x")
    repo.git("add", "out")
    repo.git("commit", "-qm", "out")
    repo.settle()
    repo.git("sparse-checkout", "init", "--cone")
    repo.git("config", "index.sparse", sparse_index)
    repo.git("sparse-checkout", "set", "folder")
    assert not (repo.path / "out").exists()
    found = look(repo.path)
    assert (found.state["status"], found.omitted, found.deleted) == ("clean", None, ())
    repo.write("folder/c", "changed")
    repo.write("out/x", "back, and changed")
    again = look(repo.path)
    assert set(contents(again).values()) == {b"changed", b"back, and changed"}
    assert again.omitted is None


def test_reftable_or_another_store_of_refs_is_asked_of_git(tmp_path: Path) -> None:
    """A git that knows only files overlooks, at format version 0, the extension that we see."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("config", "extensions.refStorage", "reftable")
    found = look(repo.path)
    assert found.state["branch"] == "main"
    assert found.state["current_commit"] == repo.git("rev-parse", "HEAD")
    assert found.state["status"] == "clean"
    repo.git("checkout", "-q", "--detach")
    assert look(repo.path).state["branch"] is None
    repo.git("checkout", "-q", "--orphan", "new")
    unborn = look(repo.path)
    assert (unborn.state["branch"], unborn.state["current_commit"]) == ("new", None)
    assert unborn.omitted is None


def test_repository_of_another_user(tmp_path: Path, root: None) -> None:
    """Git itself refuses it with 128; we run nothing that its owner could name."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "changed")
    for folder, folders, files in os.walk(repo.path):
        for name in [*folders, *files, ""]:
            os.lchown(os.path.join(folder, name), 12345, 12345)
    refused = subprocess.run(["git", "status"], cwd=repo.path, capture_output=True, check=False)
    assert refused.returncode == 128
    found = look(repo.path)
    assert contents(found) == {("working", "a"): b"changed"}
    assert found.omitted is None


def test_locked_index(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/index.lock").write_text("")
    repo.write("a", "changed")
    assert contents(look(repo.path)) == {("working", "a"): b"changed"}
    assert (repo.path / ".git/index.lock").read_text() == ""


def test_missing_head(tmp_path: Path) -> None:
    """Git says "not a git repository"; the files that changed can be saved all the same."""
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/HEAD").unlink()
    repo.write("a", "changed")
    found = look(repo.path)
    assert contents(found) == {("working", "a"): b"changed"}
    assert found.omitted == "HEAD is missing or cannot be read"
    assert found.state["status"] == "dirty"


@pytest.mark.parametrize("content", [b"", b"garbage" * 20, b"DIRC\0\0\0\x09" + b"\0" * 50])
def test_garbage_index(tmp_path: Path, content: bytes) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/index").write_bytes(content)
    found = look(repo.path)
    assert found.state["current_commit"]
    if content:
        assert found.omitted
        assert found.state["status"] == "unknown"


def test_cut_index(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    index = repo.path / ".git/index"
    index.write_bytes(index.read_bytes()[:-250])
    assert look(repo.path).omitted


@pytest.mark.parametrize("what", ["commit", "tree", "blob", "all", "objects"])
def test_missing_objects(tmp_path: Path, what: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("b", "staged")
    repo.git("add", "b")
    repo.write("a", "changed")
    objects = repo.path / ".git/objects"
    names = {"commit": ["HEAD"], "tree": ["HEAD^{tree}"], "blob": [":b"]}.get(what, [])
    for oid in [repo.git("rev-parse", name) for name in names]:
        (objects / oid[:2] / oid[2:]).unlink()
    if what in {"all", "objects"}:
        objects.rename(tmp_path / "aside")
    if what == "all":
        objects.mkdir()
    found = look(repo.path)
    assert found.state["current_commit"]
    assert found.omitted
    if what != "objects":
        assert contents(found)["working", "a"] == b"changed"


@pytest.mark.parametrize(
    "content", ["[core", "[core]\n\tbare = perhaps\n\tfilemode = often", "\0\xff", "[a]\n= b"]
)
def test_damaged_config(tmp_path: Path, content: str) -> None:
    """Git refuses to start with such a config; it never sees it."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "changed")
    (repo.path / ".git/config").write_text(content)
    assert contents(look(repo.path)) == {("working", "a"): b"changed"}


def test_format_of_the_future(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "changed")
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.unheardOf", "true")
    assert contents(look(repo.path)) == {("working", "a"): b"changed"}
    repo.path.joinpath(".git/config").write_text("[extensions]\n\tobjectFormat = sha3\n")
    assert look(repo.path).omitted == "object format sha3 is not known"


@pytest.mark.parametrize(
    "name", ["HEAD", "config", "index", "commondir", "packed-refs", "MERGE_HEAD"]
)
def test_fifo_in_the_place_of_a_file(tmp_path: Path, name: str) -> None:
    """Whoever opens one to read it waits without end."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("checkout", "-q", "--orphan", "unborn")  # so that packed-refs is looked at
    (repo.path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo.path / ".git" / name)
    look(repo.path)  # else the test itself would wait without end


def test_git_that_waits_without_end_is_cut_off(tmp_path: Path) -> None:
    """A FIFO called .gitignore: git opens it, and waits."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "changed")
    os.mkfifo(repo.path / ".gitignore")
    found = look(repo.path, seconds=3)
    assert found.omitted == "untracked files: out of time"
    assert contents(found) == {("working", "a"): b"changed"}


def test_pointer_to_a_repository_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/.git").write_text("gitdir: /nowhere/.git/worktrees/p\n")
    found = look(tmp_path / "p")
    assert found.omitted
    assert found.state["status"] == "unknown"


def test_git_that_fails_and_floods(tmp_path: Path) -> None:
    """Ten megabytes on stderr, text in another language, an exit code."""
    repo = Repo.with_commit(tmp_path / "p")
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nhead -c 10000000 /dev/zero >&2\nexit 3\n")
    program.chmod(0o755)
    env = environment() | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    found = look(repo.path, env=env)
    assert found.state["current_commit"] == repo.git("rev-parse", "HEAD")
    assert found.state["status"] == "unknown"
    assert found.omitted
    assert len(found.omitted) < 2000


def test_a_thousand_clean_files_cost_little(tmp_path: Path) -> None:
    """Own time only: a generous bound, so that a second walk over the files would be noticed."""
    repo = Repo.make(tmp_path / "p")
    for number in range(1000):
        repo.write(f"d{number % 40}/f{number}", f"{number}")
    repo.git("add", ".")
    repo.git("commit", "-qm", "x")
    look(repo.path)
    started = time.process_time()
    found = look(repo.path)
    assert time.process_time() - started < 0.05
    assert found.state["status"] == "clean"
