"""The threads out of a savepoint: which one holds them whole, and how they come into a store.

A log comes back as a whole chain or not at all, and never in the place of one that holds. What is
in its way is set aside, never removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from typing import TYPE_CHECKING

from savepoint.core import handoff_receipt, limits
from savepoint.core.errors import (
    HandoffError,
    MalformedError,
    RolledBackError,
    SavepointError,
    TamperedError,
)
from savepoint.core.handoff_log import Chain
from savepoint.core.named import NamedTuple
from savepoint.store import durable, savepoints, trusted
from savepoint.store.files import read_bounded
from savepoint.store.layout import SET_ASIDE, THREADS
from savepoint.store.locks import Lock
from succession import bundles
from succession.handoff import LOG, create, log
from succession.handoff.ledger import SETTLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from savepoint.core.handoff_log import Entry
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.store.trusted import TrustedHead
    from succession.handoff.ledger import Ledger

PART = "handoff"  # of a snapshot, as snapshot.files calls it
_HANDED = re.compile(r"t-[0-9a-f]{16}/[1-9][0-9]{0,8}/(?:handoff\.md|receipt\.json)")


class Memory(NamedTuple):
    """What a savepoint holds of the threads: the log's lines, and the files of their handoffs."""

    entries: list[Entry]
    ledger: Ledger
    files: dict[str, bytes]  # path below the folder of threads → bytes; those the log names

    @property
    def log(self) -> bytes:
        """The file."""
        return b"".join(one.line + b"\n" for one in self.entries)


class Holder(NamedTuple):
    """A savepoint that has them whole."""

    paths: InstancePaths
    record: Record
    memory: Memory


class Back(NamedTuple):
    """What was put back."""

    records: int  # in the log now
    aside: tuple[str, ...]  # paths of what was in the way
    lost: tuple[int, int] | None  # first and last record that was seen here and is not there


def parse(data: bytes) -> Memory:
    """The memory in the bytes of `handoff_state`. A torn tail, which was never acknowledged, and
    what no line of the log names are left out. Raises MalformedError, UnsupportedFormatError.
    """
    files = bundles.unpack(data)
    chain = Chain(files.get(LOG, b""))
    if chain.fault is not None:
        raise chain.fault
    if not chain.entries:
        raise MalformedError("there is no log of threads in it")
    ledger = log.folded(chain.entries)
    return Memory(chain.entries, ledger, dict(_named(ledger, files)))


