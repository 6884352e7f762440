"""The loop, with made-up kinds of jobs: what is tried, when again, and when the worker leaves."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import (
    BusyError,
    DiskError,
    PushRefusedError,
    RemoteUnreachableError,
)
from savepoint.store.locks import Lock
from savepoint.work import outbox, worker
from savepoint.work.jobs import Job, Surroundings
from savepoint.work.outbox import Outbox
from tests.work import scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.errors import SavepointError
    from savepoint.store.layout import Store
    from savepoint.work.worker import Done
    from tests.gitlayer.remotes import Pushing

_AROUND = Surroundings({}, "/nowhere")


class Fake:
    """Jobs that fail as they are told to, then are done."""

    seconds = 5.0

    def __init__(self, name: str, *failures: SavepointError | None) -> None:
        self.name = name
        self.failures = list(failures)
        self.deadlines: list[float] = []

    def owed(self, _store: Store, _around: Surroundings) -> list[Job]:
        return [Job(self.name, "a", 1, 0)] if self.failures else []

    def do(self, _store: Store, _job: Job, _around: Surroundings, deadline: float) -> None:
        self.deadlines.append(deadline)
        failure = self.failures.pop(0)
        if failure is not None:
            self.failures.insert(0, failure) if failure.retry is False else None
            raise failure


@pytest.fixture
def store(it: Pushing) -> Store:
    return it.layer.paths.store


def _run(store: Store, *kinds: Fake, seconds: float = 20) -> list[Done]:
    done: list[Done] = []
    worker.run(store, kinds, _AROUND, until=time.monotonic() + seconds, tell=done.append)
    return done


def _names(done: list[Done]) -> list[tuple[str, str]]:
    return [(one.job.kind, one.failure.name if one.failure else "done") for one in done]


def test_kinds_come_in_their_order_and_again_if_something_was_done(store: Store) -> None:
    """What a later kind does may be the ground for an earlier one."""
    first, second = Fake("first"), Fake("second", None)
    push = second.do

    def makes_work(*args: object) -> None:
        push(*args)  # type: ignore[arg-type]
        first.failures.append(None)

    second.do = makes_work  # type: ignore[method-assign, assignment]
    assert _names(_run(store, first, second)) == [("second", "done"), ("first", "done")]


def test_a_failure_is_tried_again_after_a_pause(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RETRY_FIRST_SECONDS", 1)
    kind = Fake("push", RemoteUnreachableError("away"), None)
    began = time.monotonic()
    assert _names(_run(store, kind)) == [("push", "remote_unreachable"), ("push", "done")]
    assert time.monotonic() - began > 0.5
    assert outbox.attempts(store, [Job("push", "a", 1, 0)]) == [None]


def test_what_will_not_succeed_by_itself_ends_the_worker(store: Store) -> None:
    began = time.monotonic()
    kind = Fake("push", PushRefusedError("no"))
    assert _names(_run(store, kind)) == [("push", "push_refused")]
    assert _names(_run(store, kind)) == []
    assert time.monotonic() - began < 15, "neither waited until its life was over"


def test_a_clock_that_stood_ahead_puts_nothing_off(store: Store) -> None:
    """A push failed while the clock said 2036: nothing was pushed until then."""
    with Outbox(store) as box:
        ahead = int(time.time()) + 10 * 366 * 86400
        box.failed(Job("push", "a", 1, 0), RemoteUnreachableError("away"), ahead)
    assert _names(_run(store, Fake("push", None))) == [("push", "done")]


def test_one_job_that_fails_holds_no_other_up(store: Store) -> None:
    refused, fine = Fake("first", PushRefusedError("no")), Fake("second", None)
    assert _names(_run(store, refused, fine)) == [("first", "push_refused"), ("second", "done")]


def _unlisted(name: str, failure: SavepointError) -> Fake:
    """A kind that cannot say what it owes."""
    kind = Fake(name)

    def owed(_store: Store, _around: Surroundings) -> list[Job]:
        raise failure

    kind.owed = owed  # type: ignore[method-assign]
    return kind


def test_a_kind_that_cannot_be_listed_holds_no_other_up(store: Store) -> None:
    """The worker ended at it, and no log said so."""
    blind, fine = _unlisted("first", DiskError("unreadable")), Fake("second", None)
    assert _names(_run(store, blind, fine)) == [("first", "disk"), ("second", "done")]
    assert _names(_run(store, blind)) == [], "not again before it is due"
    until = time.monotonic() + 5
    tried = worker.try_now(store, [blind, Fake("second", None)], _AROUND, until=until, tell=_no)
    assert _names(tried) == [("first", "disk"), ("second", "done")]
    (attempt,) = outbox.attempts(store, [Job("first", "", None, 0)])
    assert attempt is not None
    assert attempt.tries == 2
    assert _names(_run(store, Fake("first", None))) == [("first", "done")]
    assert outbox.attempts(store, [Job("first", "", None, 0)]) == [None]


def _no(_: object) -> None:
    """Nobody is told."""


def test_an_attempt_has_a_deadline_within_the_worker_s(store: Store) -> None:
    for life, expected in ((20, Fake.seconds), (4, 4)):
        kind = Fake("push", None)
        began = time.monotonic()
        _run(store, kind, seconds=life)
        (deadline,) = kind.deadlines
        assert began + expected <= deadline <= time.monotonic() + expected


def test_a_worker_s_life_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_FIRST_SECONDS", 1)
    kind = Fake("push", *(RemoteUnreachableError("away") for _ in range(50)))
    began = time.monotonic()
    _run(store, kind, seconds=2)
    assert time.monotonic() - began < 30


def test_sync_tries_at_once_what_was_put_off(store: Store) -> None:
    kind = Fake("push", PushRefusedError("no"))
    _run(store, kind)
    until = time.monotonic() + 5
    tried = worker.try_now(store, [kind], _AROUND, until=until, tell=lambda _: None)
    assert _names(tried) == [("push", "push_refused")]
    (attempt,) = outbox.attempts(store, [Job("push", "a", 1, 0)])
    assert attempt is not None
    assert attempt.tries == 2


def test_sync_does_not_work_beside_a_worker(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.1)
    with Lock(store.worker_lock, time.monotonic()), pytest.raises(BusyError):
        worker.try_now(store, [], _AROUND, until=time.monotonic(), tell=lambda _: None)


def test_of_three_workers_one_works_one_waits_and_one_leaves(store: Store) -> None:
    with Lock(store.worker_lock, time.monotonic()):
        waiting = scene.start(store)
        _until(lambda: _is_held(store.worker_queue))
        began = time.monotonic()
        assert _run(store, Fake("push", None)) == []
        assert time.monotonic() - began < 15, "it has left, and not waited until its life was over"
        assert waiting.poll() is None
    assert waiting.wait(scene.SECONDS) == 0


def _until(true: Callable[[], object]) -> None:
    end = time.monotonic() + scene.SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _is_held(path: str) -> bool:
    try:
        with Lock(path, 0.0):
            return False
    except BusyError:
        return True


def test_a_worker_that_only_waits_makes_way_for_one_that_was_started_since(
    store: Store, it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a savepoint would wait for the pause after somebody else's failure."""
    monkeypatch.setattr(limits, "RETRY_FIRST_SECONDS", 40)
    context = multiprocessing.get_context("fork")
    failing = Fake("first", *(RemoteUnreachableError("away") for _ in range(9)))
    sleeping = context.Process(target=_run, args=(store, failing), kwargs={"seconds": 50})
    sleeping.start()
    _until(lambda: outbox.attempts(store, [Job("first", "a", 1, 0)])[0])
    it.saved(1)
    began = time.monotonic()
    done = scene.run(store)
    assert (done.returncode, done.stderr) == (0, b"")
    assert time.monotonic() - began < 25
    it.check_pushed()
    sleeping.join(scene.SECONDS)
    assert sleeping.exitcode == 0


