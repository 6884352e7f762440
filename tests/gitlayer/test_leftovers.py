"""What dead processes left in the repository goes; what a live git may be writing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import CommitError
from savepoint.gitlayer.repair import leftovers
from tests.gitlayer.layer import Layer, repo_of, shim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_children_left")

LONG_AGO = 1000.0  # seconds


def age_by(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


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
