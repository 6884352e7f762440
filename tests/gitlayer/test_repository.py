"""The repository is ours alone: its settings, failures of git, its refs by hand."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import CommitError, DiskError
from savepoint.gitlayer import repository
from savepoint.gitlayer.repair import repair
from savepoint.gitlayer.repository import BrokenRefError
from tests.gitlayer.layer import Layer, repo_of, shim

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_children_left")


# what it is


def test_a_new_repository(layer: Layer) -> None:
    os.umask(0)
    try:
        layer.saved(b"one\n")
    finally:
        os.umask(0o022)
    assert layer.git("config", "core.bare") == b"true\n"
    assert not (layer.git_dir / "hooks").exists()
    assert not list(layer.git_dir.parent.glob("*.tmp-*"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in layer.git_dir.rglob("*.*")}
    assert not any(mode & 0o077 for mode in modes if mode)


def test_half_a_repository_is_never_seen(layer: Layer, tmp_path: Path) -> None:
    """`git init` that dies in between leaves nothing under the repository's name."""
    env = shim(
        tmp_path / "bin", 'case "$*" in *init*) "$REAL" "$@"; kill -9 $$;; esac; exec "$REAL" "$@"'
    )
    with pytest.raises(CommitError):
        layer.commit(layer.save(b"one\n"), env=env)
    assert not layer.git_dir.exists()
    layer.saved(b"two\n")
    assert len(layer.history()) == 2


@pytest.mark.parametrize("version", ["2.35.9", "1.9", "2", "banana"])
def test_git_that_is_too_old_is_refused(layer: Layer, tmp_path: Path, version: str) -> None:
    """It would not know core.fsync, and lose refs in a power cut without a word."""
    env = shim(tmp_path / "bin", f'echo "git version {version}"')
    with pytest.raises(CommitError, match="too old"):
        layer.commit(layer.save(b"one\n"), env=env)


def test_git_that_has_become_too_old_is_refused(layer: Layer, tmp_path: Path) -> None:
    layer.saved(b"one\n")
    env = shim(
        tmp_path / "bin",
        'case "$*" in version) echo git version 2.30.1;; *) exec "$REAL" "$@";; esac',
    )
    with pytest.raises(CommitError, match="too old"):
        layer.commit(layer.save(b"two\n"), env=env)


def test_vendors_versions_are_understood(layer: Layer, tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", 'echo "git version 2.39.5 (Apple Git-154)"')
    assert repository.check_version(repo_of(layer, **env)) == (2, 39)


def test_without_git_the_savepoint_waits(layer: Layer, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommitError, match="no git in PATH"):
        layer.commit(layer.save(b"one\n"), env={"PATH": str(tmp_path / "empty")})
    done = layer.commit()
    assert done is not None
    assert done.cursor.seq == 2


def test_nothing_of_the_users_git_counts(layer: Layer, tmp_path: Path, home: Path) -> None:
    """Config, hooks, and variables that a git hook has set."""
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    hooks = home / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "pre-commit", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    template = home / "template/hooks"
    template.mkdir(parents=True)
    (template / "reference-transaction").symlink_to(hooks / "reference-transaction")
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath = {hooks}\nfsync = none\ncompression = 9\n[commit]\ngpgsign = true\n"
        f"[init]\ntemplateDir = {home}/template\ndefaultObjectFormat = sha256\n[user]\nname = Eve\n"
        "[alias]\nfast-import = !false\n"
    )
    foreign = {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_DIR": str(other / ".git"),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(hooks),
    }
    before = sorted(path for path in other.rglob("*"))
    layer.commit(layer.save(b"one\n"), env=foreign)
    assert len(layer.tip()) == 40
    assert layer.fsck() == ""
    assert not (tmp_path / "ran").exists()
    assert sorted(path for path in other.rglob("*")) == before
    assert b"Eve" not in layer.git("cat-file", "commit", layer.tip())


def test_a_repository_of_another_user_is_no_question(layer: Layer, root: None) -> None:
    """Git refuses one that it finds by itself; ours is named outright."""
    layer.saved(b"one\n")
    for path in (layer.git_dir, *layer.git_dir.rglob("*")):
        os.chown(path, 12345, 12345)
    layer.saved(b"two\n")
    assert layer.built.records()[-1].seq == 3


def test_a_clone_in_its_place_is_gone_on_with(layer: Layer, tmp_path: Path) -> None:
    layer.saved(b"one\n")
    whole = layer.git_dir.rename(tmp_path / "whole")
    clone = ["git", "clone", "-q", "--bare", str(whole), str(layer.git_dir)]
    subprocess.run(clone, check=True, capture_output=True)
    layer.saved(b"two\n")
    assert len(layer.history()) == 2


def test_something_else_in_its_place_is_not_touched(layer: Layer) -> None:
    layer.git_dir.mkdir()
    (layer.git_dir / "mine").write_text("keep")
    with pytest.raises(CommitError, match="no git repository"):
        layer.commit(layer.save(b"one\n"))
    assert (layer.git_dir / "mine").read_text() == "keep"


# failures of git


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("fatal: sha1 file write error: No space left on device", DiskError),
        ("fatal: write error: Read-only file system", DiskError),
        ("fatal: fsync error on '.git/x': Input/output error", DiskError),
        ("fatal: something else", CommitError),
    ],
)
def test_what_git_says_of_the_disk(
    layer: Layer, tmp_path: Path, words: str, kind: type[Exception]
) -> None:
    env = shim(
        tmp_path / "bin",
        f'case "$*" in *fast-import*) echo "{words}" >&2; exit 128;; *) exec "$REAL" "$@";; esac',
    )
    with pytest.raises(kind) as raised:
        layer.commit(layer.save(b"one\n"), env=env)
    assert type(raised.value) is kind
    assert layer.commit() is not None


