"""The name that a ruler has earned: which words its Day is full of."""

from __future__ import annotations

from succession.dynasty.constants import EPITHET_KEYWORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from succession.dynasty.files.entry import Entry

BRIEF, JOURNEYMAN = "the Brief", "the Journeyman"
_MANY = 3  # epithets that tie: no one of them is earned


def of(entries: Sequence[Entry]) -> str:
    """The epithet of an outgoing Day."""
    if not entries:
        return BRIEF
    text = "\n".join(one.text for one in entries).lower()
    scores = {
        name: sum(text.count(word) for word in words) for name, words in EPITHET_KEYWORDS.items()
    }
    best = max(scores.values())
    winners = [name for name, score in scores.items() if score == best]
    return JOURNEYMAN if best == 0 or len(winners) >= _MANY else winners[0]
