"""`savepoint fsck`: recompute everything of the store, and repair what can be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.fsck import Checked
    from savepoint.store.repair import Repaired

_COLOURS = {"damage": "red", "warning": "yellow"}


def fsck(
    mend: Annotated[
        bool, typer.Option("--repair", help="Accept what is lost, by signed records.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Recompute everything, and list what is wrong.

    Damage sets the exit code; warnings and notes do not.
    """
    from savepoint.store import fsck as checker
    from savepoint.store import repair

    store = place.store_of(place.folder(project))  # also one whose config is damaged
    done: list[Repaired] = []
    if mend:
        deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
        done = repair.repair(store, int(time.time()), deadline)
    with terminal.progress("checking") as progress:
        found = checker.fsck(store, time.time(), progress)
    if as_json:
        repaired: list[Json] = [
            {"instance": one.slug, "seq": one.record.seq, "what": one.what} for one in done
        ]
        terminal.document({**found.to_json(), "repaired": repaired})
    else:
        _print(found, done)
    raise typer.Exit(found.exit_code)


def _print(found: Checked, done: list[Repaired]) -> None:
    for repaired in done:
        terminal.say(f"repaired  {repaired.slug}: {repaired.what} (record {repaired.record.seq})")
    for item in found.items:
        rule = f"{item.rule}: " if item.rule else ""
        terminal.say(f"{item.severity:8}  {rule}{item.detail}", _COLOURS.get(item.severity))
        if item.hint:
            terminal.say(f"          {terminal.arrow()} {item.hint}")
    counts = ", ".join(f"{name} {count}" for name, count in found.counts.items())
    verdict = "no damage" if found.exit_code == 0 else "DAMAGED"
    terminal.say(f"{verdict} in store {found.store.id}: {counts}")
    if found.hint:
        terminal.advise(found.hint)
