"""`savepoint export`: a savepoint as one JSON file, with everything inlined."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from savepoint.cli import options, place, terminal
from savepoint.core.errors import OutputExistsError
from savepoint.store import durable, savepoints

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 20  # bytes read at once


def export(
    selector: options.Selector = "latest",
    *,
    output: options.OutputFile,
    force: options.Force = False,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write a savepoint as one JSON file, with everything inlined."""
    from savepoint.resurrect.onefile import one_file

    at = place.find(project, instance)
    one = savepoints.find(at.paths, selector)
    target = place.output(output)
    with terminal.progress("exporting") as progress:
        written = _write(target, one_file(at.paths, one), progress, force=force)
    if as_json:
        terminal.document(
            {"seq": one.seq, "file": target, "bytes": written.size, "sha256": written.sha256}
        )
    else:
        terminal.say(f"savepoint {one.seq} of {at.title} in {target}: {written.size} bytes")


class _Written(NamedTuple):
    size: int
    sha256: str


def _write(
    target: str, pieces: Iterator[bytes], progress: terminal.Progress, *, force: bool
) -> _Written:
    """The whole file appears under its name, or nothing does."""
    folder, name = os.path.split(target)
    hashed = hashlib.sha256()
    size = 0
    with durable.NewFile(folder) as new:
        for piece in pieces:
            new.write(piece)
            hashed.update(piece)
            size += len(piece)
            progress(size, None)
        written = _Written(size, hashed.hexdigest())
        if force:
            new.replace(name)
        elif not new.create(name) and _sha256(target) != written.sha256:
            raise OutputExistsError(f"{target} exists and differs")
    durable.sync_directory(folder)
    return written


def _sha256(path: str) -> str:
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()
