"""`savepoint handoff import`: threads out of a savepoint, where the log is damaged or lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits
from savepoint.core.errors import MalformedError, SelectorError, UsageError
from savepoint.store.files import read_bounded
from succession.handoff import saved

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

_HINT = "`savepoint resurrect SELECTOR --only memory` writes one: memory/handoff in its folder"
_MARK = b'"files":['  # of a memory, in its last line


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
    data = _read(file)
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


def _read(file: str) -> bytes:
    """A file that a person names. One that never was a memory is no damage. Raises UsageError,
    SelectorError, DiskError.
    """
    try:
        data = read_bounded(os.path.realpath(file), limits.HANDOFF_MEMORY_BYTES)
    except MalformedError as failure:  # a folder, a pipe, too large: nothing of it was read
        raise UsageError(failure.message, hint=_HINT) from None
    if data is None:
        raise SelectorError(f"there is no file {file}", hint=_HINT)
    if _MARK not in data:
        raise UsageError(f"{file} holds no threads out of a savepoint", hint=_HINT)
    return data
