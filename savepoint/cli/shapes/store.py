"""Shapes: a store, its keys, and what is still to be done for it."""

from __future__ import annotations

from typing import Literal

from savepoint.cli.shapes.shape import Shape


class Job(Shape):
    """Something that is still to be done. `seq`: null where a broken ref hides it. `instance`: its
    slug. `hint`: what to do about the error.
    """

    instance: str
    seq: int | None
    kind: Literal["commit", "push", "anchor"]
    state: str
    age_seconds: int
    error: str | None
    hint: str | None


class PendingSave(Shape):
    """A fire that was not served to its end."""

    session_id: str
    since: str
    age_seconds: int
    reason: str
    drafts: int


class Cost(Shape):
    """Lamports that entries cost. `next`: null where rent is to be paid, and so asked for; `cap`:
    what may be spent in 24 hours.
    """

    spent: int
    next: int | None
    cap: int | None


class Status(Shape):
    """`status --json`. `bytes`: of the whole store on disk."""

    store: str
    path: str
    instance: str
    key: str
    remote: str | None
    ledger: str | None
    cost: Cost | None
    savepoints: int
    bytes: int
    jobs: list[Job]
    pending: list[PendingSave]
    missed_fires: int
    keys_backed_up: bool


class SyncJob(Shape):
    """A job of the worker. `key`: the slug of an instance, the key of a session, or repo.git."""

    kind: Literal["save", "commit", "push", "anchor", "audit", "repack"]
    key: str
    seq: int | None


class Acceptance(Shape):
    """What `--accept-remote` did for an instance; `seq`: of the record that says so, if any."""

    instance: str
    what: str
    seq: int | None
    problems: list[str]


class Synced(Shape):
    """`sync --json`."""

    store: str
    accepted: list[Acceptance]
    done: list[SyncJob]
    left: list[SyncJob]


class WorkerJob(SyncJob):
    """A job that is owed, and the attempts at it."""

    age_seconds: int
    tries: int
    next_in_seconds: int
    error: str | None


class WorkerStatus(Shape):
    """`worker --status --json`."""

    running: bool
    jobs: list[WorkerJob]


class Orphan(Shape):
    """A file that nothing refers to."""

    what: Literal["pack", "snapshot", "temporary file", "damaged git folder"]
    path: str
    size: int


class Collected(Shape):
    """`gc --json`. `git`: leftovers in our repository; `unknown`: why packs and snapshots stay."""

    removed: bool
    bytes: int
    orphans: list[Orphan]
    git: list[str]
    unknown: str | None


class KeyFile(Shape):
    """A file of keys; `problem` says why it is not safe to use."""

    path: str
    safe: bool
    problem: str | None


class InstanceKeys(Shape):
    """An instance and its key; what its index does not tell is null."""

    instance: str | None
    number: int | None
    key: str | None
    key_prefix: str
    slug: str
    current: bool
    file: KeyFile


class Keys(Shape):
    """`keys show --json`. `recipients`: public keys that savepoints are encrypted to."""

    store: str
    path: str
    instances: list[InstanceKeys]
    roots: list[KeyFile]
    identity: KeyFile
    recipients_file: KeyFile
    recipients: list[str]
    backed_up: bool
    backup_made: str | None
