"""When a succession is suggested. Three conditions, each with its reason in words."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from succession.dynasty.constants import (
    DAY_ENTRY_LIMIT,
    SESSIONS_BEFORE_SUCCESSION,
    STALE_RATIO_THRESHOLD,
    STALE_SESSIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Meta


class Trigger(NamedTuple):
    """A condition that holds."""

    name: str  # entries | sessions | stale: what `decline` holds for
    reason: str


def fired(entries: Sequence[Entry], meta: Meta) -> tuple[Trigger, ...]:
    """The conditions that hold for a Day."""
    found = []
    total, sessions = len(entries), meta.sessions_since_succession
    if total > DAY_ENTRY_LIMIT:
        found.append(Trigger("entries", f"Day has >{DAY_ENTRY_LIMIT} entries ({total})"))
    if sessions >= SESSIONS_BEFORE_SUCCESSION:
        found.append(Trigger("sessions", f"{sessions} sessions since last succession"))
    own = [one for one in entries if is_own(one, meta)]
    stale = sum(is_stale(one, meta) for one in own)
    if own and stale / len(own) >= STALE_RATIO_THRESHOLD:
        percent = stale * 100 // len(own)
        found.append(Trigger("stale", f"{percent}% of entries are stale ({stale}/{len(own)})"))
    return tuple(found)


def is_own(one: Entry, meta: Meta) -> bool:
    """Was it recorded in this reign? What was drawn, or copied from Dusk, came with it: a Day of
    nothing else was stale by itself, and ran one succession after the other.
    """
    life = meta.lives.get(one.id)
    return life is not None and not life.drawn and life.ruler == meta.current


def is_stale(one: Entry, meta: Meta) -> bool:
    """Not referenced in this reign, and two counted sessions old: not what was written just now."""
    is_old = is_own(one, meta) and meta.sessions - meta.lives[one.id].session >= STALE_SESSIONS
    return is_old and one.ref == 0


def reason(triggers: Sequence[Trigger]) -> str:
    """All reasons in one line."""
    return "; ".join(one.reason for one in triggers)
