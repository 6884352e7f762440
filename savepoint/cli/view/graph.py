"""The lines of descent of savepoints, drawn with one column for each line that goes on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from savepoint.core.record import Record

FANCY = "●│├╮─┤╭┼"
_PLAIN = str.maketrans(FANCY, "*||\\-|/+")


def draw(
    records: Sequence[Record], label: Callable[[Record], str], *, fancy: bool
) -> Iterator[str]:
    """A line a record, in their order, and one before each that leaves the line of another."""
    lanes = _Lanes(Counter(map(_parent, records)))
    drawn: list[tuple[str, str]] = []
    for one in records:
        own = str(one.body.get("snapshot_hash", one.hash))
        *branch, marks = lanes.place(own, _parent(one))
        drawn += [(line, "") for line in branch]
        drawn.append((marks, label(one)))
    width = max((len(marks) for marks, _ in drawn), default=0)
    for marks, text in drawn:
        shown = marks if fancy else marks.translate(_PLAIN)
        yield f"{shown.ljust(width)}  {text}".rstrip()


def _parent(one: Record) -> str:
    """The snapshot hash of the savepoint that it comes from; empty without one."""
    origin = one.body.get("from")
    return str(origin["snapshot_hash"]) if isinstance(origin, dict) else ""


class _Lanes:
    """The columns: each stands at a savepoint that others still come from, or is free."""

    def __init__(self, children: Counter[str]) -> None:
        self._children = children  # still to be drawn, by parent
        self._at: list[str] = []
        self._ended = -1  # the column whose line ended just now

    def place(self, own: str, parent: str) -> list[str]:
        """The marks of a savepoint's line, behind those of its branching off, if it does."""
        drawn = []
        self._children[parent] -= 1
        column = self._at.index(parent) if parent and parent in self._at else None
        if column is None:
            column = self._free()
        elif self._children[parent]:  # the last one goes straight on, the others branch off
            origin, column = column, self._free()
            drawn.append(self._branch(origin, column))
        self._at[column] = own
        drawn.append(self._row(column))
        self._ended = -1
        if not self._children[own]:
            self._at[column], self._ended = "", column
        return drawn

    def _free(self) -> int:
        """Not the column of the line above, which would look as if it went on."""
        for column, at in enumerate(self._at):
            if not at and column != self._ended:
                return column
        self._at.append("")
        return len(self._at) - 1

    def _row(self, column: int) -> str:
        marks = ["│" if at else " " for at in self._at]
        marks[column] = "●"
        return " ".join(marks).rstrip()

    def _branch(self, origin: int, column: int) -> str:
        left, right = sorted((origin, column))
        marks = []
        for n, at in enumerate(self._at):
            inside = left < n < right
            mark = ("┼" if at else "─") if inside else ("│" if at else " ")
            marks.append(mark + ("─" if left <= n < right else " "))
        to_right = column > origin
        marks[origin] = ("├" if to_right else "┤") + marks[origin][1]
        marks[column] = ("╮" if to_right else "╭") + marks[column][1]
        return "".join(marks).rstrip()
