"""handoff.md: what a successor, or a person, reads first. What matters most comes first, so that a
part of it helps as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import spelling
from savepoint.core.named import NamedTuple
from succession.handoff.ledger import BINDING, OFFER, WORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from savepoint.core.record import Record
    from succession.handoff.ledger import Item, Thread

_HEADINGS = {
    OFFER: "Open offers",
    WORK: "Open work",
    BINDING: "What names this thread elsewhere, to be re-pointed",
}


class Passing(NamedTuple):
    """Who passes to whom, on which savepoint."""

    thread: Thread
    title: str  # its own, from now on
    successor: str  # id
    successor_title: str
    items: Sequence[Item]
    savepoint: Record
    witnesses: Mapping[str, str]  # witness → verdict
    unverified: Sequence[str]
    now: int


def text(told: Passing) -> bytes:
    """The page."""
    return ("\n".join(_lines(told)) + "\n").encode("utf-8", "backslashreplace")


def _lines(told: Passing) -> Iterator[str]:
    yield f"# Handoff: {_line(told.successor_title)}"
    yield ""
    yield f"From {_line(told.title)} ({told.thread.id}) to {told.successor}."
    yield "This page orders nothing: what may be done is what the ledger still shows open."
    for kind, heading in _HEADINGS.items():
        items = [one for one in told.items if one.kind == kind]
        yield ""
        yield f"## {heading}"
        yield ""
        yield from [_item(one) for one in items] or ["None."]
    yield ""
    yield "## How to go on"
    yield ""
    yield "1. `savepoint handoff accept` takes over what is above, and says what stays behind."
    yield "2. `savepoint handoff status` says whether new work may start."
    yield "3. `savepoint handoff go ID` acts on an offer; which one, the owner says."
    one = told.savepoint
    yield ""
    yield "## Where everything is"
    yield ""
    yield f"- Savepoint {one.seq} of {one.instance}: {one.body['snapshot_hash']}"
    for name, verdict in told.witnesses.items():
        yield f"- Witness {name}: {verdict}"
    if told.unverified:
        yield f"- Allowed although nobody could check it: {', '.join(told.unverified)}"
    yield f"- Session {told.thread.session or 'unknown'}, project {_line(told.thread.project)}"
    yield f"- Written {spelling.time_text(told.now)}; receipt.json beside it is signed."


def _item(one: Item) -> str:
    said = f"- **{one.id}** {_line(one.text)}"
    if one.binding is None:
        return f"{said} (begun)" if one.begun else said
    if one.binding.driver == "none":
        return f"{said} (stays behind: {_line(one.binding.reason)})"
    named = " ".join(filter(None, (one.binding.place, one.binding.key)))
    return f"{said} ({one.binding.driver}: {_line(named)}; it says {_line(one.value or '')})"


def _line(text: str) -> str:
    """On one line, whatever it holds: a text must not look like a heading of ours."""
    return " ".join(text.split())
