"""Many processes save at once, are killed or stopped in the middle: each acknowledgement holds."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.fault import sweep
from tests.fault.scene import COMMAND, HOOK, Scene, hook, limited, run, session_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MANY = 100
_SECONDS = 100  # all of them, on two busy processors


class Barrier:
    """Processes that are started one by one, and then released together."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._wait, self._release = os.pipe()
        self._processes: list[subprocess.Popen[bytes]] = []

    def add(self, command: Sequence[str], payload: bytes = b"") -> None:
        """Start one that waits; payload: what it finds on its stdin then."""
        told = self._scene.folder / f"payload-{len(self._processes)}"
        told.write_bytes(payload)
        shell = ["sh", "-c", 'read _; told=$1; shift; exec "$@" <"$told"', "sh", str(told)]
        self._processes.append(
            subprocess.Popen(
                [*shell, *command],
                cwd=self._scene.project,
                env=self._scene.environment(),
                stdin=self._wait,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )

    def run(self) -> list[tuple[int, str]]:
        """Release them; the exit code of each, and what it wrote to stderr."""
        os.close(self._wait)
        os.close(self._release)  # the end of the pipe is what they wait for
        found = []
        for process in self._processes:
            _, err = process.communicate(timeout=_SECONDS)
            found.append((process.returncode, err.decode()))
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project and a store."""
    return Scene.make(tmp_path / "scene")


@pytest.mark.timeout(240)
def test_a_hundred_creates_of_different_sessions_are_a_hundred_savepoints(scene: Scene) -> None:
    barrier = Barrier(scene)
    said = {number: scene.say(3, session=number) for number in range(MANY)}
    for number in said:
        barrier.add([*COMMAND, "create", "--transcript", str(scene.transcript(number))])
    ended = barrier.run()
    busy = [number for number, (code, _) in enumerate(ended) if code == 11]
    assert {code for code, _ in ended} <= {0, 11}
    for number in busy:  # on a slow machine, or where others use it
        assert scene.create(number).code == 0, "its hint: try again in a moment"
    _assert_one_each(scene, said, twice=len(busy))  # others finished what it had left


@pytest.mark.timeout(240)
def test_a_hundred_hooks_of_different_sessions_are_a_hundred_savepoints(scene: Scene) -> None:
    barrier = Barrier(scene)
    said = {number: scene.say(3, session=number) for number in range(MANY)}
    for number in said:
        barrier.add([*HOOK, "PreCompact"], scene.payload(number))
    assert barrier.run() == [(0, "")] * MANY
    late = {line["session_id"] for line in scene.log()}  # whose deadline passed
    there = {one.body["session_id"] for one in scene.saves()}
    assert there | late >= {session_id(number) for number in said}, "saved, or said that it is not"
    for number in said:
        if session_id(number) in late:
            assert scene.fire(number).is_quiet
    _assert_one_each(scene, said, twice=len(late))


def _assert_one_each(scene: Scene, said: dict[int, bytes], twice: int) -> None:
    """In any order, without a gap; a hook that was cut off after its record may save once more."""
    seqs = [one.seq for one in scene.saves()]
    assert seqs == list(range(2, len(seqs) + 2))  # the birth is 1
    assert MANY <= len(seqs) <= MANY + twice
    for number, data in said.items():
        assert scene.conversation(scene.saves(number)[-1]) == data
    assert scene.damage() == []
    assert scene.pending() == []


def test_one_session_fired_twenty_times_at_once_is_one_savepoint(scene: Scene) -> None:
    """Settings and a plugin both have the hook, so that each event fires twice."""
    said = scene.say(20)
    barrier = Barrier(scene)
    for _ in range(20):
        barrier.add([*HOOK, "PreCompact"], scene.payload())
    assert barrier.run() == [(0, "")] * 20
    assert scene.log() == []
    (only,) = scene.saves()
    assert scene.conversation(only) == said
    assert scene.damage() == []


def test_two_sessions_in_one_repository_stay_two_lines(scene: Scene) -> None:
    """entireio/cli#338: the work of one was filed under the other while both were active."""
    for turn in range(20):
        barrier = Barrier(scene)
        for number in (1, 2) if turn % 2 else (2, 1):
            scene.say(2, session=number)
            event = "PreCompact" if turn % 3 else "SessionStart"
            barrier.add(hook(event), scene.payload(number, event))
        assert barrier.run() == [(0, "")] * 2
    assert scene.log() == []
    for number in (1, 2):
        line = scene.saves(number)
        assert len(line) == 20
        assert line[0].body["from"] is None
        assert [one.body["from"] for one in line[1:]] == [one.origin() for one in line[:-1]]
        assert scene.conversation(line[-1]) == scene.transcript(number).read_bytes()
        mine = f"{scene.transcript(number)}"
        for one in line:
            told = [name for name in scene.files(one) if name.startswith("conversation:")]
            assert told == [f"conversation:{mine}"]
    caches = {f"{session_id(number)}.json" for number in (1, 2)}
    assert caches <= {path.name for path in scene.home.glob("stores/*/sessions/*")}


@pytest.mark.timeout(120)
def test_killed_again_and_again_every_acknowledgement_stays(scene: Scene) -> None:
    """Four writers, killed after random times: no repair by hand, nothing acknowledged is lost."""
    chance = random.Random(20261130)
    acknowledged = killed = rounds = 0
    longest = 0.9  # seconds; shorter where this machine is so quick that none is killed
    while rounds < 20 or killed < 11 or acknowledged < 11:
        rounds += 1
        for number in range(4):
            scene.say(2, session=number)
        before = len(scene.log())
        running = [scene.start(number) for number in range(4)]
        time.sleep(chance.uniform(0, longest))
        for process in running[:3]:  # the fourth may end in peace
            process.kill()
        codes = [_end(process) for process in running]
        killed += codes.count(-signal.SIGKILL)
        longest *= 1 if -signal.SIGKILL in codes else 0.9
        assert codes[3] == 0
        for number, code in enumerate(codes):
            if code == 0 and len(scene.log()) == before:
                acknowledged += 1
                last = scene.saves(number)[-1]
                assert scene.conversation(last) == scene.transcript(number).read_bytes()
        assert scene.damage() == []
    for number in range(4):
        assert scene.fire(number).is_quiet
        last = scene.saves(number)[-1]
        assert scene.conversation(last) == scene.transcript(number).read_bytes()
    assert scene.damage() == []
    assert scene.pending() == []


def _end(process: subprocess.Popen[bytes]) -> int:
    out, err = process.communicate(timeout=_SECONDS)
    assert (out, err) == (b"", b"")
    return process.returncode


@contextmanager
def stopped_while_it_appends(scene: Scene, session: int) -> Iterator[None]:
    """A hook that hangs with both locks in its hands; at the end it goes on."""
    trace = scene.folder / "trace"
    said = scene.say(1, session=99)
    assert scene.fire(99, wrap=sweep.tracing(trace)).is_quiet
    assert scene.conversation() == said
    appends = [
        call
        for call in sweep.calls(trace, scene.home)
        if call.syscall == "fsync" and "precompact-savepoint.jsonl" in call.text
    ]
    (append,) = appends
    stop = ["-e", f"inject=fsync:signal=STOP:when={append.number}"]
    patient = limited("limits.PRECOMPACT_SECONDS = 300.0", "savepoint.hook", "PreCompact")
    command = [*sweep.tracing(trace, *stop), *patient]
    holder = subprocess.Popen(
        command,
        cwd=scene.project,
        env=scene.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert holder.stdin is not None
    holder.stdin.write(scene.payload(session))
    holder.stdin.close()
    holder.stdin = None
    stopped = _wait_until_stopped(holder.pid)
    try:
        yield
    finally:
        os.kill(stopped, signal.SIGCONT)
        assert _end(holder) == 0


def _wait_until_stopped(parent: int) -> int:
    """The child that is stopped for longer than strace stops it at each syscall."""
    seen: list[list[str]] = []
    for _ in range(1500):
        seen.append([])
        for child in _children(parent):
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                state, *_, user, system = file.read().rpartition(")")[2].split()[:13]
            if state in {"T", "t"}:
                seen[-1].append(f"{child} {user} {system}")
        if seen[-1] and seen[-20:] == [seen[-1]] * 20:
            return int(seen[-1][0].split()[0])
        time.sleep(0.02)
    raise AssertionError("it never stopped")


def _children(parent: int) -> Iterable[int]:
    with open(f"/proc/{parent}/task/{parent}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]


def test_a_stopped_lock_holder_delays_others_and_loses_nothing(scene: Scene, strace: str) -> None:
    scene.say(5, session=1)
    scene.say(5, session=2)
    wait = "limits.LOCK_WAIT_SECONDS = 0.5"  # of the lock alone: until then it takes its time
    project, environment = scene.project, scene.environment()
    with stopped_while_it_appends(scene, session=1):
        command = limited(wait, "savepoint.hook", "PreCompact")
        assert run(command, project, environment, scene.payload(2)).is_quiet
        assert "held by another" in scene.log()[-1]["reason"]
        assert f"{session_id(2)}.json" in scene.pending()
        created = ("create", "--transcript", str(scene.transcript(2)))
        busy = run(limited(wait, "savepoint.cli.entry", *created), project, environment, b"")
        assert busy.code == 11
        assert "held by another" in busy.err
        assert "hint" in busy.err
        assert scene.saves(2) == [], "the lock of a live process is not stolen"
    assert scene.conversation(scene.saves(1)[-1]) == scene.transcript(1).read_bytes()
    scene.say(1, session=3)
    assert scene.fire(3).is_quiet  # of another session: it finishes what is pending
    (finished,) = scene.saves(2)
    assert scene.conversation(finished) == scene.transcript(2).read_bytes()
    assert scene.pending() == []
    assert scene.damage() == []
