"""Is a dynasty whole: that on disk, that of a savepoint; and which savepoint has it so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.capture.memory import LOCK, is_kept, is_writable
from savepoint.core.errors import DiskError, DynastyError, MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store import savepoints
from savepoint.store.layout import DYNASTY
from savepoint.store.locks import Lock
from succession import bundles
from succession.dynasty import journal, keep
from succession.dynasty.constants import SAVEPOINTS_LOOKED_AT
from succession.dynasty.files import meta
from succession.dynasty.files.entry import to_text
from succession.dynasty.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.record import Record
    from savepoint.core.snapshot import StoredFile
    from savepoint.store.layout import InstancePaths, Store

_PAGES = (*keep.PAGES.values(), keep.META)
_PROJECT = (*keep.SHARED.values(), keep.LINEAGE, keep.ARCHIVE, keep.SESSIONS)

_LINKED = "put the folder itself there: a savepoint lacks what lies behind a link"


class Newest(NamedTuple):
    """A savepoint that has a branch's dynasty whole."""

    paths: InstancePaths
    record: Record


class Reign(NamedTuple):
    """What a branch has in its tiers."""

    branch: str
    ruler: str  # `Claude 3`
    entries: int  # of Day and Dusk


def reigns(store: Store) -> list[Reign]:
    """That of each branch, as it is on disk. Raises DynastyError, UnsupportedFormatError,
    DiskError.
    """
    folder = keep.folder_of(store)
    listed = _listed(folder) if os.path.isdir(folder) else []
    branches = [os.path.dirname(one) for one in listed if os.path.basename(one) == keep.META]
    return [_reign(folder, one) for one in branches]


def _reign(folder: str, branch: str) -> Reign:
    named, day, dusk = (
        f"{branch}/{name}" for name in (keep.META, keep.PAGES["day"], keep.PAGES["dusk"])
    )
    files = journal.read(folder, [named, day, dusk])
    known = meta.load(files[named] or b"", f"{DYNASTY}/{named}")
    state = State(known, to_text(files[day] or b""), to_text(files[dusk] or b""))
    held = {one.id for one in (*state.day_page.entries, *state.dusk_page.entries)}
    return Reign(known.branch, known.title(), len(held))


def is_own(path: str) -> bool:
    """Is it a file of ours, by its path below the dynasty's folder?"""
    folder, _, name = path.rpartition("/")
    return name in _PAGES if folder and "/" not in folder else path in _PROJECT


def _lies_below_own(path: str) -> bool:
    """A folder in the place of a file of ours would be a dynasty that nothing can read."""
    parts = path.split("/")
    return any(is_own("/".join(parts[:end])) for end in range(1, len(parts)))


def unpack(data: bytes) -> dict[str, bytes]:
    """Path below the dynasty's folder → bytes, as between two changes. Raises MalformedError."""
    files = bundles.unpack(data)
    if not all(map(is_kept, files)) or any(map(_lies_below_own, files)):
        raise MalformedError("it names what no memory can hold")
    return journal.replayed(files)


def broken(files: Mapping[str, bytes]) -> dict[str, SavepointError]:
    """What is wrong with a branch, by its folder: nothing can be read there."""
    found: dict[str, SavepointError] = {}
    for path in files:
        folder = path.partition("/")[0]
        if not is_own(path) or path == folder or folder in found:
            continue
        named = f"{folder}/{keep.META}"
        told = f"{DYNASTY}/{named}"
        try:
            if named in files:
                meta.load(files[named], told)
            elif any(files.get(f"{folder}/{name}") for name in keep.PAGES.values()):
                found[folder] = DynastyError(f"{told}: {keep.MISSING}")
        except SavepointError as failure:
            found[folder] = failure
    return found


def damage(store: Store, deadline: float) -> list[tuple[str, SavepointError]]:
    """What cannot be read of the dynasty on disk, each with its branch's folder, which is empty
    for what all branches share. deadline: of time.monotonic(). Raises BusyError, DiskError.
    """
    folder = keep.folder_of(store)
    if not os.path.isdir(folder):
        return []
    if not is_writable(folder):
        return _damage(folder)
    with Lock(os.path.join(folder, LOCK), deadline):
        return _damage(folder)


def of_changes(folder: str) -> list[str]:
    """The journal and the staged files that are there. Raises DiskError."""
    return [path for path in _listed(folder) if _is_of_a_change(path)]


def newest(store: Store, folder: str) -> Newest | None:
    """The newest savepoint in which that branch is whole, among the last ones of each instance;
    folder: empty for all that it has. What cannot be opened is none.
    """
    seen: set[tuple[object, ...]] = set()
    for paths, one in _latest(store):
        try:
            document = savepoints.open_snapshot(paths, one).document
            held = [it for it in savepoints.files(store, document) if it.part == "succession"]
            if held and held[0].segments not in seen:
                seen.add(held[0].segments)
                if _is_whole(store, held[0], folder):
                    return Newest(paths, one)
        except SavepointError:  # an older one may do
            continue
    return None


def _is_whole(store: Store, file: StoredFile, folder: str) -> bool:
    files = unpack(b"".join(savepoints.content(store, file)))
    faults = broken(files)
    return not faults if not folder else f"{folder}/{keep.META}" in files and folder not in faults


def _latest(store: Store) -> list[tuple[InstancePaths, Record]]:
    """Newest first."""
    every: list[tuple[InstancePaths, Record]] = []
    for paths in savepoints.instances(store):
        try:
            saves = savepoints.records(paths).saves
        except SavepointError:  # another may have it
            continue
        every += [(paths, one) for one in saves[-SAVEPOINTS_LOOKED_AT:]]
    return sorted(every, key=lambda found: (found[1].timestamp, found[1].seq), reverse=True)


def _damage(folder: str) -> list[tuple[str, SavepointError]]:
    found: list[tuple[str, SavepointError]] = []
    files: dict[str, bytes] = {}
    listed = _listed(folder)
    apart = sorted({os.path.dirname(one) for one in listed} - {""})
    linked = [one for one in apart if os.path.islink(os.path.join(folder, one))]
    found += [("", DynastyError(f"{DYNASTY}/{one} is a link", hint=_LINKED)) for one in linked]
    unread = set(linked)  # what is told already
    for path in listed:
        try:
            files[path] = journal.content(folder, path) or b""
        except SavepointError as failure:
            found.append(("", failure))
            unread.add(path.partition("/")[0])
    try:
        files = journal.replayed(files)
    except SavepointError as failure:
        found.append(("", failure))
    return found + [one for one in broken(files).items() if one[0] not in unread]


def _listed(folder: str) -> list[str]:
    """Every path there that is ours or of a change, whatever stands there. Raises DiskError."""
    found = []
    try:
        for name in sorted(os.listdir(folder)):
            inside = os.path.join(folder, name)
            names = os.listdir(inside) if os.path.isdir(inside) else ()
            found += [name, *(f"{name}/{one}" for one in sorted(names))]
    except OSError as failure:
        raise DiskError.of(failure, folder) from failure
    return [one for one in found if is_own(one) or _is_of_a_change(one)]


def _is_of_a_change(path: str) -> bool:
    return path == journal.JOURNAL or os.path.basename(path).startswith(journal.NEXT)
