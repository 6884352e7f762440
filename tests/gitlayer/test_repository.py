"""The repository is ours alone: its settings, its refs by hand, what dead processes left in it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import CommitError, DiskError
from savepoint.gitlayer import leftovers, repair, repository
from savepoint.gitlayer.repository import BrokenRefError, Repository
from tests.gitlayer.layer import SECONDS, Layer, shim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG_AGO = 1000.0  # seconds


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    return Layer.new(tmp_path)


def repo_of(layer: Layer, **env: str) -> Repository:
    store = layer.paths.store
    return Repository.of(store, {**os.environ, **env}, time.monotonic() + SECONDS)


def age_by(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


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
    """Config, hooks, and variables that a git hook has set (faults.md M19, M20)."""
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
    """faults.md M20: git refuses one that it finds by itself; ours is named outright."""
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


# leftovers


def kill_a_writer(layer: Layer, folder: Path, script: str) -> None:
    """A savepoint process that is killed, with its git, while git writes."""
    folder.mkdir()
    marker = folder / "marker"
    told = f"{script}; echo $$ > {folder}/new; mv {folder}/new {marker}; exec sleep 60"
    env = shim(folder / "bin", f'case "$*" in *fast-import*) {told};; *) exec "$REAL" "$@";; esac')
    new = layer.save(os.urandom(99))
    pid = os.fork()
    if pid == 0:
        try:
            layer.commit(new, env=env)
        finally:
            os._exit(1)
    while not marker.exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.killpg(int(marker.read_text()), signal.SIGKILL)


@contextmanager
def git_at_work(layer: Layer, what: str) -> Iterator[None]:
    """A live process that looks as our git does."""
    with as_git(layer, what, seconds=60) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def as_git(layer: Layer, what: str, seconds: float) -> subprocess.Popen[bytes]:
    """It speaks once it is what it will be: a process that has only just been started has no
    command line for a moment, or still that of its parent.
    """
    script = f"echo; exec >&-; sleep {seconds}; :"
    command = ["sh", "-c", script, f"--git-dir={layer.git_dir}", what]
    process = subprocess.Popen(command, process_group=0, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def test_what_a_killed_run_left_is_removed_by_the_next(layer: Layer, tmp_path: Path) -> None:
    """anomalyco/opencode#14811: temporary packs of killed runs filled a disk."""
    layer.saved(b"one\n")
    left = [
        layer.git_dir / f"{layer.ref}.lock",
        layer.git_dir / "fast_import_crash_123",
        layer.git_dir / "objects/pack/tmp_pack_abc",
        layer.git_dir / "objects/pack/tmp_idx_abc",
    ]
    keep = layer.git_dir / "objects/pack/pack-1.keep"
    touch = "; ".join(f"echo x > {path}" for path in left)
    kill_a_writer(layer, tmp_path / "x", f"{touch}; printf fast-import > {keep}")
    assert all(path.exists() for path in left)
    assert layer.commit() is not None
    assert [path.name for path in (*left, keep) if path.exists()] == []
    assert not (layer.git_dir / "savepoint/writing").exists()
    assert layer.fsck() == ""


def test_what_the_worker_may_be_writing_stays(layer: Layer, tmp_path: Path) -> None:
    layer.saved(b"one\n")
    temporary = layer.git_dir / "objects/pack/tmp_pack_abc"
    kill_a_writer(layer, tmp_path / "x", f"echo x > {temporary}")
    with git_at_work(layer, "repack"):
        assert layer.commit() is not None
        assert temporary.exists()
    layer.saved(b"two\n")
    assert not temporary.exists(), "it was looked at again"


def test_what_nobody_touched_for_long_is_nobodys(layer: Layer) -> None:
    layer.saved(b"one\n")
    for name in ("objects/pack/tmp_pack_abc", "fast_import_crash_9", "objects/pack/.tmp-1-a.idx"):
        (layer.git_dir / name).write_text("x")
        age_by(layer.git_dir / name, limits.STALE_SECONDS + 1)
    with git_at_work(layer, "fast-import"):
        removed = leftovers.remove_leftovers(repo_of(layer), layer.paths.slug)
    assert len(removed) == 3


