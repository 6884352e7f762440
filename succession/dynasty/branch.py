"""Branches: each has a dynasty of its own, and a folder that no other name leads to."""

from __future__ import annotations

import os
import re
import time

from savepoint.capture.git import gitfiles
from savepoint.core.digest import sha256
from savepoint.core.errors import UnverifiableError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from savepoint.store.worktree import current_worktree
from succession.dynasty.constants import GIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.store.worktree import Worktree

NO_REPOSITORY = "no-repository"
_DIGITS = 12  # hex digits of a commit or of a name's digest
_SLUG_CHARS = 40


class Branch(NamedTuple):
    """Where a dynasty belongs."""

    name: str  # for people
    folder: str  # `main`, or `feature-a~5f3c…`
    commit: str | None = None  # full id of HEAD
    worktree: Worktree | None = None


def current(project: str, cwd: str, env: Mapping[str, str]) -> Branch:
    """The branch of the project, in the worktree that `cwd` is in. Raises UnverifiableError where
    HEAD cannot be read: no other branch's dynasty is taken for it (peers.md 3.3, defect 4).
    """
    worktree = current_worktree(project, cwd)
    if worktree is None:
        return Branch(NO_REPOSITORY, f"{NO_REPOSITORY}~")
    head = _head(worktree, env)
    if head.ref is not None:
        name = head.ref.removeprefix(gitfiles.BRANCHES)
        return Branch(gitfiles.printable(name), folder(name), head.commit, worktree)
    if head.commit is None:
        raise UnverifiableError(
            f"the branch cannot be told: {head.problem}", hint="look at it with `git status`"
        )
    name = f"detached-{head.commit[:_DIGITS]}"
    return Branch(name, name, head.commit, worktree)


def folder(name: str) -> str:
    """The folder of a branch: its name if that is plain, else with a digest. `~` is in no name of a
    branch, so that none leads to another's folder; nor do letter case, `..` or length.
    """
    if _PLAIN.fullmatch(name) and not _DETACHED.fullmatch(name):
        return name
    digest = sha256(os.fsencode(name)).hexdigest()[:_DIGITS]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_SLUG_CHARS].strip("-")
    return f"{slug or 'x'}~{digest}"


def _head(worktree: Worktree, env: Mapping[str, str]) -> gitfiles.Head:
    """HEAD, from git itself where refs are not files."""
    config = gitfiles.read_config(worktree)
    if gitfiles.last(config, "extensions.refstorage").lower() in {"", "files"}:
        return gitfiles.read_head(worktree)
    from savepoint.capture.git import borrowed  # hardly ever: most refs are files

    deadline = time.monotonic() + GIT_SECONDS
    asked = [
        borrowed.start_in_place(worktree, env, *command)
        for command in (("symbolic-ref", "-q", "HEAD"), ("rev-parse", "-q", "--verify", "HEAD"))
    ]
    ref, commit = (running.finish(deadline) for running in asked)
    return gitfiles.Head(
        commit.out.strip().decode("ascii", "replace") if commit.ok else None,
        os.fsdecode(ref.out.strip()) if ref.ok else None,
        "" if ref.ok or commit.ok else commit.reason,
    )


_PLAIN = late(r"[a-z0-9][a-z0-9_-]{0,63}")
_DETACHED = late(rf"detached-[0-9a-f]{{{_DIGITS}}}")
