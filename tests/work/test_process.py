"""Real worker processes: one at a time, killed anywhere; each savepoint is pushed once."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.store import config, savepoints, trusted
from savepoint.store.locks import Lock
from savepoint.work import layer2, outbox, push_wait, start
from savepoint.work.jobs import Job
from tests.fault.scene import kill
from tests.gitlayer.remotes import is_gone
from tests.work import scene
from tests.work.scene import around

if TYPE_CHECKING:
    from tests.gitlayer.remotes import Pushing
    from tests.work.scene import Working


def _pushes(log: Path) -> list[tuple[str, str]]:
    """What the remote was brought: old and new commit of each push."""
    pairs = [line.split() for line in log.read_text().splitlines()]
    return [(old, new) for old, new in pairs]


def _check_pushed_once(it: Pushing, log: Path) -> None:
    """Every commit came in exactly one push, each of which went on from the one before."""
    it.check_pushed()
    brought: Counter[str] = Counter()
    at = "0" * 40
    for old, new in _pushes(log):
        assert old == at
        since = [] if set(old) == {"0"} else [f"^{old}"]
        brought.update(it.bare.git("rev-list", new, *since).split())
        at = new
    assert brought == Counter(it.layer.history())


# one worker


def test_a_worker_pays_what_is_owed_and_ends(it: Pushing) -> None:
    it.saved(1)
    it.layer.save(b"left behind\n")
    done = scene.run(it.layer.paths.store)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(it.layer.history()) == 2
    it.check_pushed()
    assert scene.owed(it.layer.paths.store) == []
    told = Path(it.layer.paths.status_log).read_text().splitlines()
    assert ['"event":"COMMITTED_LOCALLY"' in line for line in told] == [True, False]
    assert '"event":"PUSHED_TO_GITHUB"' in told[1]


def test_a_worker_with_nothing_to_do_is_gone_at_once(it: Pushing) -> None:
    began = time.monotonic()
    assert scene.run(it.layer.paths.store).returncode == 0
    assert time.monotonic() - began < scene.SECONDS


def test_children_of_a_worker_own_nothing_but_their_streams(it: Pushing, tmp_path: Path) -> None:
    """No descriptor above 2 and no lock: a git that outlives us holds nobody up."""
    it.bare.hook("pre-receive", f"ls -l /proc/self/fd > {tmp_path}/fds")
    it.saved(1)
    assert scene.run(it.layer.paths.store).returncode == 0
    listed = (tmp_path / "fds").read_text()
    assert it.layer.paths.store.path not in listed
    assert ".lock" not in listed


def test_a_worker_that_is_told_to_end_ends_its_git(it: Pushing, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    it.bare.hook("pre-receive", f"echo $$ > {mark}; exec sleep 600")
    it.saved(1)
    process = scene.start(it.layer.paths.store)
    _wait_for(mark)
    process.terminate()
    assert process.wait(scene.SECONDS) == 128 + signal.SIGTERM
    assert is_gone(int(mark.read_text()))


def _wait_for(mark: Path) -> None:
    end = time.monotonic() + 120
    while not (mark.exists() and mark.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_worker_survives_a_broken_store(it: Pushing) -> None:
    """No traceback; the log says what it was."""
    Path(it.layer.paths.store.config).write_text("{")
    done = scene.run(it.layer.paths.store)
    assert (done.returncode, done.stderr) == (0, b"")
    told = Path(it.layer.paths.continuity_log).read_text()
    assert "worker: what is owed of push: " in told
    assert "config.json" in told


# many workers


def test_of_many_workers_each_savepoint_is_pushed_once(it: Pushing) -> None:
    log = it.bare.record_pushes()
    it.saved(2)
    processes = [scene.start(it.layer.paths.store) for _ in range(6)]
    assert [one.wait(scene.SECONDS) for one in processes] == [0] * 6
    _check_pushed_once(it, log)
    assert len(_pushes(log)) == 1


def test_what_is_saved_while_a_worker_works_is_pushed_too(it: Pushing, tmp_path: Path) -> None:
    log = it.bare.record_pushes()
    it.bare.hook("pre-receive", f"touch {tmp_path}/begun; sleep 0.5")
    it.saved(1)
    first = scene.start(it.layer.paths.store)
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    it.saved(1)
    second = scene.start(it.layer.paths.store)
    assert [one.wait(scene.SECONDS) for one in (first, second)] == [0, 0]
    _check_pushed_once(it, log)


# killed

_STEPS = "?vfork,?clone,?clone3,openat,?rename,?renameat,?unlink,?unlinkat,fsync,flock,write,wait4"
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


@pytest.mark.parametrize("shard", range(8))
def test_killed_at_any_step_each_savepoint_is_pushed_once(
    it: Pushing, tmp_path: Path, strace: str, shard: int
) -> None:
    """The worker alone dies, as by the OOM killer; the git that it started may live on."""
    store = it.layer.paths.store
    log = it.bare.record_pushes()
    it.saved(1)
    it.layer.save(b"left behind\n")
    trace = tmp_path / "trace"
    tracing = ("strace", "-o", str(trace), "-qq", "-e", f"trace={_STEPS}")
    assert scene.run(store, *tracing).returncode == 0
    seen: Counter[str] = Counter()
    steps = []
    for line in trace.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match:
            seen[match[1]] += 1
            if store.path in line or match[1] not in {"openat", "write"}:
                steps.append((match[1], seen[match[1]]))
    assert len(steps) > 60
    killed = 0
    for syscall, number in steps[shard :: 8 * 2]:
        it.layer.save(b"%d\n" % number)
        fault = f"inject={syscall}:signal=KILL:when={number}"
        killed += scene.run(store, *tracing, "-e", fault).returncode != 0
        scene.run(store)  # if the kill came while nothing was held, all is done already
        _settle(it)
        _check_pushed_once(it, log)
        assert it.layer.fsck() == ""
    assert killed > 0


def _settle(it: Pushing) -> None:
    """A git that outlived its worker has made the next attempt fail; the one after is due soon."""
    store = it.layer.paths.store
    end = time.monotonic() + 120
    while scene.owed(store) and time.monotonic() < end:
        time.sleep(0.2)
        scene.work_once(store)


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
def test_killed_with_all_its_children_at_any_time(it: Pushing, delay: float) -> None:
    log = it.bare.record_pushes()
    it.saved(2)
    it.layer.save(os.urandom(3_000_000).hex().encode())
    process = scene.start(it.layer.paths.store)
    time.sleep(delay)
    for pid in _tree(process.pid):
        kill(pid, signal.SIGKILL)
    process.wait(scene.SECONDS)
    scene.run(it.layer.paths.store)
    _settle(it)
    _check_pushed_once(it, log)


def _tree(pid: int) -> list[int]:
    """A process and all that it has started, newest first."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        listed = [int(one) for one in children.read_text().split()]
    except OSError:
        return []
    return [other for one in listed for other in _tree(one)] + [pid]


