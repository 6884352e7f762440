"""Whose entry an account holds: the one that was sent, one of ours that this outbox does not know,
or another writer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import entry, spelling
from savepoint.core.errors import LedgerRefusedError, MalformedError, SavepointError
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.entry import Account, Place
    from savepoint.core.ledger import AccountState
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths

_KINDS = {entry.SAVEPOINT: "save", entry.RETIRE: "retire", entry.SUCCESSOR: "birth"}


def read(state: AccountState | None, program: bytes) -> Account | None:
    """The entry; None where there is none yet, also where somebody sent lamports to the address.

    Raises LedgerRefusedError: the program does not keep the account, or wrote what ours never does.
    """
    if state is None or not state.data:
        return None
    if state.owner != program:
        raise LedgerRefusedError("the account belongs to another program", hint=_PROGRAM)
    try:
        return entry.parse(state.data)
    except MalformedError as failure:
        raise LedgerRefusedError(f"the account: {failure.message}", hint=_PROGRAM) from None


def ours(paths: InstancePaths, account: Account, authority: bytes, place: Place) -> Record | None:
    """The record of ours that an entry names, if it is what we would have made of it.

    The commit does not count: one that git lost is made again, and is another.
    """
    if not account.is_signed_by(authority, place):
        return None
    try:
        named = account.metadata
    except SavepointError:
        return None
    found = [one for one in savepoints.records(paths).all if one.hash == named.rec]
    return found[0] if found and _says(account, found[0], named.seq) else None


def _says(account: Account, one: Record, seq: int) -> bool:
    claim = account.claim
    if (one.kind, one.seq, one.timestamp) != (_KINDS.get(claim.kind), seq, claim.client_time):
        return False
    return one.kind != "save" or claim.snapshot_hash.hex() == one.snapshot_hash


def told(account: Account) -> str:
    """A foreign entry, for people."""
    kind = entry.KINDS[account.claim.kind]
    when = spelling.shown_time(account.chain_time)
    return f"entry {account.seq} ({kind}, {when}) of the account is not ours"


_PROGRAM = "is `savepoint config program` the id of the program that ships with savepoint?"
