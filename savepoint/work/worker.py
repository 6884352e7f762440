"""The worker's loop: find what is owed, try it, remember failures, end when nothing is due soon."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import BusyError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.locks import Lock
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from savepoint.store.layout import Store
    from savepoint.work.jobs import Kind, Surroundings


class Done(NamedTuple):
    """One attempt, for who watches."""

    job: Job
    failure: SavepointError | None
    again: float | None = None  # seconds until there may be news: it is under way, not done


def run(
    store: Store,
    kinds: Sequence[Kind],
    around: Surroundings,
    *,
    until: float,
    tell: Callable[[Done], None],
) -> None:
    """Work until nothing is due within WORKER_IDLE_SECONDS, or `until` of time.monotonic().

    Of many workers that are started one works, one waits for it to end, and the others leave: the
    one that waits sees whatever was saved meanwhile. Raises DiskError.
    """
    with ExitStack() as held:
        try:
            with Lock(store.worker_queue, time.monotonic() + limits.WORKER_LOOK_SECONDS):
                held.enter_context(Lock(store.worker_lock, until))
        except BusyError:
            return
        box = held.enter_context(Outbox(store))
        _Loop(store, kinds, around, until, tell, box).run()


def try_now(
    store: Store,
    kinds: Sequence[Kind],
    around: Surroundings,
    *,
    until: float,
    tell: Callable[[Done], None],
) -> list[Done]:
    """Do what is owed now, whatever was tried before; each job at most once. For `sync`.

    Raises BusyError if a worker does not end before `until`, DiskError.
    """
    with ExitStack() as held:
        with Lock(store.worker_queue, until):  # a worker that sleeps makes way
            held.enter_context(Lock(store.worker_lock, until))
        box = held.enter_context(Outbox(store))
        loop = _Loop(store, kinds, around, until, tell, box)
        return [done for kind in kinds for done in loop.attempts(kind)]


class _Loop:
    def __init__(
        self,
        store: Store,
        kinds: Sequence[Kind],
        around: Surroundings,
        until: float,
        tell: Callable[[Done], None],
        box: Outbox,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._around = around
        self._until = until
        self._tell = tell
        self._box = box
        self._unlisted: dict[str, SavepointError] = {}  # kinds whose jobs cannot be told, and why
        self._under_way: dict[tuple[str, str], float] = {}  # time.monotonic() of the next look

    def run(self) -> None:
        while time.monotonic() < self._until:
            pause = self._round()
            if pause is None or pause > limits.WORKER_IDLE_SECONDS:
                return
            if self._is_relieved(min(self._until, time.monotonic() + pause)):
                return

    def _is_relieved(self, until: float) -> bool:
        """Sleep; True as soon as another worker waits for us to end: it was started for something
        that we have not seen, and knows the rest from the outbox.
        """
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, limits.WORKER_LOOK_SECONDS))
            try:
                with Lock(self._store.worker_queue, 0.0):
                    pass
            except BusyError:
                return True
        return False

    def _round(self) -> float | None:
        """Try what is due; the seconds until something is due next, or None: nothing is owed. What
        was done can be the ground for more: an audit makes a savepoint, which is to be pushed.
        """
        soonest = None
        for kind in self._kinds:  # in order: what is saved can be committed, then pushed
            for job in self._owed(kind):
                if self._left(job) <= 0:
                    self.attempt(kind, job)
                left = max(limits.WORKER_AGAIN_SECONDS, self._left(job))
                soonest = left if soonest is None else min(soonest, left)
        return soonest

    def _left(self, job: Job) -> float:
        """Seconds until the job is due. A pause longer than any is of a clock that stood ahead
        when an attempt failed: nothing was tried again until that date.
        """
        tried = self._box.attempt(job)
        left = tried.next_at - time.time() if tried is not None else 0.0
        if 0.0 < left <= limits.RETRY_REFUSED_SECONDS:
            return max(1.0, left)
        return self._under_way.get((job.kind, job.key), 0.0) - time.monotonic()

    def _owed(self, kind: Kind) -> list[Job]:
        """What a kind owes. Where that cannot be told, to find out is what it owes, and no other
        kind waits for that: one file that could not be read ended each worker, and nobody knew.
        """
        looking = Job(kind.name, "", None, int(time.time()))
        try:
            found = kind.owed(self._store, self._around)
        except SavepointError as failure:
            self._unlisted[kind.name] = failure
            return [looking]
        self._unlisted.pop(kind.name, None)
        if self._box.attempt(looking) is not None:
            self._box.done(looking)
        return found

    def attempts(self, kind: Kind) -> list[Done]:
        """One at each job of a kind."""
        return [self.attempt(kind, job) for job in self._owed(kind)]

    def attempt(self, kind: Kind, job: Job) -> Done:
        """One, and note what came of it. Raises DiskError."""
        deadline = min(self._until, time.monotonic() + kind.seconds)
        try:
            if kind.name in self._unlisted:
                raise self._unlisted[kind.name]
            again = kind.do(self._store, job, self._around, deadline)
        except SavepointError as failure:
            self._box.failed(job, failure, int(time.time()))
            done = Done(job, failure)
        else:
            self._box.done(job)
            done = Done(job, None, again)
        self._under_way[job.kind, job.key] = time.monotonic() + (done.again or 0.0)
        if done.again is None:
            self._tell(done)
        return done