def test_full_disk_within_git(layer: Layer, root: None, tmp_path: Path) -> None:
    layer.saved(b"one\n")
    tip = layer.tip()
    packs = layer.git_dir / "objects/pack"
    aside = tmp_path / "aside"
    packs.rename(aside)
    packs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(packs)], check=True)
    try:
        subprocess.run(["cp", "-a", f"{aside}/.", str(packs)], check=True)
        with pytest.raises(DiskError, match="no space left"):
            layer.commit(layer.save(os.urandom(1_200_000).hex().encode()))
        assert layer.tip() == tip
        subprocess.run(["mount", "-o", "remount,size=16m", str(packs)], check=True)
        assert layer.commit() is not None
        assert layer.fsck() == ""
    finally:
        subprocess.run(["umount", str(packs)], check=True)


def test_git_that_hangs_is_killed_and_the_ref_stays(layer: Layer, tmp_path: Path) -> None:
    layer.saved(b"one\n")
    tip = layer.tip()
    env = shim(
        tmp_path / "bin", 'case "$*" in version) exec "$REAL" version;; *) exec sleep 60;; esac'
    )
    started = time.monotonic()
    with pytest.raises(CommitError, match="out of time"):
        layer.commit(layer.save(b"two\n"), seconds=0.5, env=env)
    assert time.monotonic() - started < 30
    assert layer.tip() == tip
    assert layer.commit() is not None


# refs


def test_a_packed_ref_is_read(layer: Layer) -> None:
    done = layer.saved(b"one\n")
    layer.git("pack-refs", "--all")
    assert not layer.ref_file.exists()
    name = repository.branch(layer.paths.slug)
    assert repository.read_ref(repo_of(layer), name) == done.cursor.commit
    assert repository.read_ref(repo_of(layer), name[:-1]) is None
    layer.saved(b"two\n")
    assert len(layer.history()) == 2


@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 41])
@pytest.mark.parametrize("forget", [False, True])
def test_an_empty_ref_is_put_back(layer: Layer, content: bytes, *, forget: bool) -> None:
    """A power cut leaves a file without its content."""
    layer.saved(b"one\n")
    layer.saved(b"two\n")
    tip = layer.tip()
    layer.ref_file.write_bytes(content)
    if forget:
        layer.forget()
    layer.saved(b"three\n")
    assert layer.history()[1] == tip
    assert len(layer.history()) == 3


def test_a_ref_of_a_commit_whose_objects_are_lost_goes_back_to_one_that_is_whole(
    layer: Layer,
) -> None:
    layer.saved(b"one\n")
    first = layer.tip()
    before = set((layer.git_dir / "objects/pack").iterdir())
    layer.saved(b"two\n")
    for path in set((layer.git_dir / "objects/pack").iterdir()) - before:
        path.unlink()
    layer.ref_file.write_bytes(b"")
    done = layer.commit()
    assert done is not None
    assert done.cursor.seq == 3, "the savepoint is committed again"
    assert layer.history()[0] == first


def test_an_empty_ref_without_any_commit_begins_anew(layer: Layer) -> None:
    repository.ensure(repo_of(layer))
    layer.ref_file.parent.mkdir(parents=True, exist_ok=True)
    layer.ref_file.write_bytes(b"")
    layer.saved(b"one\n")
    assert len(layer.history()) == 1


def test_no_new_beginning_where_the_remote_has_more(layer: Layer) -> None:
    layer.saved(b"one\n")
    remote = layer.git_dir / f"refs/remotes/origin/savepoints/{layer.paths.slug}"
    remote.parent.mkdir(parents=True)
    remote.write_text(f"{layer.tip()}\n")
    for path in (layer.git_dir / "objects/pack").iterdir():
        path.unlink()
    layer.ref_file.write_bytes(b"")
    with pytest.raises(CommitError, match="the remote has"):
        layer.commit(layer.save(b"two\n"))


def test_a_foreign_commit_is_not_taken_for_ours(layer: Layer) -> None:
    """It names a record that the index holds, and a sequence that is not that record's."""
    layer.saved(b"one\n")
    tip, one = layer.tip(), layer.built.records()[-1]
    tree = layer.lines("rev-parse", f"{tip}^{{tree}}")[0]
    who = ("-c", "user.name=e", "-c", "user.email=e@e")
    for seq in (2, 9):
        message = f"x\n\nSavepoint-Seq: {seq}\nSavepoint-Record: {one.hash}\n"
        empty = layer.lines("hash-object", "-t", "tree", "-w", os.devnull)[0]
        layer.git(*who, "commit-tree", "-m", message, tree if seq == 9 else empty)
    layer.ref_file.write_bytes(b"")
    assert repair.rebuild_ref(repo_of(layer), layer.paths) == (tip, 2, one.hash)


@pytest.mark.parametrize("content", [b"banana\n", b"ref: refs/heads/main\n", b"ab" * 32 + b"\n"])
def test_a_ref_that_is_none_is_not_guessed_at(layer: Layer, content: bytes) -> None:
    layer.saved(b"one\n")
    layer.ref_file.write_bytes(content)
    with pytest.raises(BrokenRefError):
        layer.commit(layer.save(b"two\n"))
    assert layer.ref_file.read_bytes() == content