def _named(ledger: Ledger, files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The page and the receipt of each handoff of the log, if they are those that it names."""
    for one in ledger.threads.values():
        if one.state != SETTLED:
            continue
        receipt, page = (f"{one.id}/{one.number}/{name}" for name in (create.RECEIPT, create.PAGE))
        try:
            told = handoff_receipt.parse(files.get(receipt, b""))
        except SavepointError:
            continue
        if told.hash == one.receipt and _HANDED.fullmatch(receipt):
            yield receipt, told.data
            if hashlib.sha256(files.get(page, b"")).hexdigest() == told.body["document"]:
                yield page, files[page]


def newest(store: Store) -> Holder | None:
    """The newest savepoint that holds the threads whole, of whichever instance; None: none does.

    One after the other is opened, the newest first. Raises DiskError.
    """
    return next(_holders(store, lambda _: True), None)


def is_older(store: Store, memory: Memory) -> bool:
    """Does it end before what was seen here?"""
    head = trusted.load(store.instance(THREADS))
    return head is not None and memory.entries[-1].seq < head.seq


def _holders(store: Store, wanted: Callable[[bytes], bool]) -> Iterator[Holder]:
    found = [
        (paths, one)
        for paths in savepoints.instances(store)
        for one in savepoints.records(paths).saves
    ]
    for paths, one in sorted(found, key=lambda each: (-each[1].timestamp, -each[1].seq)):
        try:
            data = held_by(paths, one)
            if data is not None and wanted(data):
                yield Holder(paths, one, parse(data))
        except MalformedError:
            continue


def held_by(paths: InstancePaths, one: Record) -> bytes | None:
    """The bytes of a savepoint's `handoff_state`. Raises MalformedError, UnsupportedFormatError,
    DiskError.
    """
    return bundles.held_by(paths, one, PART)


def put_back(store: Store, data: bytes, *, force: bool = False) -> Back:
    """The threads of a savepoint in the place of a log that is damaged, lost, or was never here; of
    one that holds, only the files of handoffs are put back that are missing or altered.

    data: of a `handoff_state`. force: also if it ends before what was seen here. Raises
    MalformedError (it is none, or is damaged), TamperedError (another history, or another's),
    RolledBackError (older, without `force`), BusyError, DiskError; then nothing is changed.
    """
    memory = parse(data)
    folder = log.folder_of(store)
    durable.make_directories(folder)
    with Lock(os.path.join(folder, log.LOCK), time.monotonic() + limits.LOCK_WAIT_SECONDS):
        held = _held(store)
        _refuse_other(held, memory)
        if len(held) >= len(memory.entries):
            _vouch(store, held)
            return Back(len(held), tuple(_place(folder, memory.files)), None)
        head = trusted.load(store.instance(THREADS))
        lost = _lost(head, memory, force=force) if head is not None else None
        seen = head.seq if head is not None and not lost else 0
        _refuse_strangers(store, memory.entries[seen:], data)
        aside = [*_place(folder, memory.files), *_place(folder, {LOG: memory.log})]
        _see(store, memory.entries[-1])
    return Back(len(memory.entries), tuple(aside), lost)


def _vouch(store: Store, held: list[Entry]) -> None:
    """A trusted head that is missing, or was made anew, counts again if the newest savepoint has
    nothing that the log here lacks.
    """
    if not log.unseen(store) or (found := newest(store)) is None:
        return
    last = found.memory.entries[-1]
    if [one.hash for one in held[last.seq - 1 : last.seq]] == [last.hash]:
        _see(store, held[-1])


def _see(store: Store, last: Entry) -> None:
    paths = store.instance(THREADS)
    trusted.make_folder(paths)
    trusted.save(paths, trusted.first(last.seq, last.hash, recreated=False))


def _held(store: Store) -> list[Entry]:
    """The lines of the log here, if it holds. Raises DiskError, UnsupportedFormatError."""
    try:
        return log.lines(store)
    except (MalformedError, RolledBackError):
        return []


def _refuse_other(held: list[Entry], memory: Memory) -> None:
    """A log that holds is gone on from, and no other takes its place. Raises HandoffError."""
    both = min(len(held), len(memory.entries))
    if both and held[both - 1].hash != memory.entries[both - 1].hash:
        raise HandoffError("the log here holds, and that of the savepoint is another")


def _lost(head: TrustedHead, memory: Memory, *, force: bool) -> tuple[int, int] | None:
    """The records that were seen and do not come back. Raises TamperedError, RolledBackError."""
    last = memory.entries[-1].seq
    if last >= head.seq:
        if head.seq and memory.entries[head.seq - 1].hash != head.record:
            raise TamperedError(f"record {head.seq} is another there than it was here")
        return None
    if not force:
        hint = f"--force puts it back without the records {last + 1} to {head.seq}"
        raise RolledBackError(
            f"it ends with record {last}, and record {head.seq} was seen here", hint=hint
        )
    return last + 1, head.seq


def _refuse_strangers(store: Store, entries: list[Entry], data: bytes) -> None:
    """Whoever signed is an instance of this store, or a savepoint of one has just these bytes: a
    store out of a remote has not the births of all. Raises TamperedError.
    """
    stranger = log.signed_by_others(store, entries)
    if stranger is not None and next(_holders(store, lambda held: held == data), None) is None:
        raise TamperedError(f"record {stranger.seq} is signed by no instance of this store")


def _place(folder: str, files: dict[str, bytes]) -> Iterator[str]:
    """Write what is not there as it should be; the paths under which what was in its way is now."""
    for name, data in files.items():
        path = os.path.join(folder, *name.split("/"))
        if _is_there(path, data):
            continue
        durable.make_directories(os.path.dirname(path))
        if os.path.lexists(path):
            aside = f"{path}{SET_ASIDE}{os.urandom(4).hex()}"
            durable.set_aside(path, aside)
            yield aside
        durable.create_exclusive(path, data)


def _is_there(path: str, data: bytes) -> bool:
    try:
        return read_bounded(path, limits.HANDOFF_LOG_BYTES) == data
    except MalformedError:
        return False
