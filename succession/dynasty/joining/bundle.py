"""The dynasty out of a savepoint, put back: checked before, and nothing that is there is lost."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.capture.memory import LOCK
from savepoint.core import limits, spelling
from savepoint.core.errors import (
    DynastyError,
    MalformedError,
    OutputExistsError,
    SavepointError,
    UsageError,
)
from savepoint.core.named import NamedTuple
from savepoint.store import durable
from savepoint.store.locks import Lock
from succession.dynasty import journal, keep, whole
from succession.dynasty.files import meta
from succession.dynasty.joining import merge, rejoin
from succession.dynasty.journal import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from savepoint.store.layout import Store
    from succession.dynasty.files.entry import Entry

_MERGED = {keep.ARCHIVE: merge.archive, keep.LINEAGE: merge.lineage}  # what only grows
_HINT = "`savepoint resurrect SELECTOR --only memory` writes one"


class Back(NamedTuple):
    """What became of a dynasty that was put back."""

    changed: tuple[str, ...]  # paths below its folder
    kept: str  # the folder with what was replaced; empty: nothing was
    aside: tuple[str, ...]  # edits that came in between, as `journal.commit`
    left: tuple[str, ...]  # what was not put back, and why
    stays: tuple[Entry, ...]  # what the file does not know, of the tiers here: it is in Day


def put_back(store: Store, data: bytes, branch: str, *, force: bool) -> Back:
    """The dynasty of a memory file in the place of what is there. branch: the folder of the one
    that must be whole in it, empty for none; another that is not stays as it is. What the file does
    not know stays, entries of tiers in Day; archive and lineage grow, and what is replaced is kept
    in a folder of its own.

    Raises UsageError (no such file), DynastyError (damaged), UnsupportedFormatError,
    OutputExistsError (a file differs, or it is another dynasty, without `force`), BusyError,
    DiskError; then nothing is changed.
    """
    files = _files(data)
    faults = whole.broken(files)
    fault = faults.get(branch)
    if fault is not None:
        told = f"what is to be put back is damaged: {fault.message}"
        raise DynastyError(told) if isinstance(fault, DynastyError) else fault
    left = [f"{one} is not put back: {failure.message}" for one, failure in faults.items()]
    files = {path: one for path, one in files.items() if path.partition("/")[0] not in faults}
    folder = keep.folder_of(store)
    durable.make_directories(folder)
    with Lock(os.path.join(folder, LOCK), time.monotonic() + limits.LOCK_WAIT_SECONDS):
        found, torn = _recover(folder, force=force)
        before = {path: journal.content(folder, path) for path in _looked_at(files)}
        change, stays = _change(before, files)
        taken = {path: held for path in change.replace if (held := before[path]) is not None}
        if not force:
            _ask(before, files, taken)
        kept = _keep(store, {**torn, **taken})
        if torn:
            durable.remove(os.path.join(folder, journal.JOURNAL))
            journal.recover(folder)
        aside = journal.commit(folder, before, change) if any(change) else []
        added, not_added = _beside(folder, files)
    changed = sorted({*change.replace, *change.append, *added})
    return Back(tuple(changed), kept, (*found, *aside), (*left, *not_added), stays)


def _files(data: bytes) -> dict[str, bytes]:
    try:
        files = whole.unpack(data)
    except DynastyError:
        raise
    except MalformedError as failure:
        raise UsageError(failure.message, hint=_HINT) from None
    if not any(map(whole.is_own, files)):
        raise UsageError("that memory file holds no dynasty", hint=_HINT)
    return files


def _recover(folder: str, *, force: bool) -> tuple[list[str], dict[str, bytes]]:
    """Finish a change that was cut short: the edits that were set aside, and, where its journal is
    damaged, what is there of it.
    """
    try:
        return journal.recover(folder), {}
    except DynastyError:
        if not force:
            raise
    torn = {path: journal.content(folder, path) for path in whole.of_changes(folder)}
    return [], {path: data for path, data in torn.items() if data is not None}


def _looked_at(files: Mapping[str, bytes]) -> list[str]:
    """Every path that its dynasty could have."""
    pages = [f"{one}/{name}" for one in _branches(files) for name in keep.PAGES.values()]
    shared = [*keep.SHARED.values(), *_MERGED]
    return [*dict.fromkeys([*filter(whole.is_own, files), *pages, *shared])]


def _branches(files: Mapping[str, bytes]) -> list[str]:
    """Folders of those that are in it."""
    paths = (path for path in files if os.path.basename(path) == keep.META and whole.is_own(path))
    return [os.path.dirname(path) for path in paths]


def _change(
    before: Mapping[str, bytes | None], files: Mapping[str, bytes]
) -> tuple[Change, tuple[Entry, ...]]:
    """What is to be written, and the entries that stay."""
    own = {path: files[path] for path in before if path in files}
    added = b""
    stays: tuple[Entry, ...] = ()
    for one in _branches(files):
        pages = (f"{one}/{name}" for name in keep.PAGES.values())
        # a savepoint before the first succession has no Dusk: one that stayed would have all twice
        own |= {path: b"" for path in pages if path not in own and before[path]}
        joined = rejoin.joined(before, files, one, int(time.time()))
        own |= joined.files
        added += joined.archive
        stays = (*stays, *joined.stays)
    theirs = {path: own.pop(path, b"") for path in _MERGED}
    theirs[keep.ARCHIVE] += added
    grown = {path: join(before[path] or b"", theirs[path]) for path, join in _MERGED.items()}
    change = Change(
        {path: data for path, data in own.items() if data != before[path]},
        {path: data for path, data in grown.items() if data},
    )
    return change, stays


def _ask(
    before: Mapping[str, bytes | None], files: Mapping[str, bytes], taken: Iterable[str]
) -> None:
    """Raises OutputExistsError where something of somebody's would go, or come in."""
    hint = "--force puts it in its place, keeps what it replaces, and joins archive and lineage"
    theirs = files.get(keep.ARCHIVE, b"")
    if merge.is_foreign(before.get(keep.ARCHIVE) or b"", theirs):
        raise OutputExistsError(f"that is another dynasty, {_whose(files)}", hint=hint)
    names = list(taken)
    if names:
        more = f" and {len(names) - limits.LISTED} more" if len(names) > limits.LISTED else ""
        listed = ", ".join(names[: limits.LISTED])
        raise OutputExistsError(f"the dynasty here differs: {listed}{more}", hint=hint)


