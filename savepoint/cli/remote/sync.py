"""`savepoint sync`: do now what the worker would do, and say what came of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import anchoring
from savepoint.cli.remote import accepting, remotes
from savepoint.core import limits
from savepoint.core.errors import BusyError, DeadlineError, SavepointError, UsageError
from savepoint.gitlayer.remote import remote_url
from savepoint.work import start, worker

if TYPE_CHECKING:
    from savepoint.cli.remote.accepting import Acceptance
    from savepoint.core.strict_json import Json
    from savepoint.work.jobs import Job, Kind
    from savepoint.work.worker import Done

PENDING = 3  # exit code: nothing failed, and not all is done
_WORST_FIRST = (22, 30, 31)  # exit codes of failures; then as they came


def sync(
    wait: Annotated[
        bool, typer.Option("--wait", help="Try again until all is done, or the time is over.")
    ] = False,
    timeout: Annotated[
        float | None, options.value("--timeout", "S", "Seconds, at most.", "none")
    ] = None,
    accept_remote: Annotated[
        bool,
        typer.Option(
            "--accept-remote",
            help="Go on from what the remote has now: lost branches are pushed again, its own "
            "records of this key are taken over. Nothing is lost here, or forced there.",
        ),
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Commit, push and anchor now what is left."""
    if timeout is not None and not timeout > 0:
        raise UsageError("--timeout is a number of seconds above 0")
    at = place.find(project)
    until = time.monotonic() + (timeout or limits.COMMAND_SECONDS)
    remotes.refuse_lost(at, until)
    accepted = accepting.accept(at, until) if accept_remote else []
    with terminal.progress("pushing") as progress:
        ran = _Rounds(at, anchoring.all_kinds(progress, look=True), until, wait=wait)
        ran.run()
    if ran.is_under_way:
        start.start(at.store, place.around())  # the one that made way for us looks no more
    ran.raise_failure()
    if at.config.remote is not None and not ran.left:
        with terminal.busy("asking the remote"):
            remotes.check(at, until)
    shown: dict[str, Json] = {
        "store": at.store.id,
        "accepted": [one.to_json() for one in accepted],
        "done": [_job(one.job) for one in ran.done],
        "left": [_job(one) for one in ran.left],
    }
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.store import Synced

        terminal.document(shaped(Synced, shown))
    else:
        _print(at, accepted, ran)
    if ran.left:
        raise typer.Exit(PENDING)


class _Rounds:
    """Everything that is owed, tried until it is done, fails, or the time is over."""

    def __init__(self, at: place.Place, kinds: list[Kind], until: float, *, wait: bool) -> None:
        self._at = at
        self._kinds = kinds
        self._until = until
        self._wait = wait
        self._around = place.around()
        self.done: list[Done] = []
        self.left: list[Job] = []
        self._failed: list[SavepointError] = []
        self._again: list[float | None] = []  # when there may be news of what is under way

    def run(self) -> None:
        """Raises BusyError, MalformedError, DiskError."""
        pause = float(limits.RETRY_FIRST_SECONDS)
        while True:
            went_on = self._round()
            self.left = self._owed()
            if not self.left or time.monotonic() >= self._until:
                return
            if went_on and not self._failed:
                continue
            if not self._wait or not all(one.retry for one in self._failed):
                return
            soon = min((one for one in self._again if one is not None), default=pause)
            time.sleep(max(0.0, min(soon, self._until - time.monotonic())))
            if self._failed:
                pause = min(2 * pause, limits.SYNC_LONGEST_PAUSE_SECONDS)

    @property
    def is_under_way(self) -> bool:
        """Will there be news of something without anybody's doing?"""
        return any(one is not None for one in self._again)

    def raise_failure(self) -> None:
        """The worst of what failed last; the others are told beside it. That the time was too short
        is no failure: it is what is left.
        """
        late = [one for one in self._failed if isinstance(one, BusyError | DeadlineError)]
        first, *others = [*sorted(set(self._failed) - set(late), key=_place), None]
        for one in (*others, *late):
            if one is not None:
                terminal.note(one.message)
        if first is not None:
            raise first

    def _round(self) -> bool:
        """Try everything once. Was something done?"""
        try:
            tried = worker.try_now(
                self._at.store, self._kinds, self._around, until=self._until, tell=self._tell
            )
        except BusyError as failure:  # a worker is at it
            self._failed, self._again = [failure], []
            return False
        self._failed = [one.failure for one in tried if one.failure is not None]
        self._again = [one.again for one in tried]
        finished = [one for one in tried if one.failure is None and one.again is None]
        self.done += finished
        return bool(finished)

    def _tell(self, done: Done) -> None:
        anchoring.told(self._at.store, done, self._around)

    def _owed(self) -> list[Job]:
        return [job for kind in self._kinds for job in kind.owed(self._at.store, self._around)]


def _place(failure: SavepointError) -> int:
    """A remote that went another way is worse than one that cannot be reached."""
    code = failure.exit_code
    return _WORST_FIRST.index(code) if code in _WORST_FIRST else len(_WORST_FIRST)


def _job(job: Job) -> Json:
    return {"kind": job.kind, "key": job.key, "seq": job.seq}


def _print(at: place.Place, accepted: list[Acceptance], ran: _Rounds) -> None:
    for one in accepted:
        terminal.say(f"{one.slug}: {one.done.what}")
    pushed = [one.job for one in ran.done if one.job.kind == "push"]
    where = remote_url.parse(at.config.remote, "/").shown if at.config.remote else ""
    for job in pushed:
        terminal.say(f"pushed up to savepoint {job.seq} of {job.key} to {where}")
    anchored = [one.job for one in ran.done if one.job.kind == anchoring.NAME]
    for job in anchored:
        terminal.say(f"anchored up to savepoint {job.seq} of {job.key} on {_ledger(at)}")
    for job in ran.left:
        terminal.say(f"left: {job.kind} of {job.key}", "yellow")
    if not pushed and not anchored and not ran.left:
        told = f"{where} has everything" if where else "everything is committed"
        terminal.say(told)
    if not where:
        terminal.note("there is no remote; `savepoint config remote URL` chooses one")


def _ledger(at: place.Place) -> str:
    from savepoint.cli.ledger import config

    return config.name_of(at.config.ledger) or ""
