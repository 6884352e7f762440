"""Table `submissions` of outbox.db: one row for each savepoint that is, or is to be, an entry.

A transaction is in it, synced to disk, before it is sent: whoever dies behind that sends the same
bytes again. Lost, it is rebuilt from the account (anchor_service/recovery.py).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import record
from savepoint.core.named import NamedTuple
from savepoint.store import ending, outbox_file

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store

# A savepoint is QUEUED as long as nothing is signed for it that may still land; it may lack a row.
QUEUED = "QUEUED"
PREPARED = "PREPARED"  # signed and on disk; perhaps sent
SENT = "SENT"  # an endpoint took it
SEEN = "SEEN"  # in a block
LANDED = "LANDED"  # in a block that most have voted for
VERIFIED = "VERIFIED"  # the account was read back, finalized, and holds our entry
RECONCILE = "RECONCILE"  # what became of it is for the finalized account to say
CONFLICT = "CONFLICT"  # the account holds an entry that is not ours
PAUSED_FUNDS = "PAUSED_FUNDS"  # the payer could not pay
ORPHANED = "ORPHANED_BY_RESET"  # its cluster began anew

OPEN = (PREPARED, SENT, SEEN, LANDED, RECONCILE, CONFLICT, PAUSED_FUNDS)
_OPEN = ", ".join(f"'{state}'" for state in OPEN)

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS submissions(
    slug TEXT NOT NULL, ledger TEXT NOT NULL, genesis TEXT NOT NULL, program TEXT NOT NULL,
    account TEXT NOT NULL, entry_seq INTEGER NOT NULL, kind INTEGER NOT NULL,
    record_seq INTEGER NOT NULL, record TEXT NOT NULL, entry TEXT NOT NULL, claim BLOB NOT NULL,
    state TEXT NOT NULL, attempt INTEGER NOT NULL, raw BLOB NOT NULL, signature BLOB NOT NULL,
    blockhash BLOB NOT NULL, last_valid_height INTEGER NOT NULL, slot INTEGER NOT NULL,
    expired_slot INTEGER NOT NULL, since INTEGER NOT NULL, changed INTEGER NOT NULL,
    spent INTEGER NOT NULL, planned INTEGER NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY(slug, genesis, program, record)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS one_open ON submissions(slug, genesis, program)
    WHERE state IN ({_OPEN});
"""


class Submission(NamedTuple):
    """One row. A savepoint has at most one for each life of a cluster, hence at most one entry."""

    slug: str  # of the instance
    ledger: str  # as the owner chose it
    genesis: str  # base58, as all keys here
    program: str
    account: str
    entry_seq: int
    kind: int  # of the entry, core/entry.py
    record_seq: int
    record: str  # its hash
    entry: str  # entry hash
    claim: bytes  # bytes 32 to 144 of the account, then the metadata
    state: str = QUEUED
    attempt: int = 0  # how often it was signed
    raw: bytes = b""  # the transaction
    signature: bytes = b""  # 64 bytes, of the transaction
    blockhash: bytes = b""
    last_valid_height: int = 0
    slot: int = 0  # the highest that the ledger was seen at
    expired_slot: int = 0  # of a bank that was seen when the blockhash had expired; 0: it has not
    since: int = 0  # Unix seconds
    changed: int = 0  # of the state
    spent: int = 0  # lamports, for what has landed
    planned: int = 0  # lamports that the transaction under way will cost
    error: str = ""

    @property
    def is_open(self) -> bool:
        """May a transaction of it still land, or is something to be decided?"""
        return self.state in OPEN


_NAMES = ", ".join(Submission._fields)
# Not OR REPLACE: that would drop another row that is under way instead of refusing this one.
_PUT = (
    f"INSERT INTO submissions({_NAMES}) VALUES ({', '.join('?' * len(Submission._fields))}) "  # noqa: S608  # names of our own
    "ON CONFLICT(slug, genesis, program, record) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in Submission._fields)
)


_ROWS = f"SELECT {_NAMES} FROM submissions WHERE slug = ? ORDER BY rowid"  # noqa: S608  # as above


class Queue(outbox_file.Table):
    """Open for the one worker that holds the store's worker lock. Raises BusyError, DiskError."""

    schema = _SCHEMA

    def put(self, row: Submission) -> Submission:
        """Write it, durable when this returns; the row of the same savepoint is replaced."""
        self._write(_PUT, tuple(row))
        return row

    def rows(self, slug: str) -> list[Submission]:
        """All of an instance, in the order in which they were begun."""
        return [Submission(*row) for row in self._read(_ROWS, (slug,))]

    def spent_since(self, moment: int) -> int:
        """Lamports of the whole store, with what is under way. moment: Unix seconds."""
        asked = "SELECT coalesce(sum(spent + planned), 0) FROM submissions WHERE changed >= ?"
        return int(self._read(asked, (moment,))[0][0])


def rows(store: Store, slug: str) -> list[Submission]:
    """As a worker at work left them, for people who ask meanwhile; nothing where nothing was ever
    to be anchored. Raises BusyError, DiskError.
    """
    return [Submission(*row) for row in outbox_file.read(store, "submissions", _ROWS, (slug,))]


def held(
    paths: InstancePaths, found: list[Submission], ledger: str, program: str | None
) -> list[Submission]:
    """The rows of a ledger whose record the index has, each with the number that it has there, from
    the newest back to the first that is VERIFIED: the outbox is no evidence, and an index that was
    cut and gone on from has other records of old numbers. program: as below. Raises DiskError.
    """
    wanted = {
        one.record: one
        for one in found
        if one.ledger == ledger and program in (None, one.program) and one.state != ORPHANED
    }
    known: list[Submission] = []
    for line in ending.backwards(paths.index_file) if wanted else ():
        row = wanted.get(hashlib.sha256(line).hexdigest())
        if row is not None:
            known.append(row._replace(record_seq=record.parse(line).seq))
            if row.state == VERIFIED:
                break
    return known


def newest_verified(
    found: list[Submission], ledger: str, program: str | None = None
) -> Submission | None:
    """The row that the cursor of an instance stands at: its savepoint and all before it are
    anchored. program: base58, None for any.
    """
    good = [
        one
        for one in found
        if one.state == VERIFIED and one.ledger == ledger and program in (None, one.program)
    ]
    return max(good, key=lambda one: (one.record_seq, one.entry_seq), default=None)


def open_row(found: list[Submission], ledger: str, program: str | None) -> Submission | None:
    """The one that is under way. program: base58, None for any."""
    good = (one for one in found if one.is_open and one.ledger == ledger)
    return next((one for one in good if program in (None, one.program)), None)
