"""The kinds of jobs that a worker does for the local store and for git, in the order of its rounds.

What is saved can be committed, what is committed can be pushed; what only looks after the store
comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.work.kinds.audit import Audit
from savepoint.work.kinds.commit import Commit
from savepoint.work.kinds.pending import Pending
from savepoint.work.kinds.push import Push
from savepoint.work.kinds.repack import Repack

if TYPE_CHECKING:
    from savepoint.gitlayer.remote.push import Progress
    from savepoint.work.jobs import Kind


def for_git(progress: Progress = lambda _done, _total: None) -> list[Kind]:
    """All of them. progress: told how far a push has come, in bytes."""
    return [Pending(), Commit(), Push(progress), Audit(), Repack()]
