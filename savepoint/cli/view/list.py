"""`savepoint list`: the savepoints of an instance, as a table or as lines of descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import layer3
from savepoint.cli.view import graph
from savepoint.cli.view.folded import folded
from savepoint.core import spelling
from savepoint.core.errors import UsageError
from savepoint.store import savepoints
from savepoint.work import layer2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.cli.ledger.layer3 import Layer3
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.work.layer2 import Layer2

_HASH_DIGITS = 12  # shown; 8 select
_HEADS = (">SEQ", "TIME", "TRIGGER", "SESSION", ">TOKENS", ">USED", "STATUS", "SNAPSHOT")
_ALIGNED = [head.startswith(">") for head in _HEADS]


def list_savepoints(
    all_records: Annotated[
        bool, typer.Option("--records", help="Also the records that are no savepoints.")
    ] = False,
    as_graph: Annotated[
        bool, typer.Option("--graph", help="Draw which savepoint each one comes from.")
    ] = False,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """List the savepoints, newest last.

    The first is number 2: record 1 is the birth of the instance, which --records shows.
    """
    if as_graph and as_json:
        raise UsageError("--graph is a drawing, --json is data", hint="`from` has the graph")
    at = place.find(project, instance)
    known = savepoints.records(at.paths)
    shown = known.all if all_records else known.saves
    if known.unreadable:
        lines = terminal.counted(known.unreadable, "line")
        terminal.note(f"{lines} of the index cannot be read: `savepoint verify` says why")
    is_whole = not place.note_lost(at)
    git = layer2.layer2(at.paths, known.saves, place.around())
    chain = layer3.layer3(at.paths, at.config, known.saves)
    if as_json:
        from savepoint.cli.shapes.savepoints import Listing
        from savepoint.cli.shapes.shape import shaped

        value: Json = {"savepoints": _folded(shown, git, chain)}
        terminal.document(shaped(Listing, value))
    elif as_graph and not instance and savepoints.others(at.paths):
        _draw_all(at, all_records=all_records)
    elif not shown:
        if is_whole:
            hint = savepoints.nothing(at.paths, "latest").hint
            terminal.note(f"{at.title} has no savepoint yet; {hint}")
    elif as_graph:
        _draw([(one, _row(one, git, chain)) for one in shown], _ALIGNED)
    else:
        terminal.table(_HEADS, [_row(one, git, chain) for one in shown])
    others = (
        "" if instance or as_graph or not shown else savepoints.told(savepoints.others(at.paths))
    )
    if others:
        terminal.note(f"in this store are also {others}: --graph shows all")
    if not instance:
        place.note_absent(at)


def _draw_all(at: place.Place, *, all_records: bool) -> None:
    """The tree of all instances of the store: a successor's savepoints come from another's."""
    drawn = []
    for paths in savepoints.instances(at.store):
        known = savepoints.records(paths)
        git = layer2.layer2(paths, known.saves, place.around())
        chain = layer3.layer3(paths, at.config, known.saves)
        born = [one for one in known.all if one.kind == "restore"]
        shown = known.all if all_records else known.saves or born
        drawn += [(one, [place.title(paths), *_row(one, git, chain)]) for one in shown]
    drawn.sort(key=lambda pair: pair[0].timestamp)
    _draw(drawn, [False, *_ALIGNED])


def _draw(drawn: list[tuple[Record, list[str]]], aligned: list[bool]) -> None:
    """Records in the order of time, each with the cells of its line."""
    rows = terminal.columns([cells for _, cells in drawn], aligned)
    labels = {one.hash: row for (one, _), row in zip(drawn, rows, strict=True)}
    fancy = terminal.speaks(graph.FANCY)
    shown = [one for one, _ in drawn]
    for line in graph.draw(shown, lambda one: labels[one.hash], fancy=fancy):
        terminal.say(line)


def _folded(
    shown: list[Record], git: Mapping[int, Layer2], chain: Mapping[int, Layer3]
) -> list[Json]:
    return [folded(one, git.get(one.seq), chain.get(one.seq)) for one in shown]


def _row(one: Record, git: Mapping[int, Layer2], chain: Mapping[int, Layer3]) -> list[str]:
    body = one.body
    if one.kind != "save":
        return [str(one.seq), _time(one), one.kind, "", "", "", "", ""]
    percent = body["context_utilization_percent"]
    return [
        str(one.seq),
        _time(one),
        str(body["trigger"]),
        str(body["session_id"])[:8],
        str(body["tokens_used_this_session"] or ""),
        "" if percent is None else f"{percent} %",
        _status(one, git[one.seq], chain[one.seq]),
        _hash(one),
    ]


def _hash(one: Record) -> str:
    """Enough of the snapshot hash to select by; digits alone would be a sequence number."""
    digits = one.snapshot_hash[:_HASH_DIGITS]
    return f"sha256:{digits}" if digits.isdigit() else digits


def _status(one: Record, git: Layer2, chain: Layer3) -> str:
    """What became of it, in one word a layer, and whether something is missing in it."""
    on_ledger = "" if chain.status == layer3.DISABLED else f", {chain.status}"
    whole = "" if one.body["consciousness_preserved"] else ", incomplete"
    return f"{git.status}{on_ledger}{whole}"


def _time(one: Record) -> str:
    return spelling.time_text(one.timestamp)
