"""`savepoint succession import`: another tool's dynasty, or that of a savepoint."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, terminal
from savepoint.cli.succession import dynasty
from savepoint.core.errors import MalformedError, UsageError
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.cli.succession.dynasty import Here

_MEMORIES = ("", "succession", "memory/succession")  # where the file is below what was named
_HINT = "name the folder that `savepoint resurrect SELECTOR --only memory` wrote"


def import_(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A folder with day.md or dynasty/, or what resurrect --only memory wrote.",
        ),
    ],
    force: Annotated[
        bool,
        typer.Option("--force", help="Of a savepoint's: replace what differs here; it is kept."),
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Take over another tool's dynasty, or that of a savepoint."""
    where = dynasty.here(project)
    below = (os.path.join(os.path.abspath(path), one).rstrip("/") for one in _MEMORIES)
    file = next(filter(os.path.isfile, below), "")
    if file:
        _put_back(where, file, force=force, as_json=as_json)
    elif os.path.isdir(path):
        _take(where, os.path.realpath(path), as_json=as_json)
    else:
        raise UsageError(f"{path} is no folder, and no dynasty", hint=_HINT)


def _put_back(where: Here, path: str, *, force: bool, as_json: bool) -> None:
    from succession.dynasty.constants import BUNDLE_BYTES
    from succession.dynasty.joining import bundle

    store, branch = where.at.store, where.branch.folder
    try:
        data = read_bounded(path, BUNDLE_BYTES) or b""
    except MalformedError as failure:
        raise UsageError(failure.message, hint=_HINT) from None
    with dynasty.way_back(store, branch):
        back = bundle.put_back(store, data, branch, force=force)
    dynasty.tell_aside(back.aside)
    for one in back.left:
        terminal.note(one)
    if as_json:
        terminal.document(
            {
                "changed": [*back.changed],
                "kept": back.kept or None,
                "left": [*back.left],
                "stays": [dynasty.entry_json(one, "day") for one in back.stays],
            }
        )
        return
    terminal.say(f"the dynasty is back: {terminal.counted(len(back.changed), 'file')} changed")
    for entry in back.stays:
        terminal.say(f"Stays, in Day, since it is not in that one: {entry.id[:8]} {entry.title}")
    if back.kept:
        terminal.say(f"What was replaced: {back.kept}")


def _take(where: Here, folder: str, *, as_json: bool) -> None:
    from succession.dynasty.joining import adopt

    found = adopt.find(folder, where.at.project, where.branch)
    with dynasty.opened(where, whole=True) as held:
        done, lineage = adopt.take(held, found, int(time.time()))
        dynasty.tell_aside(held.write(done.state, held.seen, lineage=lineage, archive=done.archive))
    texts = done.state.day_page.texts() + done.state.dusk_page.texts()
    if as_json:
        ruler = done.state.meta.title()
        terminal.document({"ruler": ruler, "taken": [*sorted(found.files)], "texts": list(texts)})
        return
    terminal.say(f"{done.state.meta.title()} rules: {', '.join(sorted(found.files))} taken over")
    for text in texts:
        terminal.note(f"no entry, kept as it is: {text[:80]}")