# attempts


def test_pauses_grow_to_a_limit_and_are_not_all_alike() -> None:
    pauses = [outbox.pause(tries, retry=True) for tries in range(1, 30)]
    assert 1 <= pauses[0] <= limits.RETRY_FIRST_SECONDS * 1.25
    assert 0.7 * limits.RETRY_LONGEST_SECONDS < pauses[-1] <= 1.25 * limits.RETRY_LONGEST_SECONDS
    assert len({outbox.pause(20, retry=True) for _ in range(20)}) > 5
    assert outbox.pause(1, retry=False) == limits.RETRY_REFUSED_SECONDS


def test_attempts_survive_their_worker(store: Store) -> None:
    job = Job("push", "a", 1, 0)
    with Outbox(store) as box:
        box.failed(job, RemoteUnreachableError("away"), 100)
        box.failed(job, PushRefusedError("no"), 100)
    (attempt,) = outbox.attempts(store, [job])
    expected = (2, 100 + limits.RETRY_REFUSED_SECONDS, "push_refused", "no")
    assert attempt == expected
    with Outbox(store) as box:
        box.done(job)
    assert outbox.attempts(store, [job]) == [None]


def test_an_outbox_that_is_held_is_not_thrown_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked as if it were torn."""
    job = Job("push", "a", 1, 0)
    with Outbox(store) as box:
        box.failed(job, PushRefusedError("no"), 100)
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.1)
    with closing(sqlite3.connect(store.outbox)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BusyError, match="held by another program"):
            Outbox(store).__enter__()
        other.rollback()
    (attempt,) = outbox.attempts(store, [job])
    assert attempt is not None


def test_attempts_of_a_store_that_never_had_a_worker(store: Store) -> None:
    assert outbox.attempts(store, [Job("push", "a", 1, 0)]) == [None]
