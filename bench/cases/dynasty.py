"""What the dynasty costs at the start of a session and at the turn that passes it on."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

from bench import turn
from bench.measure import Series
from bench.reign import Reigns
from bench.report import Row, bound
from bench.scale import START
from bench.world import settle
from succession.dynasty.constants import DAY_ENTRY_LIMIT
from succession.dynasty.keep import LINEAGE

if TYPE_CHECKING:
    from bench.measure import Command
    from bench.scale import Scale
    from bench.world import Home, Transcript, World

_BRIEFING = b"# Briefing"


def succession(world: World, scale: Scale) -> list[Row]:
    """With a full Day, a full Dusk and a long lineage: a session starts; the dynasty is passed on,
    each time from the same state.
    """
    home, session = world.new_home(), world.new_session(scale.typical)
    home.savepoint("create", "--transcript", session.path).seconds()
    reigns = Reigns(world)
    reigns.pass_on(scale.lineage)
    folder = reigns.write(home)
    shutil.copytree(folder, f"{folder}.as-it-was")
    start = _start(world, home, session)
    passing = world.python(turn.__file__, "run", home.path, world.project)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        shutil.rmtree(folder)
        shutil.copytree(f"{folder}.as-it-was", folder)
        settle(scale.rest, home)
        round_of.add("bare", world.python("-c", "pass").seconds())
        round_of.add("start", start.command.seconds())
        before = os.path.getsize(os.path.join(folder, LINEAGE))
        round_of.add("passing", passing.seconds())
        if os.path.getsize(os.path.join(folder, LINEAGE)) == before:
            raise SystemExit("bench: error: nothing was passed on")
    name = f"{DAY_ENTRY_LIMIT} entries in Day, Dusk full, {scale.lineage:,} in the lineage"
    return [
        bound(f"{start.what}, {name}", series, "start", "bare", START, 4),
        bound(f"succession without its savepoint, {name}", series, "passing", "bare", START, 8),
    ]


class _Start(NamedTuple):
    what: str
    command: Command


def _start(world: World, home: Home, session: Transcript) -> _Start:
    """The hook, if it tells the briefing; else only what makes it, in a process of its own."""
    fire = home.fire("SessionStart", session, source="startup")
    if _BRIEFING in fire.output():
        return _Start("SessionStart", fire)
    own = world.python(turn.__file__, "start", home.path, world.project)
    if _BRIEFING not in own.output():
        raise SystemExit("bench: error: there is no briefing")
    return _Start("what SessionStart is to tell and the hook does not yet, by itself", own)
