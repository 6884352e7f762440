"""The commits of a branch. Git is asked at once, and answers beside our own imports and reading."""

from __future__ import annotations

import time

from savepoint.capture.git import gitfiles
from savepoint.capture.git.borrowed import Borrowed
from savepoint.core.errors import DiskError
from succession.dynasty.constants import COMMITS_READ, GIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.store.layout import Store
    from succession.dynasty.branch import Branch

_LOG = ("log", "--no-show-signature", "--no-color", f"-n{COMMITS_READ}", "--format=%H %s")


class Asked:
    """A git that lists commits; `finish` it."""

    def __init__(self, ours: Borrowed, env: Mapping[str, str], commit: str) -> None:
        self._ours = ours
        self._running = ours.start(env, *_LOG, commit)

    def finish(self) -> tuple[tuple[str, str], ...]:
        """Full ids and clean subjects, newest first; empty where git cannot tell. Once."""
        try:
            told = self._running.finish(time.monotonic() + GIT_SECONDS)
        finally:
            self._ours.remove()
        lines = told.out.decode("utf-8", "replace").split("\n") if told.ok else []
        split = (line.partition(" ") for line in lines if line)
        return tuple((commit, clean(subject)) for commit, _, subject in split)


def clean(text: str) -> str:
    """As it may stand on a line of a page."""
    return gitfiles.printable(" ".join(text.split()))


def ask(store: Store, branch: Branch, env: Mapping[str, str]) -> Asked | None:
    """Begin; None where there are none, or they cannot be asked for. Nothing that the repository
    names is run (capture/git/borrowed.py).
    """
    worktree = branch.worktree
    if worktree is None or branch.commit is None:
        return None
    try:
        config = gitfiles.read_config(worktree)
        ours = Borrowed(worktree, branch.commit, config, store.scratch, index=False)
    except DiskError:
        return None
    return Asked(ours, env, branch.commit)
