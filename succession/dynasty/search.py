"""Finding what the tiers no longer show: in the lineage, and among the originals of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple
from succession.dynasty import archive, entry, lineage

if TYPE_CHECKING:
    from succession.dynasty.entry import Entry
    from succession.dynasty.state import State


class Match(NamedTuple):
    """An entry, and where it is."""

    entry: Entry
    where: str


def search(state: State, term: str) -> list[Match]:
    """What has `term` in its text, whatever its case: entries of the lineage, then originals of
    entries that are not there. Without a term the lineage alone.
    """
    wanted = term.casefold()
    found = [
        Match(one.entry, f"lineage of {one.section}, dynasty {one.ruler}, {one.demoted}")
        for one in lineage.parse(entry.to_text(state.lineage))
        if wanted in one.entry.text.casefold()
    ]
    if not term:
        return found
    known = {one.entry.id for one in found}
    latest = {one.entry.id: one for one in archive.read(state.archive)}
    for one in latest.values():
        if one.entry.id not in known and wanted in one.entry.text.casefold():
            place = _place(state, one.entry.id)
            found.append(Match(one.entry, f"original of {one.branch}, {one.ruler}; now in {place}"))
    return found


def _place(state: State, wanted: str) -> str:
    if any(one.id == wanted for one in state.day_page.entries):
        return "Day"
    for number in (1, 2, 3):
        if any(one.id == wanted for one in state.dusk_page.layer(number)):
            return f"Dusk, layer {number}"
    return "no tier of this branch"
