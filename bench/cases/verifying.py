"""What `verify` costs."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from bench import references
from bench.grow import grow
from bench.measure import Series
from bench.report import Row, bound
from bench.scale import MB
from bench.world import settle

if TYPE_CHECKING:
    from bench.scale import Scale
    from bench.world import Home, World

PENDING = 3  # exit code of `verify` where savepoints are not in git yet


def verify(world: World, scale: Scale) -> list[Row]:
    """Every savepoint of one long session, proven: on this disk alone, and with git's copies."""
    empty, home, twice = world.new_home(), world.new_home(), world.new_home()
    for one, commits in ((home, False), (twice, True)):
        session = world.new_session(0)
        step = scale.session // scale.chain
        grow(world, one, session, scale.chain, step, commits=commits)
    opening = world.python(references.__file__, "open", *_packs_folder(home))
    command = ("verify", "--all")
    series = Series()
    settle(scale.rest)
    for round_of in series.rounds(scale.rounds):
        round_of.add("open", opening.seconds())
        round_of.add("local", home.savepoint(*command, code=PENDING).seconds())
        round_of.add("git", twice.savepoint(*command).seconds())
    local = home.savepoint(*command, code=PENDING)
    read = local.bytes_read() - empty.savepoint(*command, code=None).bytes_read()
    evidence = sum(size for path, size in home.files().items() if _is_evidence(path))
    name = f"`verify --all`, {scale.chain} savepoints of one session of {scale.session // MB} MB"
    against = "decompressing and hashing all that is stored"
    return [
        bound(f"{name}, not in git yet", series, "local", "open", against, 2),
        Row(
            "the same, bytes read",
            f"{read / MB:.1f} MB",
            f"packs, snapshots, index: {evidence / MB:.1f} MB",
            read / evidence,
            1.01,
        ),
        Row("the same, peak memory", f"{local.peak_bytes() / MB:.0f} MB", "", None, None),
        bound(f"{name}, and all of it in git", series, "git", "open", "the same", None),
    ]


def _packs_folder(home: Home) -> list[str]:
    return glob.glob(os.path.join(home.path, "stores", "*", "objects"))


def _is_evidence(path: str) -> bool:
    return path.endswith((".pack", "/precompact-savepoint.jsonl")) or "/precompact-saves/" in path
