"""References: how often what a session touched is what an entry speaks of."""

from __future__ import annotations

from succession.dynasty import words
from succession.dynasty.constants import (
    REF_TIER1_SCORE,
    REF_TIER2_SCORE,
    REF_TIER3_MIN_KEYWORDS,
    REF_TIER3_SCORE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Life
    from succession.dynasty.session.calls import Call

Hits = dict[str, tuple[str, ...]]  # id of an entry → paths, and WORDS, that counted in the session
WORDS = "*"  # no path: words count once a session


def score(
    entries: Iterable[tuple[Entry, Life]],
    calls: Iterable[Call],
    hits: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, int], Hits]:
    """Points by id for the calls of one session, and its hits with them. With each entry its life:
    only calls after its birth count, of which the one that recorded it is none.

    For an entry each path counts once in a session, by the highest tier alone, and words once.
    """
    points: dict[str, int] = {}
    known = dict(hits)
    every = list(calls)
    for one, life in entries:
        later = [call for call in every if call.time > life.born]
        if not later:  # as at a turn without calls: its text need not be looked through
            continue
        said = words.of(one, life.paths)
        for call in later:
            found, where = _tier(said, call, known.get(one.id, ()))
            if found:
                points[one.id] = points.get(one.id, 0) + found
                known[one.id] = (*known.get(one.id, ()), *where)
    return points, known


def _tier(said: words.Mentions, call: Call, counted: tuple[str, ...]) -> tuple[int, list[str]]:
    """Points of one call, and what is counted by them."""
    total, where = 0, []
    for path in call.paths:
        if path in counted or path in where:
            continue
        points = REF_TIER1_SCORE if said.names(path) else 0
        points = points or (REF_TIER2_SCORE if said.shares_folder(path) else 0)
        if points:
            total += points
            where.append(path)
    is_counted = total or WORDS in counted or any(path in counted for path in call.paths)
    if not is_counted and len(said.words & call.words) >= REF_TIER3_MIN_KEYWORDS:
        return REF_TIER3_SCORE, [WORDS]
    return total, where