def test_a_worker_that_cannot_go_on_says_so_in_the_log(it: Pushing) -> None:
    """Its exit code is told to nobody."""
    it.saved(1)
    store = it.layer.paths.store
    Path(store.outbox).unlink(missing_ok=True)
    Path(store.outbox).mkdir()
    assert scene.run(store).returncode == 40
    assert "worker: ended: " in Path(it.layer.paths.continuity_log).read_text()


def test_what_the_worker_cannot_list_stands_in_the_log(it: Pushing) -> None:
    it.saved(1)
    store = it.layer.paths.store
    Path(store.sessions).rename(store.sessions + ".away")
    Path(store.sessions).write_bytes(b"")
    assert scene.run(store).returncode == 0
    it.check_pushed()
    assert "worker: what is owed of audit: " in Path(it.layer.paths.continuity_log).read_text()


def test_the_outbox_may_be_lost_or_torn(it: Pushing) -> None:
    """A copy without its -wal, as people make of a running store (screenpipe#2907)."""
    log = it.bare.record_pushes()
    it.bare.hook("pre-receive", "exit 1")
    it.saved(1)
    store = it.layer.paths.store
    scene.work_once(store)
    it.bare.hook("pre-receive", "exit 0")
    Path(store.outbox).write_bytes(b"SQLite format 3\0" + b"torn")
    for ending in ("-wal", "-shm"):
        Path(store.outbox + ending).unlink(missing_ok=True)
    assert scene.run(store).returncode == 0
    _check_pushed_once(it, log)


# attempts


def test_a_refusal_is_not_repeated_at_once(it: Pushing, tmp_path: Path) -> None:
    """No storm of retries."""
    it.bare.hook("pre-receive", f"echo x >> {tmp_path}/tries; exit 1")
    it.saved(1)
    for _ in range(3):
        scene.run(it.layer.paths.store)
    assert (tmp_path / "tries").read_text() == "x\n"
    (attempt,) = outbox.attempts(it.layer.paths.store, [Job("push", it.slug, None, 0)])
    assert attempt is not None
    assert attempt.next_at - time.time() > limits.RETRY_REFUSED_SECONDS - 60


