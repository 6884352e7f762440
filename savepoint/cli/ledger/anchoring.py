"""Jobs `anchor`: the bridge from the worker, which knows no ledger, to submission, which knows no
worker. And all kinds of jobs together, as worker and commands do them.

What speaks to a ledger is imported when a job is due, not before: it costs half a second.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.gitlayer.repository import Repository
from savepoint.store import config, journal, savepoints
from savepoint.work import log
from savepoint.work.jobs import Job
from savepoint.work.kinds import for_git

if TYPE_CHECKING:
    from anchor_service.desk import Desk
    from anchor_service.queue import Queue
    from savepoint.core.ledger import Ledger
    from savepoint.gitlayer.remote.push import Progress
    from savepoint.store.config import Config
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.jobs import Kind, Surroundings
    from savepoint.work.worker import Done

NAME = "anchor"


def all_kinds(progress: Progress = lambda _done, _total: None, *, look: bool = False) -> list[Kind]:
    """Those for git and the local store, and the ledger's behind the push: nothing waits for it.

    look: ask the ledger also where nothing is owed, since it may have begun anew.
    """
    return [*for_git(progress), Anchor(look=look)]


def told(store: Store, done: Done, around: Surroundings) -> None:
    """A line about one attempt. What became of an entry, submission has written already."""
    if done.job.kind != NAME or done.job.seq is None:
        log.told(store, done, around)
        return
    if done.failure is None:
        return
    with suppress(SavepointError):
        word = "QUEUED_FOR_BLOCKCHAIN" if done.failure.retry else "BLOCKCHAIN_FAILED"
        paths, now = store.instance(done.job.key), int(time.time())
        journal.became(paths, now, done.job.seq, word, done.failure.message)


class Anchor:
    """One job an instance that git has a savepoint of which no verified entry covers."""

    name = NAME
    seconds = limits.ANCHOR_SECONDS

    def __init__(self, *, look: bool = False) -> None:
        self._looks: dict[bytes, int] = {}
        self._look = look
        self._standing: dict[str, bool] = {}  # slug → is what is verified still there?
        self._ledgers: dict[tuple[str, bytes], Ledger] = {}  # of choice and program

    def owed(self, store: Store, around: Surroundings) -> list[Job]:
        """What is to be anchored; nothing where there is no ledger. Raises MalformedError,
        DiskError.
        """
        chosen = config.load(store)
        if chosen.ledger is None:
            return []
        found = [self._of(paths, chosen, around) for paths in savepoints.instances(store)]
        return [one for one in found if one is not None]

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> float | None:
        """Bring the newest savepoint of the instance a step on. Raises SavepointError."""
        from anchor_service import submission
        from anchor_service.queue import Queue

        chosen = config.load(store)
        if chosen.ledger is None:
            return None
        with Queue(store) as queue:
            desk = self._desk(store, chosen, queue, around, deadline)
            again = submission.advance(desk, store.instance(job.key), deadline)
        self._standing.pop(job.key, None)
        return again

    def _desk(
        self, store: Store, chosen: Config, queue: Queue, around: Surroundings, deadline: float
    ) -> Desk:
        from anchor_service import desk

        program = desk.program_of(chosen)
        return desk.Desk(
            store=store,
            chosen=chosen,
            ledger=self._ledger(store, chosen.ledger or "", program, deadline),
            program=program,
            payer=desk.payer_of(store, chosen),
            repo=Repository.of(store, around.environment, deadline),
            queue=queue,
            looks=self._looks,
        )

    def _ledger(self, store: Store, choice: str, program: bytes, deadline: float) -> Ledger:
        """One for the process: a new one asks each endpoint anew which cluster it is of."""
        from anchor_service import ledgers

        known = self._ledgers.get((choice, program))
        if known is None:
            known = ledgers.open_ledger(choice, store=store, program=program)
            self._ledgers[choice, program] = known
        known.bound(deadline)
        return known

    def _of(self, paths: InstancePaths, chosen: Config, around: Surroundings) -> Job | None:
        from anchor_service import queue, targets

        choice, program = chosen.ledger or "", chosen.program
        rows = queue.held(paths, queue.rows(paths.store, paths.slug), choice, program)
        under_way = queue.open_row(rows, choice, program)
        last = queue.newest_verified(rows, choice, program)
        try:
            repo = around.repository(paths.store)
            target = targets.newest(paths, repo, last.record_seq if last else 0)
        except SavepointError:  # the jobs for git say what is wrong with it
            target = None
        if target is not None:
            return Job(NAME, paths.slug, target.record.seq, target.since)
        if under_way is not None:
            return Job(NAME, paths.slug, under_way.record_seq, under_way.since)
        if last is None or not self._look or self._is_standing(paths, chosen, last.genesis):
            return None
        return Job(NAME, paths.slug, last.record_seq, last.since)

    def _is_standing(self, paths: InstancePaths, chosen: Config, genesis: str) -> bool:
        """Is the cluster still that one? Asked once; one that does not answer is not asked here."""
        if paths.slug not in self._standing:
            from anchor_service import ledgers
            from savepoint.core import spelling

            until = time.monotonic() + limits.LEDGER_REPLY_SECONDS
            self._standing[paths.slug] = True
            with suppress(SavepointError):
                ledger = ledgers.open_ledger(
                    chosen.ledger or "", store=paths.store, program=None, deadline=until
                )
                self._standing[paths.slug] = spelling.base58(ledger.genesis()) == genesis
        return self._standing[paths.slug]
