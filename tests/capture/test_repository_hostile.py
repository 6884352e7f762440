"""No program that a repository names is run, and nothing in it is touched: a canary tells.

openai/codex#24954: reading a diff ran clean and process filters, textconv, fsmonitor and hooks, and
a driver whose name has `=` in it escaped every override by `-c`.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.git import repository
from savepoint.capture.realpaths import RealPaths
from tests.capture.gitrepo import Repo, contents, environment, fingerprint, look, request

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = (
    *("post-index-change", "reference-transaction", "pre-auto-gc", "post-checkout", "pre-commit"),
    *("fsmonitor-watchman", "query-watchman", "post-rewrite", "post-merge", "pre-push"),
)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A program that leaves MARK beside it."""
    program = tmp_path / "canary"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/MARK\ncat\n')
    program.chmod(0o755)
    return program


def poison(repo: Repo, canary: Path) -> None:
    """Name the canary wherever git may look for a program."""
    run = f"{canary}"
    git_dir = repo.git("rev-parse", "--absolute-git-dir")
    hooks = repo.path.parent / f"hooks-of-{repo.path.name}"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        for folder in (str(hooks), f"{git_dir}/hooks"):
            if not os.path.lexists(f"{folder}/{name}"):
                os.symlink(canary, f"{folder}/{name}")
    repo.write(
        ".gitattributes",
        "* filter=a=b diff=a=b merge=a=b\n*.process filter=p=q\n*.plain filter=plain diff=plain\n",
    )
    with open(f"{git_dir}/config", "a", encoding="utf-8") as config:
        config.write(
            f"""
[include]
    path = {repo.path.parent}/included
[core]
    fsmonitor = {run}
    hooksPath = {hooks}
    sshCommand = {run}
    gitProxy = {run}
    askPass = {run}
    editor = {run}
    pager = {run}
    alternateRefsCommand = {run}
[credential]
    helper = {run}
[diff]
    external = {run}
[diff "a=b"]
    textconv = {run}
    command = {run}
[diff "plain"]
    textconv = {run}
[filter "a=b"]
    clean = {run}
    smudge = {run}
    required = true
[filter "p=q"]
    process = {run}
    required = true
[filter "plain"]
    clean = {run}
    process = {run}
[merge "a=b"]
    driver = {run}
[alias]
    diff-files = !{run}
    diff-index = !{run}
    ls-files = !{run}
    cat-file = !{run}
[protocol "ext"]
    allow = always
[protocol "ssh"]
    allow = always
[protocol "file"]
    allow = always
"""
        )
    (repo.path.parent / "included").write_text(f"[core]\n\tfsmonitor = {run}\n")


@pytest.fixture
def repo(tmp_path: Path, canary: Path) -> Repo:
    made = Repo.with_commit(tmp_path / "p")
    for name in ("x.process", "y.plain"):
        made.write(name, "x")
    made.git("add", ".")
    made.git("commit", "-qm", "more")
    Repo.with_commit(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "add", "-q")
    made.git(*local, str(tmp_path / "other"), "module")
    made.git("commit", "-qm", "module")
    made.settle()
    poison(made, canary)
    poison(Repo(made.path / "module"), canary)
    return made


def marks(canary: Path) -> str:
    mark = canary.parent / "MARK"
    return mark.read_text() if mark.exists() else ""


def change_everything(repo: Repo) -> None:
    for name in ("a", "b", "folder/c", "x.process", "y.plain", "module/a", "module/b"):
        (repo.path / name).write_text(f"changed {name}\n")
    repo.write("new.plain", "untracked\n")


@pytest.mark.parametrize(
    "command", [["status"], ["diff"], ["diff", "--cached", "HEAD~1"], ["add", "a"]]
)
def test_the_canary_sings_for_ordinary_git(repo: Repo, canary: Path, command: list[str]) -> None:
    change_everything(repo)
    subprocess.run(["git", *command], cwd=repo.path, capture_output=True, check=False, timeout=180)
    assert marks(canary)


