"""`savepoint show`: what is in a savepoint, or one part of it, byte for byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.view import summary
from savepoint.core import snapshot
from savepoint.core.errors import SelectorError, UsageError
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json

Part = Literal["conversation", "files", "state", "git", "changes", "memory"]

_ONLY = "One part, as it was saved."

# Of a path that was changed in several ways, the version that the agent saw on disk comes first.
_KINDS = ("working", "untracked", "staged")


def show(
    selector: options.Selector = "latest",
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A file of --only files or changes.", show_default=False
        ),
    ] = "",
    only: Annotated[Part | None, typer.Option("--only", help=_ONLY, show_default=False)] = None,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what is in a savepoint, or one part of it.

    With --only, conversation and state, and files and changes with a PATH, are written byte for
    byte as they were saved.
    """
    if path and only not in {"files", "changes"}:
        raise UsageError("a path goes with --only files or --only changes")
    if path and as_json:
        raise UsageError("a file goes out as it is, not as JSON", hint="leave out --json")
    at = place.find(project, instance)
    one = savepoints.find(at.paths, selector)
    opened = _Opened(at, one)
    if only is None:
        opened.summarise(as_json=as_json)
    elif path:
        opened.write_file(only, path)
    elif as_json:
        terminal.document(opened.part(only))
    else:
        opened.write_part(only)


class _Opened:
    """A savepoint whose snapshot is the one that was signed."""

    def __init__(self, at: place.Place, one: Record) -> None:
        self._at = at
        self._record = one
        self._document = savepoints.open_snapshot(at.paths, one).document
        self._files = savepoints.files(at.store, self._document)

    def summarise(self, *, as_json: bool) -> None:
        """For a person, or the same as data."""
        value = summary.of(
            self._at.paths, self._record, self._document, self._files, place.around()
        )
        if as_json:
            terminal.document(value)
        else:
            summary.tell(self._at.title, value)

    def part(self, only: Part) -> Json:
        """What is known of one part."""
        store, document = self._at.store, self._document
        if only == "conversation":
            return summary.conversation(document, self._files)
        if only == "files":
            return list(summary.files(store, document))
        if only == "changes":
            return list(summary.changes(store, document))
        if only == "git":
            return summary.git(store, document)
        if only == "state":
            return document["session_state"]
        return self._memories()

    def write_part(self, only: Part) -> None:
        """The part's bytes where it has some, else its JSON; files as a table."""
        if only == "conversation":
            self._write(self._single("conversation"))
        elif only == "files":
            summary.tell_files(summary.files(self._at.store, self._document))
        elif only == "changes":
            summary.tell_files(summary.changes(self._at.store, self._document))
        elif only == "state" and self._document["session_current"] is not None:
            self._write(self._single("state"))
        else:
            terminal.document(self.part(only))

    def write_file(self, only: Part, path: str) -> None:
        """The bytes of a file of the list."""
        found = [one for one in self._files if one.part == only and _is_named(one, path)]
        if not found:
            raise self._lacks(path, f"`savepoint show {self._record.seq} --only {only}` lists them")
        if only == "changes":
            found.sort(key=lambda one: _KINDS.index(self._kind(one)))
        if len(found) > 1:
            terminal.note(f"{path} was staged in another version; this is the one on disk")
        self._write(found[0])

    def _memories(self) -> Json:
        """What it holds of what outlives a session. Raises SelectorError where that is nothing."""
        held = [one for one in self._files if one.part in {"succession", "handoff"}]
        if not held:
            raise self._lacks("memory", "nothing had been remembered when it was made")
        return [{"what": one.part, "path": one.path, "bytes": one.bytes} for one in held]

    def _kind(self, file: StoredFile) -> str:
        changed = [one for one in self._files if one.part == "changes"]
        return str(summary.changes(self._at.store, self._document)[changed.index(file)]["kind"])

    def _single(self, part: str) -> StoredFile:
        found = [one for one in self._files if one.part == part]
        if not found:
            raise self._lacks(part, f"`savepoint show {self._record.seq}` says why")
        return found[0]

    def _lacks(self, what: str, hint: str) -> SelectorError:
        return SelectorError(f"savepoint {self._record.seq} holds no {what}", hint=hint)

    def _write(self, file: StoredFile) -> None:
        for piece in savepoints.content(self._at.store, file):
            terminal.write(piece)


def _is_named(file: StoredFile, path: str) -> bool:
    """By the bytes of its path: not every name is UTF-8."""
    return snapshot.path_bytes(file.path) == os.fsencode(path)
