"""What the agent waits for: each event of its hook, beside what else lies in its folder."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bench.measure import Series
from bench.report import Row, bound
from bench.scale import START, megabytes
from bench.world import settle
from savepoint.core import limits
from savepoint.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.measure import Command
    from bench.scale import Scale
    from bench.world import Home, Transcript, World

_DUE = limits.STOP_GROWTH_BYTES  # bytes that are new, so that Stop saves them
_OLD_BYTES = 20_000  # of an old session
_LONG_AGO = 1_700_000_000  # Unix seconds, before the store began
_AT_ONCE = 4  # sessions that fire under load


class _Event(NamedTuple):
    name: str
    fields: dict[str, object]  # of its payload
    seconds: float  # deadline
    saves: int = 1  # savepoints that it makes of enough that is new

    @property
    def shown(self) -> str:
        told = [str(one) for one in self.fields.values() if isinstance(one, str)]
        return f"{self.name} ({', '.join(told)})" if told else self.name

    def of(self, home: Home, session: Transcript) -> float:
        """Seconds of a fire with something new."""
        return _timed(home, home.fire(self.name, session, **self.fields), self.saves)

    def idle(self, home: Home, session: Transcript) -> float:
        """Seconds of a fire with nothing new."""
        return _timed(home, home.fire(self.name, session, **self.fields), 0)


_EVENTS = (
    _Event("PreCompact", {"trigger": "auto"}, limits.PRECOMPACT_SECONDS),
    _Event("PreCompact", {"trigger": "manual"}, limits.PRECOMPACT_SECONDS),
    _Event("PostCompact", {"trigger": "auto"}, limits.SESSION_SECONDS, 0),
    _Event("SessionStart", {"source": "resume"}, limits.SESSION_SECONDS),
    _Event("UserPromptSubmit", {}, limits.SESSION_SECONDS),
    _Event("Stop", {"stop_hook_active": False}, limits.SESSION_SECONDS),
    _Event("SessionEnd", {"reason": "other"}, limits.SESSION_END_SECONDS),
)


def events(world: World, scale: Scale) -> list[Row]:
    """Each event with something new and with nothing new; then once more, when many old sessions
    lie beside the session.
    """
    home, session = world.new_home(), world.new_session(scale.session)
    home.savepoint("create", "--transcript", session.path).seconds()
    alone = _each(world, scale, home, session)
    for _ in range(scale.sessions):
        old = world.new_session(_OLD_BYTES)
        os.utime(old.path, (_LONG_AGO, _LONG_AGO))
    beside = _each(world, scale, home, session)
    size = megabytes(scale.session)
    crowd = f"beside {scale.sessions} old sessions"
    return [
        *_rows(alone, size),
        *_rows(beside, f"{size}, {crowd}"),
        _given_up_row("fires of these", home),
    ]


def _each(world: World, scale: Scale, home: Home, session: Transcript) -> Series:
    series = Series()
    for round_of in series.rounds(scale.rounds):
        for event in _EVENTS:
            session.grow(_DUE)
            settle(scale.rest, home)
            round_of.add(f"{event.shown} bare", world.python("-c", "pass").seconds())
            round_of.add(event.shown, event.of(home, session))
            home.rest()
            if event.saves:
                round_of.add(f"{event.shown} idle", event.idle(home, session))
    return series


def _rows(series: Series, where: str) -> Iterator[Row]:
    for event in _EVENTS:
        name, bare = event.shown, f"{event.shown} bare"
        if event.saves:
            yield bound(f"{name}, 1 MiB new; {where}", series, name, bare, START, None)
            yield bound(f"{name}, nothing new", series, f"{name} idle", bare, START, 3)
        else:
            yield bound(f"{name}; {where}", series, name, bare, START, 3)


def load(world: World, scale: Scale) -> list[Row]:
    """Many fires while the processors have other work, and sessions of one project fire at once."""
    home = world.new_home()
    sessions = [world.new_session(scale.session // _AT_ONCE) for _ in range(_AT_ONCE)]
    for one in sessions:
        home.savepoint("create", "--transcript", one.path).seconds()
    settle(scale.rest, home)
    each = -(-scale.fires // _AT_ONCE)
    with _busy(world), ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = list(pool.map(lambda one: _fires(home, one, each, scale.new // 4), sessions))
    fires = sorted(fire for part in parts for fire in part)
    late = sum(fire.share > 1 for fire in fires)
    home.rest()
    slowest = fires[-1]
    return [
        Row(
            f"{len(fires)} fires of {_AT_ONCE} sessions under load, past their deadline",
            f"{late}; the slowest took {slowest.share:.0%} of its time ({slowest.event})",
            "",
            late,
            0,
        ),
        _given_up_row("the same", home),
    ]


class _Fire(NamedTuple):
    share: float  # of its deadline
    event: str


def _fires(home: Home, session: Transcript, count: int, step: int) -> list[_Fire]:
    """All events in turn, with something new each time."""
    fires = []
    for number in range(count):
        event = _EVENTS[number % len(_EVENTS)]
        session.grow(step)
        seconds = home.fire(event.name, session, **event.fields).seconds()
        fires.append(_Fire(seconds / event.seconds, event.shown))
    return fires


def _timed(home: Home, command: Command, new: int) -> float:
    """As Home.timed; but what a deadline leaves, on a machine that is busy enough, a later fire
    saves, and then they are not counted any more.
    """
    before = home.saves()
    seconds = command.seconds()
    made = home.saves() - before
    if made != new and not _given_up(home):
        raise SystemExit(f"bench: error: {made} savepoints where {new} belong: {command.args}")
    return seconds


def _given_up_row(what: str, home: Home) -> Row:
    count = _given_up(home)
    return Row(f"{what}, given up by the hook itself", f"{count}", "", count, 0)


def _given_up(home: Home) -> int:
    """Fires that said in hook.log why they could not do all of it."""
    path = layout.Home(home.path).hook_log
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return file.read().count(b"\n")


@contextmanager
def _busy(world: World) -> Iterator[None]:
    """A process for each processor that never rests."""
    command = world.python("-c", "while True: pass")
    busy = [command.start() for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()
