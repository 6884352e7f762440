"""What the dynasty costs at the start of a session and at the turn that passes it on."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from bench import turn
from bench.measure import Series
from bench.reign import Reigns
from bench.report import Row, bound
from bench.scale import START
from bench.world import settle
from succession.dynasty.constants import DAY_ENTRY_LIMIT
from succession.dynasty.keep import LINEAGE

if TYPE_CHECKING:
    from bench.scale import Scale
    from bench.world import World


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
    start = home.fire("SessionStart", session, source="startup")
    if b"# Briefing" not in start.output():
        raise SystemExit("bench: error: the session is not told what the dynasty remembers")
    passing = world.python(turn.__file__, home.path, world.project)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        shutil.rmtree(folder)
        shutil.copytree(f"{folder}.as-it-was", folder)
        settle(scale.rest, home)
        round_of.add("bare", world.python("-c", "pass").seconds())
        round_of.add("start", start.seconds())
        before = os.path.getsize(os.path.join(folder, LINEAGE))
        round_of.add("passing", passing.seconds())
        if os.path.getsize(os.path.join(folder, LINEAGE)) == before:
            raise SystemExit("bench: error: nothing was passed on")
    name = f"{DAY_ENTRY_LIMIT} entries in Day, Dusk full, {scale.lineage:,} in the lineage"
    return [
        bound(f"SessionStart, {name}", series, "start", "bare", START, 4),
        bound(f"succession without its savepoint, {name}", series, "passing", "bare", START, 8),
    ]
