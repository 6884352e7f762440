"""What nothing refers to any more: packs, snapshots, and temporaries of dead processes.

A pack or snapshot is kept if any record names it, also one of an index that was set aside, or a
draft that waits for a key. Where one of these cannot be read, nobody knows what it names, and
nothing goes.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core import limits, record, snapshot
from savepoint.core.errors import DiskError, SavepointError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.store import durable, savepoints
from savepoint.store.acknowledge import Draft
from savepoint.store.files import names_in, read_bounded
from savepoint.store.layout import INDEX_FILE, SET_ASIDE
from savepoint.store.locks import Lock
from savepoint.store.packs import read_segment
from savepoint.store.session import pending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Home, InstancePaths, Store


class Orphan(NamedTuple):
    """A file that can go."""

    what: str  # pack, snapshot, temporary file, damaged git folder
    path: str
    size: int  # bytes


class Garbage(NamedTuple):
    """What can go, and why more perhaps could."""

    orphans: list[Orphan]
    unknown: str  # what cannot be read, so that packs and snapshots stay; empty where all can


def find(store: Store, now: float) -> Garbage:
    """Everything that can go and is older than GC_AGE_SECONDS. now: Unix seconds. Raises DiskError
    (a folder cannot be listed).
    """
    found = list(_temporaries(store))
    unknown = ""
    try:
        packs, snapshots = _named(store)
    except SavepointError as failure:
        unknown = failure.message
    else:
        found += _files(store.objects, "pack", packs)
        for paths in savepoints.instances(store):
            found += _files(paths.snapshots, "snapshot", snapshots)
    old = now - limits.GC_AGE_SECONDS
    return Garbage([one for one, changed in found if changed < old], unknown)


def remove(store: Store, now: float) -> Garbage:
    """Remove it, while no save goes on; what was removed. Raises BusyError (a save goes on),
    DiskError.
    """
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    with Lock(store.saving, deadline), Lock(store.lock, deadline):
        found = find(store, now)
        for one in found.orphans:
            if os.path.isdir(one.path):
                durable.remove_folder(one.path)
            else:
                durable.remove(one.path)
    return found


def sweep(home: Home, now: float) -> None:
    """Remove what is left of runs that died while they made a store: there are keys in it. What a
    run that goes on has touched within GC_AGE_SECONDS stays. now: Unix seconds. Never raises: what
    stays is removed by the next run.
    """
    with suppress(DiskError, OSError):
        for one, changed in _stores_begun(home.path):
            if changed < now - limits.GC_AGE_SECONDS:
                durable.remove_folder(one.path)


def _stores_begun(home: str) -> Iterator[tuple[Orphan, float]]:
    """Folders of `savepoint bootstrap`, which it fills beside the others."""
    for name in names_in(home):
        path = os.path.join(home, name)
        if name.startswith(durable.TEMPORARY_PREFIX) and os.path.isdir(path):
            yield _folder("temporary file", path)


def _named(store: Store) -> tuple[set[str], set[str]]:
    """Paths of the packs and of the snapshots that something names.

    Raises MalformedError, TamperedError, DiskError: something that may name some cannot be read.
    """
    packs: set[str] = set()
    snapshots: dict[str, str] = {}  # hash → path
    for paths in savepoints.instances(store):
        known = savepoints.records(paths)
        if known.unreadable:
            raise TamperedError(f"{paths.index_file} has lines that cannot be read")
        for one in known.saves:
            packs |= _packs_of(store, savepoints.open_snapshot(paths, one).document)
            snapshots[one.snapshot_hash] = os.path.join(paths.path, one.snapshot_file)
        for one in _set_aside(paths):
            if one.snapshot_hash not in snapshots:
                with suppress(SavepointError):  # it lacks its snapshot already
                    packs |= _packs_of(store, savepoints.open_snapshot(paths, one).document)
                    snapshots[one.snapshot_hash] = os.path.join(paths.path, one.snapshot_file)
    for path in pending.every_draft(store):
        data = read_bounded(path, 2 * limits.SNAPSHOT_BYTES) or b""
        packs |= _packs_of(store, Draft.parse(data).document)
    return packs, set(snapshots.values())


def _set_aside(paths: InstancePaths) -> Iterator[Record]:
    """Savepoints of indexes that were kept beside the one that took their place."""
    folders = (os.path.dirname(paths.index_file), paths.forks)
    for path in (os.path.join(one, name) for one in folders for name in names_in(one)):
        if path == paths.index_file or not os.path.basename(path).startswith(_INDEX):
            continue
        for line in (read_bounded(path, limits.INDEX_BYTES) or b"").split(b"\n"):
            with suppress(SavepointError):
                one = record.parse(line)
                if one.kind == "save":
                    yield one


def _packs_of(store: Store, document: dict[str, Json]) -> set[str]:
    stored = snapshot.files(document, lambda one: read_segment(store, one))
    segments = [one for file in stored for one in file.segments]
    segments += [one for listed in snapshot.spilled_lists(document) for one in listed]
    return {store.pack(one.pack) for one in segments}


def _files(folder: str, what: str, kept: set[str]) -> Iterator[tuple[Orphan, float]]:
    """The files below a folder that are not kept, with the time of their last change."""
    for parent, _, names in os.walk(folder, onerror=_raise):
        for path in (os.path.join(parent, name) for name in names):
            if path not in kept and durable.TEMPORARY_PREFIX not in path:
                yield from _orphan(what, path)


def _temporaries(store: Store) -> Iterator[tuple[Orphan, float]]:
    """What was being written when a process died, files and folders; git's own are its own. And
    repositories that a repair has replaced.
    """
    yield from _stores_begun(store.home)
    damaged = os.path.basename(store.repository) + SET_ASIDE
    for parent, folders, names in os.walk(store.path, onerror=_raise):
        if parent == store.path and os.path.basename(store.repository) in folders:
            folders.remove(os.path.basename(store.repository))
        for name in [one for one in folders if durable.TEMPORARY_PREFIX in one]:
            folders.remove(name)
            yield _folder("temporary file", os.path.join(parent, name))
        for name in [one for one in folders if one.startswith(damaged)]:
            folders.remove(name)
            found, changed = _folder("damaged git folder", os.path.join(parent, name))
            yield found, max(changed, os.lstat(found.path).st_ctime)  # when it was set aside
        for name in names:
            if durable.TEMPORARY_PREFIX in name:
                yield from _orphan("temporary file", os.path.join(parent, name))


def _folder(what: str, path: str) -> tuple[Orphan, float]:
    """As large as all that is in it, and as young as the youngest."""
    size, changed = 0, os.lstat(path).st_mtime
    for parent, _, names in os.walk(path):
        for name in names:
            for one, moment in _orphan("temporary file", os.path.join(parent, name)):
                size, changed = size + one.size, max(changed, moment)
    return Orphan(what, path, size), changed


def _orphan(what: str, path: str) -> Iterator[tuple[Orphan, float]]:
    try:
        seen = os.lstat(path)
    except FileNotFoundError:  # it has gone by itself
        return
    yield Orphan(what, path, seen.st_size), seen.st_mtime


def _raise(failure: OSError) -> None:
    if not isinstance(failure, FileNotFoundError):
        raise DiskError.of(failure)


_INDEX = os.path.basename(INDEX_FILE).partition(".")[0]  # how the names of all of them begin
