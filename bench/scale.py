"""How much of everything is measured with."""

from __future__ import annotations

from typing import NamedTuple

MB = 10**6  # bytes


class Scale(NamedTuple):
    """Amounts of one run."""

    rounds: int  # of each case, after one that does not count
    session: int  # bytes of a long session
    longest: int  # bytes of a very long one
    typical: int  # bytes of one as most are
    new: int  # bytes that are new at a save
    cycle: int  # saves until the open segment is as full again: 1 MiB / (1 MiB - `new`)
    few: int  # savepoints in a young store
    many: int  # savepoints in an old one
    chain: int  # savepoints of the session that is verified
    rest: float  # seconds that a transcript has been still
    entries: int  # that are awaited on a cluster
    ticks: int  # of a slot there, of 6.25 ms each
    sessions: int  # old ones beside the session
    fires: int  # under load
    lineage: int  # entries that have left the tiers of a dynasty


FULL = Scale(
    rounds=11,
    session=100 * MB,
    longest=1000 * MB,
    typical=2 * MB,
    new=MB,
    cycle=22,
    few=10,
    many=10_000,
    chain=100,
    rest=1.0,
    entries=5,
    ticks=64,
    sessions=500,
    fires=500,
    lineage=10_000,
)
QUICK = Scale(
    rounds=1,
    session=3 * MB,
    longest=6 * MB,
    typical=MB // 2,
    new=MB // 5,
    cycle=2,
    few=3,
    many=12,
    chain=5,
    rest=0.3,
    entries=1,
    ticks=8,
    sessions=10,
    fires=10,
    lineage=100,
)

START = "`python -I -c pass`"


def megabytes(size: int) -> str:
    """`100 MB`, `0.5 MB`."""
    return f"{size / MB:g} MB"
