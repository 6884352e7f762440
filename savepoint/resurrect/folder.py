"""What a savepoint holds beside the conversation, as files in one folder that appears whole:

files/…                   loaded files by their path in the project; files/outside/… the others
files.json                all loaded files: how they were known, and why some are not here
session_current.json      the project's, as it was; else session_state.json
changes/{staged,working,untracked}/…, changes.json
git_state.json            commit, branch, status
memory/…                  what the dynasty remembers, and what threads still owe
conversation.jsonl        only where it does not come back as a session of its own

Nobody else may read any of it; a program stays one for its owner.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from savepoint.core import snapshot
from savepoint.core.errors import SelectorError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.resurrect import members, moves, native
from savepoint.resurrect.members import as_list, as_object
from savepoint.store import savepoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.resurrect.members import Member
    from savepoint.resurrect.moves import Move
    from savepoint.store.durable import Folder
    from savepoint.store.layout import Store

FILES, STATE, GIT, CHANGES, MEMORY, CONVERSATION = (
    "files",
    "state",
    "git",
    "changes",
    "memory",
    "conversation",
)
MEMORIES = {"succession": b"succession", "handoff": b"handoff"}  # part → name below memory/


class Staged(NamedTuple):
    """A folder that waits to be put into its place."""

    move: Move
    files: int  # loaded files in it
    bytes: int
    left_out: tuple[tuple[str, str], ...]  # path and reason


def stage(
    store: Store, document: dict[str, Json], parts: frozenset[str], output: tuple[str, str]
) -> Staged:
    """Write the parts asked for into a folder beside its place. output: the real path of the folder
    that it is to be in, and its name there.

    Raises SelectorError (there is nothing of them), TamperedError (a file is missing, is not as it
    was saved, or has a name that none can have), MalformedError, DiskError.
    """
    root, name = output
    move = moves.beside(root, (), name, folder=True)
    try:
        with move.place() as at, at.folder(os.fsencode(move.temporary)) as folder:
            writing = _Writing(store, document, folder)
            writing.run(parts)
    except BaseException:
        move.drop()
        raise
    return Staged(move, writing.files, writing.bytes, tuple(writing.left_out))


class _Writing:
    """Fills a folder."""

    def __init__(self, store: Store, document: dict[str, Json], folder: Folder) -> None:
        self._store = store
        self._document = document
        self._folder = folder
        self._stored = savepoints.files(store, document)
        self.files = self.bytes = 0
        self.left_out: list[tuple[str, str]] = []

    def run(self, wanted: frozenset[str]) -> None:
        for part, write in self._parts().items():
            if part in wanted:
                write()
        if not os.listdir(self._folder.path):
            raise SelectorError(f"the savepoint has no {' and no '.join(sorted(wanted))}")

    def _parts(self) -> dict[str, Callable[[], None]]:
        return {
            CONVERSATION: self._conversation,
            FILES: self._loaded,
            STATE: self._state,
            CHANGES: self._changes,
            GIT: self._git,
            MEMORY: self._memory,
        }

    def _of(self, part: str) -> list[StoredFile]:
        return [one for one in self._stored if one.part == part]

    def _loaded(self) -> None:
        found = members.loaded(self._of("files"))
        self._take(b"files", found.files)
        self.files += len(found.files)
        self.left_out += found.left_out
        listed = savepoints.listed(self._store, self._document, ("loaded_files",))
        self._json(b"files.json", {path: _bare(one) for path, one in as_object(listed).items()})

    def _state(self) -> None:
        current = self._of("state")
        if current:
            self._take(b"", [members.Member((b"session_current.json",), current[0])])
        else:
            self._json(b"session_state.json", self._document["session_state"])

    def _changes(self) -> None:
        at = ("git_state", "changes")
        entries, deleted, excluded = (
            savepoints.listed(self._store, self._document, (*at, name))
            for name in ("files", "deleted", "excluded")
        )
        listed = [as_object(one) for one in as_list(entries)]
        found = members.changed(self._of("changes"), listed)
        self._take(b"changes", found.files)
        self.left_out += found.left_out
        told: dict[str, Json] = {
            "files": [_bare(one) for one in listed],
            "deleted": deleted,
            "excluded": excluded,
            "omitted": snapshot.member_at(self._document, (*at, "omitted")),
        }
        self._json(b"changes.json", told)

    def _git(self) -> None:
        state = as_object(self._document["git_state"])
        self._json(b"git_state.json", {n: one for n, one in state.items() if n != "changes"})

    def _memory(self) -> None:
        for part, name in MEMORIES.items():
            for one in self._of(part):
                self._take(b"memory", [members.Member((name,), one)])

    def _conversation(self) -> None:
        for one in self._of("conversation"):
            self._take(b"", [members.Member((b"conversation.jsonl",), one)])
        self._take(b"conversation", members.companions(self._of("companion")).files)

    def _take(self, below: bytes, found: list[Member]) -> None:
        head = (below,) if below else ()
        for one in found:
            placed = one._replace(parts=(*head, *one.parts))
            self.bytes += native.write_member(self._store, self._folder, placed)

    def _json(self, name: bytes, value: Json) -> None:
        """For people: indented; what is not UTF-8 in it stays escaped."""
        data = json.dumps(value, indent=2).encode() + b"\n"
        if self._folder.new(name, [data]) is None:
            raise TamperedError(f"two files of the savepoint have the name {name!r}")


def _bare(value: Json) -> dict[str, Json]:
    found = as_object(value)
    bare = {name: member for name, member in found.items() if name != "segments"}
    return {**bare, "stored": found["segments"] is not None}
