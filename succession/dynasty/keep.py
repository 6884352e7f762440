"""The dynasty on disk: everything is read under its lock, and everything written as one.

dynasty/<branch>/{day,dusk,dawn,day-briefing}.md, dynasty.json        a branch
dynasty/{vault,deviants,lineage}.md, archive.jsonl, sessions.json     the project
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from savepoint.capture.memory import LOCK, is_writable
from savepoint.core.errors import DynastyError
from savepoint.core.named import NamedTuple
from savepoint.store import durable
from savepoint.store.layout import DYNASTY
from savepoint.store.locks import Lock
from succession.dynasty import journal
from succession.dynasty.files import meta, seen
from succession.dynasty.files.entry import to_bytes, to_text
from succession.dynasty.journal import Change
from succession.dynasty.state import State, begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.store.layout import Store
    from succession.dynasty.branch import Branch
    from succession.dynasty.files.seen import Seen

PAGES = {"day": "day.md", "dusk": "dusk.md", "dawn": "dawn.md", "briefing": "day-briefing.md"}
META = "dynasty.json"
SHARED = {"vault": "vault.md", "deviants": "deviants.md"}
LINEAGE, ARCHIVE, SESSIONS = "lineage.md", "archive.jsonl", "sessions.json"
MISSING = "is missing beside what it rules"


class Held(NamedTuple):
    """A dynasty as it was read, under its lock."""

    folder: str
    branch: str  # its folder in that one
    exists: bool  # False: it is one that begins with what is written
    state: State
    seen: Seen
    files: dict[str, bytes | None]  # as read
    aside: tuple[str, ...]  # people's edits that were found between two files of a change

    def write(
        self, after: State, seen_after: Seen, lineage: bytes = b"", archive: bytes = b""
    ) -> list[str]:
        """Replace what differs, append the rest; returns what people's edits were set aside as.
        Raises BusyError (a file was edited since it was read), DiskError.
        """
        files = {**_files(self.branch, after), SESSIONS: seen_after.to_bytes()}
        if seen_after == self.seen:
            del files[SESSIONS]
        replaced = {
            path: data for path, data in files.items() if data != (self.files.get(path) or b"")
        }
        appended = {path: data for path, data in ((LINEAGE, lineage), (ARCHIVE, archive)) if data}
        if not appended and replaced.keys() <= {SESSIONS}:
            if replaced:
                self.remember(seen_after)
            return []
        return journal.commit(self.folder, self.files, Change(replaced, appended))

    def remember(self, seen_after: Seen) -> None:
        """Which sessions there are, alone and not synced: it can be lost. Raises DiskError."""
        durable.replace_cache(os.path.join(self.folder, SESSIONS), seen_after.to_bytes())


def folder_of(store: Store) -> str:
    """Where the dynasty of a store is."""
    return os.path.join(store.path, DYNASTY)


def is_there(store: Store) -> bool:
    """Has anything ever been remembered here?"""
    return os.path.isdir(folder_of(store))


@contextmanager
def opened(
    store: Store, branch: Branch, now: int, deadline: float, *, whole: bool = False
) -> Iterator[Held]:
    """The dynasty of a branch, while nobody else changes it. deadline: of time.monotonic().
    whole: with lineage and archive, which may be long. On a disk that nobody can write to it is
    read without a lock.

    Raises BusyError, DynastyError (a file is damaged), UnsupportedFormatError, DiskError.
    """
    folder = folder_of(store)
    if not is_writable(folder if os.path.isdir(folder) else store.path):
        yield _read(folder, branch, now, None, whole=whole)
        return
    durable.make_directories(folder)
    with Lock(os.path.join(folder, LOCK), deadline):
        aside = journal.recover(folder)
        yield _read(folder, branch, now, tuple(aside), whole=whole)


def _read(
    folder: str, branch: Branch, now: int, aside: tuple[str, ...] | None, *, whole: bool
) -> Held:
    """aside: as in Held; None: a change that was cut short could not be finished."""
    names = [*(f"{branch.folder}/{name}" for name in (*PAGES.values(), META)), *SHARED.values()]
    names += [LINEAGE, ARCHIVE, SESSIONS] if whole else [SESSIONS]
    if aside is None:
        files = journal.read(folder, names)
    else:
        files = {name: journal.content(folder, name) for name in names}
    held = files[f"{branch.folder}/{META}"]
    path = os.path.join(folder, branch.folder, META)
    pages = {field: files[f"{branch.folder}/{name}"] for field, name in PAGES.items()}
    if held is not None:
        known = meta.load(held, path)
        texts = {field: to_text(data or b"") for field, data in pages.items()}
        state = State(known, texts["day"], texts["dusk"], texts["dawn"])
        state = state._replace(briefing=texts["briefing"])
    elif any(pages.values()):
        raise DynastyError(f"{path}: {MISSING}")
    else:
        state = begun(branch.name, now, branch.commit)
    shared = {field: to_text(files[name] or b"") for field, name in SHARED.items()}
    state = state._replace(
        vault=shared["vault"],
        deviants=shared["deviants"],
        lineage=files.get(LINEAGE) or b"",
        archive=files.get(ARCHIVE) or b"",
    )
    sessions = seen.load(files[SESSIONS])
    return Held(folder, branch.folder, held is not None, state, sessions, files, aside or ())


def _files(branch: str, state: State) -> dict[str, bytes]:
    pages = {f"{branch}/{name}": to_bytes(getattr(state, field)) for field, name in PAGES.items()}
    shared = {name: to_bytes(getattr(state, field)) for field, name in SHARED.items()}
    return {**pages, **shared, f"{branch}/{META}": state.meta.to_bytes()}
