"""Finding what the tiers no longer show: in the lineage, and among the originals of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple
from succession.dynasty.files import archive, entry, lineage

if TYPE_CHECKING:
    from succession.dynasty.files.entry import Entry
    from succession.dynasty.state import State


class Match(NamedTuple):
    """An entry, and where it is."""

    entry: Entry
    where: str


def search(state: State, term: str) -> list[Match]:
    """What has `term` in its text, whatever its case: entries of the lineage, then the newest such
    text of every other entry that was ever recorded. Without a term the lineage alone.
    """
    wanted = term.casefold()
    ancestors = list(lineage.parse(entry.to_text(state.lineage)))
    found = [
        Match(one.entry, f"lineage of {one.section}, dynasty {one.ruler}, {one.demoted}")
        for one in ancestors
        if wanted in one.entry.text.casefold()
    ]
    if not term:
        return found
    known, gone = {one.entry.id for one in found}, {one.entry.id for one in ancestors}
    kept = archive.read(state.archive)
    last = {one.entry.id: one for one in kept}
    matching = {one.entry.id: one for one in kept if wanted in one.entry.text.casefold()}
    for one in matching.values():
        if one.entry.id not in known:
            place = "the lineage" if one.entry.id in gone else _place(state, one.entry.id)
            text = "original" if one == last[one.entry.id] else "an earlier text"
            found.append(Match(one.entry, f"{text} of {one.branch}, {one.ruler}; now in {place}"))
    return found


def _place(state: State, wanted: str) -> str:
    if any(one.id == wanted for one in state.day_page.entries):
        return "Day"
    for number in (1, 2, 3):
        if any(one.id == wanted for one in state.dusk_page.layer(number)):
            return f"Dusk, layer {number}"
    return "no tier of this branch"