@pytest.mark.parametrize("seconds", [0, LONG_AGO])
def test_where_nobody_can_tell_who_lives_age_tells(
    layer: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    layer.saved(b"one\n")
    monkeypatch.setattr(leftovers, "_PROCESSES", str(tmp_path / "no processes"))
    lock = layer.git_dir / f"{layer.ref}.lock"
    lock.write_text("")
    age_by(lock, seconds)
    removed = leftovers.remove_leftovers(repo_of(layer), layer.paths.slug)
    assert bool(removed) == bool(seconds) == (not lock.exists())


def test_the_lock_of_a_live_git_is_not_taken_away(layer: Layer) -> None:
    layer.saved(b"one\n")
    lock = layer.git_dir / f"{layer.ref}.lock"
    lock.write_text("")
    with git_at_work(layer, "fast-import"):
        with pytest.raises(CommitError, match="still at work"):
            layer.commit(layer.save(b"two\n"))
        assert lock.exists()
    assert layer.commit() is not None


def test_an_orphan_that_ends_soon_is_waited_for(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ORPHAN_SECONDS", 20)
    layer.saved(b"one\n")
    (layer.git_dir / f"{layer.ref}.lock").write_text("")
    new = layer.save(b"two\n")
    with as_git(layer, "fast-import", seconds=0.2):
        assert layer.commit(new) is not None


def test_an_orphan_that_commits_after_all_is_gone_on_from(layer: Layer, tmp_path: Path) -> None:
    """The git of a dead process moves the ref between our reading it and our writing it."""
    layer.saved(b"one\n")
    before = layer.tip()
    layer.saved(b"two\n")
    orphans = layer.tip()
    layer.git("update-ref", layer.ref, before)
    first = (
        f"[ -e {tmp_path}/done ] || {{ touch {tmp_path}/done; echo {orphans} > {layer.ref_file}; }}"
    )
    env = shim(tmp_path / "bin", f'case "$*" in *fast-import*) {first};; esac; exec "$REAL" "$@"')
    done = layer.commit(layer.save(b"three\n"), env=env)
    assert done is not None
    assert layer.history() == [before, orphans, done.cursor.commit]


def test_a_lock_that_a_power_cut_left_is_nobodys(layer: Layer) -> None:
    """There is no note of its writer any more."""
    layer.saved(b"one\n")
    (layer.git_dir / f"{layer.ref}.lock").write_text("")
    layer.saved(b"two\n")


@pytest.mark.parametrize(
    "name", ["HEAD.lock", "packed-refs.lock", "index.lock", "objects/maintenance.lock"]
)
def test_other_locks_are_not_in_the_way_and_stay(layer: Layer, name: str) -> None:
    layer.saved(b"one\n")
    (layer.git_dir / name).write_text("")
    age_by(layer.git_dir / name, LONG_AGO)
    layer.saved(b"two\n")
    assert (layer.git_dir / name).exists()


def test_killed_at_any_moment_the_next_run_needs_no_help(layer: Layer) -> None:
    """SIGKILL at 25 moments of a commit; its git sees the end of its input, or ends its work."""
    layer.saved(b"zero\n")
    started = time.monotonic()
    layer.saved(os.urandom(100_000))
    usual = time.monotonic() - started
    for number in range(25):
        new = layer.save(os.urandom(100_000))
        pid = os.fork()
        if pid == 0:
            try:
                layer.commit(new)
            finally:
                os._exit(1)
        time.sleep(usual * number / 20)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        layer.commit()
        assert layer.holds_newest()
    assert len(layer.history()) == 27
    assert layer.fsck() == ""


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


@pytest.fixture(autouse=True)
def _no_children_left() -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