def test_overrides_by_option_do_not_silence_it(repo: Repo, canary: Path) -> None:
    """Why git gets a directory of its own: `-c filter.a=b.clean=` names another filter."""
    change_everything(repo)
    options = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "filter.a=b.clean="]
    flags = [part for option in options for part in ("-c", option)]
    subprocess.run(
        ["git", *flags, "diff", "--no-ext-diff", "--no-textconv"],
        cwd=repo.path,
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert marks(canary)


@pytest.mark.parametrize("state", ["changed", "clean", "racy", "merge", "no index", "staged"])
def test_nothing_is_run_and_nothing_is_touched(repo: Repo, canary: Path, state: str) -> None:
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    if state == "changed":
        change_everything(repo)
    elif state == "racy":
        index = repo.path / ".git/index"
        for name in ("a", "b", "x.process", "y.plain", "module/a"):
            os.utime(repo.path / name)
        os.utime(index, (time.time() - 1000, time.time() - 1000))  # every entry is younger
    elif state == "merge":
        change_everything(repo)
        (repo.path / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD") + "\n")
    elif state == "no index":
        (repo.path / ".git/index").unlink()
    elif state == "staged":
        blob = subprocess.run(
            ["git", *safe, "hash-object", "-w", "--no-filters", "--stdin"],
            cwd=repo.path,
            input=b"staged by hand\n",
            capture_output=True,
            check=True,
        ).stdout.decode()
        repo.git(*safe, "update-index", "--cacheinfo", f"100644,{blob.strip()},a")
    (canary.parent / "MARK").unlink(missing_ok=True)
    before = fingerprint(repo.path)
    found = look(repo.path)
    assert marks(canary) == ""
    assert fingerprint(repo.path) == before
    assert found.omitted is None
    told = contents(found)
    if state in {"changed", "merge"}:
        assert told["working", "x.process"] == b"changed x.process\n"
    if state == "staged":
        assert told["staged", "a"] == b"staged by hand\n"


def test_asking_for_ignored_files_runs_nothing(repo: Repo, canary: Path, tmp_path: Path) -> None:
    change_everything(repo)
    (canary.parent / "MARK").unlink(missing_ok=True)
    before = fingerprint(repo.path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    paths = [str(repo.path / name) for name in ("a", "new.plain", "module/a", "module/new")]
    with repository.begin(request(repo.path, repo.path), str(scratch)) as pending:
        assert pending.ignored(paths, RealPaths()).answer(time.monotonic() + 120) == {}
    assert marks(canary) == ""
    assert fingerprint(repo.path) == before


def promisor(repo: Repo, canary: Path, url: str) -> None:
    """Make it a partial clone whose remote is a program, and lose a staged blob."""
    poison(repo, canary)
    repo.git("config", "core.fsmonitor", "false")
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "remote.origin.url", url)
    for key in ("remote.origin.uploadPack", "core.sshCommand"):
        repo.git("config", key, f"{canary} </dev/null; false")  # it waits for its input elsewhere
    oid = repo.git("rev-parse", ":a")
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()


@pytest.mark.parametrize("scheme", ["ssh://host/x", "ext::CANARY", "FILE", "helper::x"])
def test_missing_object_is_not_fetched(tmp_path: Path, canary: Path, scheme: str) -> None:
    """A git without GIT_NO_LAZY_FETCH (before 2.44, if not patched) would ask the promisor, by a
    command that the repository names. Ours sees no promisor, whatever git it is.
    """
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "staged")
    repo.git("add", "a")
    url = scheme.replace("CANARY", str(canary)).replace("FILE", str(repo.path))
    promisor(repo, canary, url)
    (canary.parent / "MARK").unlink(missing_ok=True)
    deaf = tmp_path / "bin"  # a git to which the variable means nothing
    deaf.mkdir()
    (deaf / "git").write_text('#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nPATH=${PATH#*:} exec git "$@"\n')
    (deaf / "git").chmod(0o755)
    old = environment() | {"PATH": f"{deaf}:{os.environ['PATH']}"}
    found = look(repo.path, env=old)
    assert marks(canary) == ""
    assert ("a", "git does not have the staged blob") in found.excluded
    assert found.omitted == "git does not have the staged blob (1)"
    assert contents(found)["untracked", ".gitattributes"]


def test_such_a_promisor_is_dangerous(tmp_path: Path, canary: Path) -> None:
    """The control of the test above: the options that we set do not stop an old git."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.write("a", "staged")
    repo.git("add", "a")
    oid = repo.git("rev-parse", ":a")
    promisor(repo, canary, "ssh://host/x")
    (canary.parent / "MARK").unlink(missing_ok=True)
    options = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"]
    flags = [part for option in options for part in ("-c", option)]
    subprocess.run(
        ["git", *flags, "cat-file", "--batch"],
        cwd=repo.path,
        input=oid.encode(),
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert marks(canary)


def test_core_worktree_does_not_lead_elsewhere(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (tmp_path / "private").mkdir()
    (tmp_path / "private/diary").write_text("hunter2")
    repo.git("config", "core.worktree", str(tmp_path / "private"))
    found = look(repo.path)
    assert found.state["status"] == "clean"
    assert "diary" not in str(found)


def test_split_index_is_not_touched(tmp_path: Path) -> None:
    """Any git that reads a split index in place sets the mtime of its shared part."""
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("update-index", "--split-index")
    (shared,) = (repo.path / ".git").glob("sharedindex.*")
    os.utime(shared, (1_700_000_000, 1_700_000_000))
    before = fingerprint(repo.path)
    repo_state = look(repo.path).state
    assert repo_state["status"] == "clean"
    assert fingerprint(repo.path) == before
    repo.git("ls-files")
    assert fingerprint(repo.path) != before, "the control: git itself"


def test_git_variables_of_the_caller_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    other = Repo.with_commit(tmp_path / "other")
    other.write("a", "changed in the other")
    hostile = {
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": str(other.path / ".git/index"),
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    found = look(repo.path, env=environment() | hostile)
    assert found.state["status"] == "clean"
    assert found.omitted is None
