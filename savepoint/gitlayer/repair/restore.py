"""Put back from git what the local store has lost: records, snapshots, packs.

Only what the instance's key has signed, or has its own SHA-256 as its name, comes back. The caller
holds the store lock.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import bootstrap_document, limits, record, snapshot, verify_stored
from savepoint.core.errors import MalformedError, RolledBackError, SavepointError
from savepoint.gitlayer import repository, tree
from savepoint.gitlayer.commits import plan
from savepoint.gitlayer.remote import theirs
from savepoint.store import durable, index
from savepoint.store.files import read_bounded
from savepoint.store.witness import evidence
from savepoint.store.witness.contents import PACK_FILE_BYTES

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository
    from savepoint.gitlayer.witness.held import Held
    from savepoint.store.layout import InstancePaths


def records(repo: Repository, paths: InstancePaths) -> int:
    """Let the index have every record that the instance's ref has; how many it lacked.

    What stood in their place is set aside beside it. Records that follow them stay. Raises
    RolledBackError (the index has other signed records: a fork), MalformedError (those of the ref
    are not signed by the key), CommitError, DiskError.
    """
    commit = repository.read_ref(repo, repository.branch(paths.slug))
    if commit is None:
        return 0
    tail = index.settle(paths)
    ours = index.read(paths)
    # First the bytes alone: the record that accepts a gap rides in the commit after the gap.
    if ours.startswith(tree.index(repo, tree.list_files(repo, commit))):
        return 0
    theirs_ = theirs.read(repo, paths.slug, commit)
    known = {one.hash for one in theirs_.records}
    later = _later(paths, ours, known, theirs_.last)
    lacking = len(known - {hashlib.sha256(line).hexdigest() for line in ours.split(b"\n")})
    if theirs_.data.startswith(ours):
        durable.append(paths.index_file, theirs_.data[len(ours) :], size=tail.size)
        return lacking
    aside = f"{paths.index_file}.damaged-{hashlib.sha256(ours).hexdigest()[:16]}"
    durable.create_exclusive(aside, ours)
    durable.replace(paths.index_file, theirs_.data + later)
    return lacking


def document(repo: Repository, paths: InstancePaths) -> bool:
    """Let a successor whose BOOTSTRAP_VERIFICATION.json is lost or damaged have that of its branch,
    if its birth fits it; was it put back? Raises UnsupportedFormatError, CommitError, DiskError.
    """
    commit = repository.read_ref(repo, repository.branch(paths.slug))
    birth = index.birth(paths)
    if commit is None or birth is None or _holds(paths, birth):
        return False
    blobs = list(tree.list_files(repo, commit, tree.BOOTSTRAP).values())
    for data in tree.contents(repo, blobs, limits.SMALL_DOCUMENT_BYTES) if blobs else ():
        if _fits(data, birth):
            durable.replace(paths.bootstrap, data)
            return True
    return False


def _holds(paths: InstancePaths, birth: Record) -> bool:
    try:
        data = read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
    except MalformedError:
        return False
    return data is not None and _fits(data, birth)


def _fits(data: bytes, birth: Record) -> bool:
    try:
        return not bootstrap_document.fault(bootstrap_document.parse(data), birth)
    except MalformedError:
        return False


def _later(paths: InstancePaths, ours: bytes, known: set[str], last: Record) -> bytes:
    """The lines of our index that come after what the ref has."""
    lines = ours.split(b"\n")[:-1]
    for number, line in enumerate(lines):
        one = _signed(line)
        if one is None or one.hash in known:
            continue
        if one.seq <= last.seq:
            raise RolledBackError(f"{paths.index_file} has another record {one.seq} than git has")
        return b"".join(rest + b"\n" for rest in lines[number:])
    return b""


def _signed(line: bytes) -> Record | None:
    try:
        one = record.parse(line)
    except SavepointError:
        return None
    return one if one.signature_holds() else None


def savepoint(held: Held, paths: InstancePaths, one: Record) -> list[str]:
    """The snapshot of record `one` and all its packs stand there as they were saved; the paths of
    those that did not. `held`: its commit.

    Raises TamperedError (the commit does not hold it), KeyFileError (it does not open),
    CommitError, DiskError.
    """
    path = os.path.join(paths.path, one.snapshot_file)
    data = evidence.read(path, limits.SNAPSHOT_BYTES)
    done = []
    if verify_stored.snapshot_file(one, data, path).result != "pass" or not isinstance(data, bytes):
        data = held.snapshot(one)
        done.append(_put(path, data))
    found = snapshot.parse(data)
    listed = {part.pack for parts in snapshot.spilled_lists(found.document) for part in parts}
    done += _packs(held, paths, sorted(listed))
    return done + _packs(held, paths, plan.content_of(found, paths.store).packs)


def _packs(held: Held, paths: InstancePaths, names: list[str]) -> list[str]:
    done = []
    for name in names:
        path = paths.store.pack(name)
        if verify_stored.pack(name, evidence.read(path, PACK_FILE_BYTES), path).result != "pass":
            done.append(_put(path, held.pack(name)))
    return done


def _put(path: str, data: bytes) -> str:
    durable.make_directories(os.path.dirname(path))
    durable.replace(path, data)
    return path
