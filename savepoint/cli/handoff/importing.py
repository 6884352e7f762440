"""`savepoint handoff import`: threads out of a savepoint, where the log is damaged or lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits
from savepoint.core.errors import SelectorError
from savepoint.store.files import read_bounded
from succession.handoff import saved

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


def import_threads(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="memory/handoff, as `savepoint resurrect --only memory` gives it."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Also if it ends before what was seen here.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Put the threads of a savepoint back: their log was lost."""
    at = place.find(project)
    data = read_bounded(os.path.abspath(file), limits.HANDOFF_MEMORY_BYTES)
    if data is None:
        raise SelectorError(f"there is no file {file}")
    done = saved.put_back(at.store, data, force=force)
    if as_json:
        lost: Json = {"first": done.lost[0], "last": done.lost[1]} if done.lost else None
        terminal.document({"records": done.records, "aside": list(done.aside), "lost": lost})
        return
    terminal.say(f"the log of threads holds, with {terminal.counted(done.records, 'record')}")
    for path in done.aside:
        terminal.say(f"  set aside: {path}")
    if done.lost:
        first, last = done.lost
        terminal.note(f"lost: records {first} to {last}, which were seen here and are not in it")