def _whose(files: Mapping[str, bytes]) -> str:
    """`that of Claude 3 on main since 2026-03-08T14:26:40Z`, of each branch."""
    held = {path: data for path, data in files.items() if os.path.basename(path) == keep.META}
    rulers = [meta.load(data, path) for path, data in held.items() if whole.is_own(path)]
    told = [f"{one.title()} on {one.branch} since {spelling.time_text(one.born)}" for one in rulers]
    return f"that of {', '.join(told[: limits.LISTED])}" if told else "which nobody rules"


def _keep(store: Store, files: Mapping[str, bytes]) -> str:
    """What is replaced, in a folder of its own, where what was restored is; no one removes it."""
    if not files:
        return ""
    kept = os.path.join(store.restored, f"dynasty-replaced-{os.urandom(8).hex()}")
    for path, data in files.items():
        target = os.path.join(kept, path)
        durable.make_directories(os.path.dirname(target))
        durable.create_exclusive(target, data)
    return kept


def _beside(folder: str, files: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """What people had put beside our files comes back where nothing is: theirs is not replaced.
    Returns the paths that came, and what did not.
    """
    came, left = [], []
    for path in (one for one in files if not whole.is_own(one)):
        target = os.path.join(folder, path)
        try:
            durable.make_directories(os.path.dirname(target))
            if durable.create_exclusive(target, files[path]):
                came.append(path)
            elif journal.content(folder, path) != files[path]:
                left.append(f"{path} stays as it is: it is no file of the dynasty")
        except SavepointError as failure:
            left.append(f"{path} did not come back: {failure.message}")
    return came, left
