"""The three layers of Dusk: the shift by one, and their limits.

Entries move down whole: their text is what a layer shows of them, never less of a Why. Decrees do
not move at all, and count.
"""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from succession.dynasty.constants import LAYER3_SUCCESSIONS, LAYER_CHARS, LAYERS_MAX
from succession.dynasty.files.entry import OBSERVATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Life

Layers: TypeAlias = "tuple[tuple[Entry, ...], tuple[Entry, ...], tuple[Entry, ...]]"
LINEAGE = "lineage"
POINTER = "<!-- in the lineage: "  # stays in a layer for an entry that is longer than the layer


class Move(NamedTuple):
    """What became of one entry, and why; `run --dry-run` shows them."""

    entry: Entry
    source: str  # `Day`, `Layer 1`, …
    target: str  # `Layer 1`, …, LINEAGE, `vault`, `dropped`, `decree`
    why: str


class Shifted(NamedTuple):
    """Layers after a rule, and what the rule did."""

    layers: Layers
    moves: tuple[Move, ...] = ()
    notes: tuple[str, ...] = ()  # for the report
    pointers: tuple[tuple[int, str], ...] = ()  # lines that stay in a layer for what left it


def lines(one: Entry, layer: int) -> int:
    """Lines that an entry takes in a layer, as written, empty ones not counted."""
    return sum(1 for line in one.in_layer(layer).split("\n") if line.strip())


def shift(layers: Layers, lives: Mapping[str, Life], ruler: int) -> Shifted:
    """Each layer one down, and out of the third what nobody referenced for three successions.
    `ruler`: the outgoing one.
    """
    moves = []
    kept: list[list[Entry]] = [[one for one in layer if one.decree] for layer in layers]
    third = [one for one in layers[2] if not one.decree]
    for one in third:
        since = lives[one.id].layer3_since if one.id in lives else None
        age = ruler - since if since is not None else 0
        if one.ref == 0 and age >= LAYER3_SUCCESSIONS:
            moves.append(Move(one, "Layer 3", LINEAGE, f"no reference for {age} successions"))
    gone = {move.entry.id for move in moves}
    kept[2] = [one for one in layers[2] if one.id not in gone]
    for upper in (1, 0):
        shifted = [one for one in layers[upper] if not one.decree]
        kept[upper + 1] += shifted
        names = f"Layer {upper + 1}", f"Layer {upper + 2}"
        moves += [Move(one, *names, "a succession older") for one in shifted]
    return Shifted((tuple(kept[0]), tuple(kept[1]), tuple(kept[2])), tuple(moves))


def limit(layers: Layers, lives: Mapping[str, Life]) -> Shifted:
    """The layers within their limits: what is too much moves on, from the first to the second to
    the third to the lineage.
    """
    result = Shifted(layers)
    for number in (1, 2, 3):
        result = _limited(result, number, lives)
    return result


def _limited(before: Shifted, number: int, lives: Mapping[str, Life]) -> Shifted:
    most, layer = LAYERS_MAX[number - 1], before.layers[number - 1]
    is_last = number == len(LAYERS_MAX)
    source, target = f"Layer {number}", LINEAGE if is_last else f"Layer {number + 1}"
    too_long = [one for one in layer if not one.decree and _is_too_long(one, number)]
    left = [one for one in layer if one not in too_long]
    moves = [Move(one, source, LINEAGE, f"longer than {source} may be") for one in too_long]
    pointers = [(number, _pointer(one, number)) for one in too_long]
    total = sum(lines(one, number) for one in left)
    chars = sum(len(one.in_layer(number)) for one in left if not one.decree)
    victims = sorted((one for one in left if not one.decree), key=lambda one: _rank(one, lives))
    over: list[Entry] = []
    for one in victims:
        if total <= most and chars <= LAYER_CHARS:
            break
        over.append(one)
        total -= lines(one, number)
        chars -= len(one.in_layer(number))
    why = f"over what {source} may hold, score"
    moves += [Move(one, source, target, f"{why} {one.ref}") for one in over]
    moved = {one.id for one in over}
    changed = list(before.layers)
    changed[number - 1] = tuple(one for one in left if one.id not in moved)
    if not is_last:
        changed[number] += tuple(one for one in left if one.id in moved)
    notes = [f"decrees alone take {total} of {most} lines of {source}"] if total > most else []
    return Shifted(
        (changed[0], changed[1], changed[2]),
        (*before.moves, *moves),
        (*before.notes, *notes),
        (*before.pointers, *pointers),
    )


def _is_too_long(one: Entry, layer: int) -> bool:
    """Does it fit into no layer of that size, alone?"""
    return lines(one, layer) > LAYERS_MAX[layer - 1] or len(one.in_layer(layer)) > LAYER_CHARS


def _rank(one: Entry, lives: Mapping[str, Life]) -> tuple[int, bool, int]:
    """Who goes first: the lowest score, observations, the oldest; else as they stand."""
    life = lives.get(one.id)
    return one.ref, one.kind != OBSERVATION, life.born if life else 0


def _pointer(one: Entry, layer: int) -> str:
    return f"{POINTER}[{one.kind}] {one.title} ({lines(one, layer)} lines) -->"
