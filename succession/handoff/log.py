"""The log of threads on disk: read whole and checked under its lock, appended to, never rewritten.

handoff/log.jsonl                       registry and ledger
handoff/<thread>/<N>/{handoff.md,receipt.json}
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import (
    DiskError,
    HandoffError,
    MalformedError,
    RolledBackError,
    TamperedError,
)
from savepoint.core.handoff_log import Chain, make
from savepoint.store import durable, index, savepoints, trusted
from savepoint.store.files import read_bounded
from savepoint.store.layout import THREADS
from savepoint.store.locks import Lock
from succession.handoff import LOG, is_there
from succession.handoff.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from savepoint.core.handoff_log import Author, Draft, Entry
    from savepoint.core.strict_json import Json
    from savepoint.core.trusted_head import TrustedHead
    from savepoint.store.layout import Store

LOCK = ".lock"
COMPARE = (
    "`savepoint resurrect --only memory -o back`, then `savepoint handoff import "
    "back/memory/handoff`: compares it with what the newest savepoint has"
)
_HINT = "`savepoint handoff status` says how it comes back out of a savepoint"


class Log:
    """The log, held while nobody else changes it."""

    def __init__(self, store: Store, chain: Chain, size: int) -> None:
        self.store = store
        self.entries = chain.entries
        self.ledger = folded(chain.entries)
        self._next = chain.next
        self._size = size  # bytes of the file

    def add(self, author: Author, now: int, drafts: Sequence[Draft]) -> list[Entry]:
        """Append lines, all of them or, after a kill, so many of the first.

        Raises HandoffError (the state does not allow one: none is written), MalformedError,
        DiskError.
        """
        made: list[Entry] = []
        for draft in drafts:
            seq, prev = (made[-1].seq + 1, made[-1].hash) if made else self._next
            one = make(author, now, seq, prev, draft)
            self.ledger.apply(one)
            made.append(one)
        data = b"".join(one.line + b"\n" for one in made)
        path = path_of(self.store)
        if self._size + len(data) > limits.HANDOFF_LOG_BYTES:
            raise HandoffError(f"{path} is full", hint="")
        if not self.entries:  # the head first: one that is missing later was taken away
            _raise_trusted(self.store, 0, made[0].prev)
        durable.append(path, data, size=self._size)
        try:
            _raise_trusted(self.store, made[-1].seq, made[-1].hash)
        except DiskError as failure:
            self._take_back(path, failure)
            raise
        self._size += len(data)
        self.entries += made
        self._next = (made[-1].seq + 1, made[-1].hash)
        return made

    def _take_back(self, path: str, failure: DiskError) -> None:
        """Who is told that it failed runs it again: it must not have been done as well."""
        try:
            durable.truncate(path, self._size)
        except DiskError:
            done = f"{failure.message}; but the log has what was to be written"
            raise DiskError(done, hint="`savepoint handoff status` shows it") from failure

    @property
    def head(self) -> dict[str, Json]:
        """Sequence and hash of the last line."""
        last = self.entries[-1]
        return {"seq": last.seq, "record": last.hash}


@contextmanager
def opened(store: Store, deadline: float, *, make_it: bool = False) -> Iterator[Log]:
    """The log of a store. deadline: of time.monotonic(). make_it: one begins where there is none.

    A torn tail is set aside, as that of an index is. Raises HandoffError (there is none),
    TamperedError, RolledBackError, UnsupportedFormatError, BusyError, DiskError.
    """
    folder = folder_of(store)
    if make_it or trusted.load(store.instance(THREADS)) is not None:
        durable.make_directories(folder)
    elif not os.path.isdir(folder):
        hint = "`savepoint handoff thread TITLE` opens one"
        raise HandoffError("this project has no threads", hint=hint)
    with Lock(os.path.join(folder, LOCK), deadline):
        chain, data = _checked(store)
        size = _settle(store, chain, data)
        yield Log(store, chain, size)


def read(store: Store) -> Ledger | None:
    """What the log says, without its lock: for those who only look. None where there is none.

    Raises as `opened`.
    """
    if not is_there(store):
        return None
    return folded(lines(store))


def lines(store: Store) -> list[Entry]:
    """Its lines, without its lock, none where there are none. Raises as `opened`."""
    return _checked(store)[0].entries


def unseen(store: Store) -> str:
    """Why an older log would pass for the newest one; empty where the trusted head is there.

    An older copy is a whole good chain, and who put it back can remove the head as well.
    """
    paths = store.instance(THREADS)
    head = trusted.load(paths)
    if head is None and not os.path.lexists(path_of(store)):
        return ""
    if head is not None and not head.recreated:
        return ""
    state = "is missing" if head is None else "was made anew where there was none"
    return f"{paths.trusted} {state}: whether a newer log of threads existed cannot be told"


def folder_of(store: Store) -> str:
    """Where the threads of a store are."""
    return os.path.join(store.path, THREADS)


def path_of(store: Store) -> str:
    """Its file."""
    return os.path.join(folder_of(store), LOG)


def _bytes(store: Store) -> bytes:
    try:
        return read_bounded(path_of(store), limits.HANDOFF_LOG_BYTES) or b""
    except MalformedError as failure:  # no file, or longer than any log
        raise TamperedError(failure.message, hint=_HINT) from None


def _checked(store: Store) -> tuple[Chain, bytes]:
    """The log's lines, each of them good, by a key of this store, and as many as were ever seen;
    and its bytes. They are read after the trusted head: of a log that grew in between, the head was
    newer, and whoever looked while another appended was told that it was rolled back.
    """
    head = trusted.load(store.instance(THREADS))
    data = _bytes(store)
    chain = Chain(data)
    if chain.fault is not None:
        if chain.fault.exit_code == TamperedError.exit_code:
            raise TamperedError(chain.fault.message, hint=_HINT)
        raise chain.fault
    seen = _as_seen(store, head, chain.entries)
    stranger = signed_by_others(store, chain.entries[seen:])
    if stranger is not None:
        why = f"record {stranger.seq} of {path_of(store)}: no instance has its key"
        raise TamperedError(why, hint=_HINT)
    return chain, data


def _as_seen(store: Store, head: TrustedHead | None, entries: Sequence[Entry]) -> int:
    """How many of them are those that were seen before. Raises TamperedError, RolledBackError."""
    if head is None or not head.seq:
        return 0
    last = entries[head.seq - 1 : head.seq]
    if not last:
        why = f"{path_of(store)} ends before record {head.seq}, which was there"
        raise RolledBackError(why, hint=_HINT)
    if last[0].hash != head.record:
        why = f"record {head.seq} of {path_of(store)} is another than it was"
        raise TamperedError(why, hint=_HINT)
    return head.seq


def signed_by_others(store: Store, entries: Sequence[Entry]) -> Entry | None:
    """The first that no instance of this store has signed. Of what was seen before that is not
    asked again: a store out of a remote has not the births of all who wrote in its log.
    """
    births = map(index.birth, savepoints.instances(store)) if entries else ()
    known = {one.signer for one in births if one is not None}
    return next((one for one in entries if one.signer not in known), None)


def folded(entries: Sequence[Entry]) -> Ledger:
    """What these lines say together. Raises TamperedError: one is not allowed there."""
    ledger = Ledger()
    for one in entries:
        try:
            ledger.apply(one)
        except HandoffError as failure:
            why = f"record {one.seq} of the log: {failure.message}"
            raise TamperedError(why, hint=_HINT) from None
    return ledger


def _settle(store: Store, chain: Chain, data: bytes) -> int:
    """Finish or set aside what stands behind the last LF; the size of the file then."""
    path, size = path_of(store), len(data)
    if chain.torn:
        aside = f"{path}.torn-{hashlib.sha256(chain.torn).hexdigest()[:16]}"
        durable.create_exclusive(aside, chain.torn)
        durable.truncate(path, size - len(chain.torn))
        return size - len(chain.torn)
    if data and not data.endswith(b"\n"):
        durable.append(path, b"\n", size=size)
        return size + 1
    return size


def _raise_trusted(store: Store, seq: int, record_hash: str) -> None:
    """After the line: the head may lag, never lead. Its name is that of no instance: theirs end in
    the digits of a key.
    """
    paths = store.instance(THREADS)
    head = trusted.load(paths) or trusted.first(seq, record_hash, recreated=seq > 0)
    trusted.make_folder(paths)
    trusted.save(paths, head.raised(seq, record_hash))
