"""What became of savepoints on the ledger: verified, posted, or why not yet.

As the worker's rows tell it: the ledger itself is asked by `verify` and `ledger status`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from anchor_service import costs, queue
from savepoint.cli.ledger import anchoring, config
from savepoint.core.errors import KeyFileError, SavepointError
from savepoint.store import savepoints
from savepoint.work import outbox
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchor_service.queue import Submission
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.outbox import Attempt

DISABLED = "DISABLED"
QUEUED = "QUEUED_FOR_BLOCKCHAIN"
POSTED = "POSTED_TO_BLOCKCHAIN"
VERIFIED = "BLOCKCHAIN_VERIFIED"
FAILED = "BLOCKCHAIN_FAILED"

DONE = {DISABLED, VERIFIED}  # nothing that is configured is pending


class Layer3(NamedTuple):
    """Of one savepoint."""

    status: str
    task: str | None  # `anchor-<seq>`; None without a ledger
    error: str  # of the last attempt at what is still to be done; empty where there was none
    ledger: str  # as it may be shown; empty without one


_OFF = Layer3(DISABLED, None, "", "")


def layer3(paths: InstancePaths, chosen: Config, records: Sequence[Record]) -> dict[int, Layer3]:
    """Sequence → layer 3 of these savepoints of an instance."""
    seqs = [one.seq for one in records]
    if chosen.ledger is None:
        return dict.fromkeys(seqs, _OFF)
    ledger = config.name_of(chosen.ledger) or ""
    try:
        rows = queue.rows(paths.store, paths.slug)
        rows = queue.held(paths, rows, chosen.ledger, chosen.program)
    except SavepointError as failure:  # the savepoints can be told of all the same
        return {seq: Layer3(QUEUED, f"anchor-{seq}", failure.message, ledger) for seq in seqs}
    last = queue.newest_verified(rows, chosen.ledger, chosen.program)
    row = queue.open_row(rows, chosen.ledger, chosen.program)
    attempt = _attempt(paths)
    anchored = last.record_seq if last else 0

    def one(seq: int) -> Layer3:
        task = f"anchor-{seq}"
        if seq <= anchored:
            return Layer3(VERIFIED, task, "", ledger)
        status, error = _word(row if row and seq <= row.record_seq else None, attempt)
        return Layer3(status, task, error, ledger)

    return {seq: one(seq) for seq in seqs}


def state(row: Submission | None, attempt: Attempt | None) -> str:
    """Of a job, in the words of submission (anchor_service/submission.py)."""
    if row is not None:
        return row.state
    return queue.PAUSED_FUNDS if attempt and attempt.name == "funds" else queue.QUEUED


def open_rows(store: Store, chosen: Config) -> dict[str, Submission]:
    """Slug → what is under way."""
    found = {}
    for paths in savepoints.instances(store):
        rows = queue.rows(store, paths.slug)
        row = queue.open_row(rows, chosen.ledger or "", chosen.program)
        if row is not None:
            found[paths.slug] = row
    return found


def cost(paths: InstancePaths, chosen: Config) -> dict[str, Json] | None:
    """Lamports: what the store's entries on this ledger have cost, and what the next one of this
    instance will. Null where that is to be asked: rent is paid with the first.
    """
    if chosen.ledger is None:
        return None
    instances = savepoints.instances(paths.store)
    spent = sum(
        one.spent
        for each in instances
        for one in queue.rows(paths.store, each.slug)
        if one.ledger == chosen.ledger
    )
    rows = queue.rows(paths.store, paths.slug)
    has_account = queue.newest_verified(rows, chosen.ledger, chosen.program) is not None
    return {"spent": spent, "next": costs.fee() if has_account else None, "cap": chosen.spend}


def what_to_do(name: str) -> str:
    """The hint of an error class by its name, as the outbox remembers it."""
    if name == KeyFileError("").name:  # its own leads to doctor, which shows this one
        return (
            "`savepoint fsck --repair` derives a signing key again; a payer's comes from its backup"
        )
    return next((one.default_hint for one in _classes(SavepointError) if _named(one) == name), "")


def _classes(top: type[SavepointError]) -> Iterator[type[SavepointError]]:
    yield top
    for one in top.__subclasses__():
        yield from _classes(one)


def _named(one: type[SavepointError]) -> str:
    return one("").name


def _word(row: Submission | None, attempt: Attempt | None) -> tuple[str, str]:
    error = attempt.error if attempt else row.error if row else ""
    if row is not None and row.state in (queue.SEEN, queue.LANDED):
        return POSTED, error
    is_over = row is not None and row.state == queue.CONFLICT
    refused = attempt is not None and attempt.name in _REFUSALS
    return (FAILED if is_over or refused else QUEUED), error


def _attempt(paths: InstancePaths) -> Attempt | None:
    (found,) = outbox.attempts(paths.store, [Job(anchoring.NAME, paths.slug, None, 0)])
    return found


# Error classes after which only the owner can bring it on; missing funds pause it.
_REFUSALS = {"conflict", "rejected", "wrong_cluster", "ledger_refused", "rolled_back", "key_file"}
