"""HEAD, config, remotes and reflogs read by hand say what git says of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.capture.git import gitfiles
from savepoint.core import spelling
from savepoint.store.worktree import Worktree, find_worktree
from tests.capture.gitrepo import Repo

if TYPE_CHECKING:
    from pathlib import Path


def worktree(repo: Repo) -> Worktree:
    found = find_worktree(str(repo.path))
    assert found
    return found


def head(repo: Repo) -> gitfiles.Head:
    return gitfiles.read_head(worktree(repo))


def test_head_on_a_branch(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p", "-b", "feature/ü")
    commit = repo.git("rev-parse", "HEAD")
    assert head(repo) == gitfiles.Head(commit, "refs/heads/feature/ü", "")
    assert head(repo).branch == "feature/ü"
    repo.git("pack-refs", "--all")
    assert not (repo.path / ".git/refs/heads/feature").exists()
    repo.git("branch", "-f", "feature/ü2", "HEAD")
    assert head(repo).commit == commit


def test_packed_ref_is_found_among_others(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    for name in ("a", "main2", "x/main", "z"):
        repo.git("commit", "--allow-empty", "-qm", name)
        repo.git("branch", name)
    repo.git("tag", "-am", "note", "v1")  # peeled lines begin with ^
    repo.git("pack-refs", "--all")
    for name in ("a", "main2", "x/main", "z", "main"):
        repo.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
        assert head(repo).commit == repo.git("rev-parse", "HEAD")


def test_head_detached_unborn_and_through_another_ref(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    assert head(repo) == gitfiles.Head(None, "refs/heads/main", "")
    repo.git("commit", "--allow-empty", "-qm", "x")
    commit = repo.git("rev-parse", "HEAD")
    repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    repo.git("symbolic-ref", "HEAD", "refs/heads/alias")
    assert head(repo) == gitfiles.Head(commit, "refs/heads/alias", "")
    repo.git("checkout", "-q", "--detach")
    assert head(repo) == gitfiles.Head(commit, None, "")


@pytest.mark.parametrize("content", ["", "garbage", "ref: ", "ref: ../../x", "ref: /etc/x", "a"])
def test_damaged_head_says_so(tmp_path: Path, content: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/HEAD").write_text(content)
    assert head(repo) == gitfiles.Head(None, None, "HEAD does not lead to a commit")


def test_refs_that_name_each_other_end(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/refs/heads/main").write_text("ref: refs/heads/main\n")
    assert head(repo).problem == "HEAD does not lead to a commit"


CONFIG = r"""
[core]
	filemode = true ; a comment
	excludesFile = "~/my \"ignore\" # file"  # another
	bare
[Remote "Origin.with.dots"]
	URL = https://example.invalid/a b
	fetch = +refs/heads/*:refs/remotes/origin/*
	fetch = second
[remote "quo\"te\\d"] url = x\
y
[branch.Old] remote = origin
	empty =
	odd = a\tb "  kept  " c
; [no] section = here
[sec "sub]bracket"] k = "v;#"
[a]k=1
"""


def test_config_is_what_git_reads(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    told = subprocess.run(
        ["git", "config", "--list", "-z", "--file", str(file)], capture_output=True, check=True
    )
    expected: dict[str, list[str]] = {}
    for entry in told.stdout.decode().split("\0")[:-1]:
        key, separator, value = entry.partition("\n")
        expected.setdefault(key, []).append(value if separator else "true")
    assert gitfiles.parse_config(file.read_bytes()) == expected
    assert len(expected) == 11


def test_crlf_config(tmp_path: Path) -> None:
    assert gitfiles.parse_config(b"[core]\r\n\tbare = true\r\n") == {"core.bare": ["true"]}


@given(st.binary() | st.text(alphabet='[]"\\=#; \nab').map(str.encode))
def test_no_config_fails(data: bytes) -> None:
    gitfiles.parse_config(data)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("git@github.com:o/r.git", "github.com:o/r.git"),
        ("https://github.com/o/r.git", "https://github.com/o/r.git"),
        ("https://ada:hunter2@host.invalid/o/r", "https://host.invalid/o/r"),
        ("https://ghp_0123456789abcdef@host.invalid/r", "https://host.invalid/r"),
        ("https://ada:hun/ter2@host.invalid/r", "https://host.invalid/r"),
        ("https://ada:hun@ter2@host.invalid/r", "https://host.invalid/r"),
        ("https://host.invalid:8443/@scope/r", "https://host.invalid:8443/@scope/r"),
        ("https://host.invalid/r?private_token=hunter2", "https://host.invalid/r"),
        ("https://host.invalid/r#hunter2", "https://host.invalid/r"),
        ("https://host.invalid/glpat-hunter2hunter2/r", "https://host.invalid/***/r"),
        ("ssh://git@host.invalid:22/r", "ssh://host.invalid:22/r"),
        ("ada:hunter2@host.invalid:r", "host.invalid:r"),
        ("git@host.invalid:a@b/r", "host.invalid:a@b/r"),
        ("ext::sh -c 'curl -u ada:hunter2'", "ext::***"),
        ("/srv/git/r.git", "/srv/git/r.git"),
        ("../r@2", "../r@2"),
        ("file:///srv/r", "file:///srv/r"),
        ("", ""),
        ("\udcff", "\\udcff"),
    ],
)
def test_remotes_are_told_without_credentials(url: str, shown: str) -> None:
    assert gitfiles.without_credentials(url) == shown