def test_a_remote_that_comes_back_is_pushed_to(it: Pushing, tmp_path: Path) -> None:
    it.saved(1)
    it.bare.path.rename(tmp_path / "unplugged.git")
    process = scene.start(it.layer.paths.store)
    end = time.monotonic() + 120
    while not outbox.attempts(it.layer.paths.store, [Job("push", it.slug, None, 0)])[0]:
        assert time.monotonic() < end
        time.sleep(0.05)
    (tmp_path / "unplugged.git").rename(it.bare.path)
    assert process.wait(scene.SECONDS) == 0
    it.check_pushed()


# starting one, and waiting for its push

_START = start.start  # `work` puts nothing in its place


@pytest.fixture
def _this_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m savepoint.cli.worker.process` finds this checkout, installed or not."""
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\nshift 3\nexec {sys.executable} -I -c {shlex.quote(scene.PROGRAM)} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def _waited(it: Pushing, seconds: float = 30) -> tuple[str, str]:
    one = it.layer.built.records()[-1]
    return push_wait.wait_for_push(it.layer.paths, one, around(), time.monotonic() + seconds)


@pytest.mark.usefixtures("_this_checkout")
def test_a_save_waits_for_its_push(it: Pushing) -> None:
    it.saved(1)
    assert _waited(it) == (layer2.PUSHED, "")
    it.check_pushed()


@pytest.mark.usefixtures("_this_checkout")
def test_a_refusal_ends_the_wait(it: Pushing) -> None:
    it.bare.hook("pre-receive", "echo closed on sundays >&2; exit 1")
    it.saved(1)
    status, error = _waited(it)
    assert (status, "closed on sundays" in error) == (layer2.PUSH_REFUSED, True)
    it.saved(1)
    began = time.monotonic()
    assert _waited(it)[0] == layer2.PUSH_REFUSED  # not due for an hour
    assert time.monotonic() - began < 20, "it was not waited for"


@pytest.mark.usefixtures("_this_checkout")
def test_a_silent_remote_holds_nobody_longer_than_allowed(it: Pushing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        it.use(f"https://127.0.0.1:{server.getsockname()[1]}/x.git")
        it.saved(1)
        began = time.monotonic()
        assert _waited(it, 1.0) == (layer2.QUEUED_FOR_PUSH, "")
        assert 0.9 < time.monotonic() - began < 20
        _end_worker(it)


@pytest.mark.usefixtures("_this_checkout")
def test_without_a_remote_nobody_waits(it: Pushing) -> None:
    store = it.layer.paths.store
    config.load(store)._replace(remote=None).save(store)
    it.saved(1)
    began = time.monotonic()
    assert _waited(it) == (layer2.COMMITTED, "")
    assert time.monotonic() - began < 20, "it was not waited for"
    _end_worker(it)


def _end_worker(it: Pushing) -> None:
    """The one that was started here is ended; nobody else has this store."""
    home = os.fsencode(it.layer.paths.store.home)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"savepoint.cli.worker.process" in line and home in line:
                kill(int(process.name), signal.SIGTERM)
    with Lock(it.layer.paths.store.worker_lock, time.monotonic() + 120):
        return


@pytest.mark.parametrize(
    ("push_wait_seconds", "elapsed", "expected"),
    [(5, 0, 5), (5, 3, 3), (5, 9, 0), (2, 0, 2), (0, 0, 0)],
)
def test_waiting_ends_within_the_budget(
    it: Pushing, push_wait_seconds: int, elapsed: float, expected: float
) -> None:
    chosen = config.load(it.layer.paths.store)._replace(push_wait=push_wait_seconds)
    before = time.monotonic()
    end = push_wait.give_up(chosen, before - elapsed)
    assert before + expected - 0.001 <= end <= time.monotonic() + expected


@pytest.mark.usefixtures("_this_checkout")
def test_a_project_s_savepoint_reaches_the_remote(
    work: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("savepoint.work.start.start", _START)
    made = work.scene.created()
    one = savepoints.find(work.paths, str(made["seq"]))
    status, _ = push_wait.wait_for_push(work.paths, one, around(), time.monotonic() + 120)
    assert status == layer2.PUSHED
    work.check_pushed(made["seq"])
    head = trusted.load(work.paths)
    assert head is not None
    assert head.remote_tip == work.bare.tip(work.paths.slug)
