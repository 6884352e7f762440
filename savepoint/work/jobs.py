"""Jobs: what is owed for a store. They are derived anew from the store whenever somebody asks, so
there is no queue to lose; only the attempts at them are remembered (outbox.py).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from savepoint.core import limits
from savepoint.core.named import NamedTuple
from savepoint.gitlayer.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.store.layout import Store


class Surroundings(NamedTuple):
    """What a job may know of the machine; allow-listed by the caller."""

    environment: Mapping[str, str]  # for children
    config_dir: str  # of the agent

    def repository(self, store: Store) -> Repository:
        """The store's, to be asked something small."""
        return Repository.of(store, self.environment, time.monotonic() + limits.READ_SECONDS)


class Job(NamedTuple):
    """One thing that is owed."""

    kind: str  # save, commit, push, anchor, audit, repack
    key: str  # an instance's slug or a session's key: with `kind`, its identity
    seq: int | None  # the newest savepoint that it is about
    since: int  # Unix seconds


class Kind(Protocol):
    """How jobs of one kind are found and done."""

    @property
    def name(self) -> str:
        """The kind of its jobs."""

    @property
    def seconds(self) -> float:
        """How long one attempt may take."""

    def owed(self, store: Store, around: Surroundings) -> list[Job]:
        """What is owed now. Raises SavepointError."""

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> float | None:
        """Try once, until `deadline` of time.monotonic(). None: done; else seconds until there may
        be news of what is under way, so that nothing else waits for it. Raises SavepointError:
        `retry` says whether the same can succeed later by itself.
        """