@given(st.text())
def test_a_password_is_never_told(text: str) -> None:
    url = f"https://ada:hunter2@{text}"
    assert "hunter2" not in gitfiles.without_credentials(url.replace("?", "").replace("#", ""))


def test_remotes_of_a_repository(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    repo.git("remote", "add", "origin", "git@github.com:o/r.git")
    repo.git("remote", "add", "fork", "https://x:y@host.invalid/r")
    repo.git("remote", "set-url", "--add", "origin", "second")
    config = gitfiles.read_config(worktree(repo))
    assert gitfiles.remotes(config) == {
        "origin": "github.com:o/r.git",
        "fork": "https://host.invalid/r",
    }


def test_config_of_a_worktree_wins(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("worktree", "add", "-q", str(tmp_path / "w"))
    linked = Repo(tmp_path / "w")
    linked.git("config", "--worktree", "core.fileMode", "false")
    assert gitfiles.last(gitfiles.read_config(worktree(linked)), "core.filemode") == "false"
    assert gitfiles.last(gitfiles.read_config(worktree(repo)), "core.filemode") == "true"


def last_push(repo: Repo) -> str:
    found = worktree(repo)
    return gitfiles.last_push(found, head(repo), gitfiles.read_config(found))


def test_last_push_is_known_from_the_reflog_only(tmp_path: Path) -> None:
    Repo.make(tmp_path / "remote", "--bare")
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("remote", "add", "origin", str(tmp_path / "remote"))
    assert last_push(repo) == "unknown"
    repo.git("fetch", "-q")
    assert last_push(repo) == "unknown"
    repo.git("push", "-q", "origin", "main")
    log = (repo.path / ".git/logs/refs/remotes/origin/main").read_text()
    seconds = int(log.splitlines()[-1].partition("\t")[0].split(" ")[-2])
    assert last_push(repo) == spelling.time_text(seconds)
    repo.git("checkout", "-qb", "other")
    assert last_push(repo) == "unknown"
    repo.git("checkout", "-q", "--detach")
    assert last_push(repo) == "unknown"


@pytest.mark.parametrize(
    "line", ["", "x", "\tupdate by push", "a b\tupdate by push", "1 <> -5 +0\tupdate by push"]
)
def test_damaged_reflog_says_nothing(tmp_path: Path, line: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    repo.git("remote", "add", "origin", "x")
    log = repo.path / ".git/logs/refs/remotes/origin"
    log.mkdir(parents=True)
    (log / "main").write_text(line + "\n")
    assert last_push(repo) == "unknown"


def test_remote_that_names_another_folder_is_not_followed(tmp_path: Path) -> None:
    """The reflogs of `[remote "../../../../x"]` would be read from anywhere."""
    repo = Repo.with_commit(tmp_path / "p")
    (repo.path / ".git/x").mkdir()
    line = f"{'0' * 40} {'1' * 40} A <a@b> 1700000000 +0000\tupdate by push\n"
    (repo.path / ".git/x/main").write_text(line)
    with (repo.path / ".git/config").open("a") as config:
        config.write('[remote "../../../x"]\n\turl = y\n')
    assert last_push(repo) == "unknown"


@pytest.mark.parametrize(
    ("file", "name", "with_pick"),
    [
        ("MERGE_HEAD", "merge", "merge, cherry-pick"),
        ("rebase-merge", "rebase", "rebase, cherry-pick"),
        ("rebase-apply", "rebase", "rebase, cherry-pick"),
        ("BISECT_LOG", "bisect", "cherry-pick, bisect"),
    ],
)
def test_operation_in_progress(tmp_path: Path, file: str, name: str, with_pick: str) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    assert gitfiles.operation(worktree(repo)) is None
    (repo.path / ".git" / file).mkdir()
    assert gitfiles.operation(worktree(repo)) == name
    (repo.path / ".git/CHERRY_PICK_HEAD").write_text("x")
    assert gitfiles.operation(worktree(repo)) == with_pick
