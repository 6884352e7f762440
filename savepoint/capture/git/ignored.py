"""Which files .gitignore excludes: git decides, in each worktree that a file lies in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint import gitcmd
from savepoint.capture.git import gitfiles
from savepoint.core import limits
from savepoint.core.errors import DiskError
from savepoint.store.worktree import worktree_above

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from savepoint.capture.git.borrowed import Borrowed
    from savepoint.capture.realpaths import RealPaths
    from savepoint.store.worktree import Worktree

_EXCLUDED = "excluded by .gitignore"
_FIELDS = 4  # of an answer: file, line and pattern of the rule that decides, or nothing; the path


class Ignored:
    """Which of `paths` are excluded. A tracked file never is; mostly all are, and then no git is
    started. A file of which git cannot tell is: what must not be captured counts for more than what
    stands in the conversation anyway. Outside a worktree nothing is.

    Git is at work from now on; whoever asks also waits for the answer. `tracked`: of paths from a
    worktree's top those that are known to be tracked.
    """

    def __init__(
        self,
        paths: Iterable[str],
        real_paths: RealPaths,
        tracked: Callable[[Worktree, Collection[bytes]], Collection[bytes]],
        borrow: Callable[[Worktree], Borrowed],
        env: Mapping[str, str],
    ) -> None:
        self._questions = []
        for worktree, inside in _by_worktree(paths, real_paths).items():
            names = {path: _name(worktree, path) for path in inside}
            known = tracked(worktree, set(names.values()))
            left = [path for path in inside if names[path] not in known]
            if left:
                self._questions.append(_Question(worktree, left, borrow, env))

    def answer(self, deadline: float) -> dict[str, str]:
        """Real path → reason, for each that is excluded. deadline: of time.monotonic()."""
        excluded: dict[str, str] = {}
        for question in self._questions:
            excluded |= question.answer(deadline)
        return excluded

    def stop(self) -> None:
        """Nobody is interested any more. Harmless after `answer`."""
        for question in self._questions:
            question.stop()


def _by_worktree(paths: Iterable[str], real_paths: RealPaths) -> dict[Worktree, list[str]]:
    known: dict[str, Worktree | None] = {}
    found: dict[Worktree, list[str]] = {}
    for path in paths:
        if "\0" in path:  # an agent may write anything; no file is called that
            continue
        real = real_paths.of(path)
        folder = os.path.dirname(real)
        worktree = known[folder] if folder in known else worktree_above(folder, known)
        if worktree and worktree.top:
            found.setdefault(worktree, []).append(real)
    return found


def _name(worktree: Worktree, path: str) -> bytes:
    """A real path in it, from its top."""
    return os.fsencode(path.removeprefix((worktree.top or "").rstrip("/") + "/"))


class _Question:
    """`check-ignore` at work on the files of one worktree."""

    def __init__(
        self,
        worktree: Worktree,
        paths: list[str],
        borrow: Callable[[Worktree], Borrowed],
        env: Mapping[str, str],
    ) -> None:
        self._worktree = worktree
        self._borrow = borrow
        self._env = env
        self._running = self._ask(paths)
        self._paths = paths

    def answer(self, deadline: float) -> dict[str, str]:
        """The files that are excluded, or undecided. Git gives up at a path that it cannot judge
        (one in a submodule that is not there), so it is asked again for those behind it.
        """
        excluded: dict[str, str] = {}
        paths = self._paths
        undecided = ""
        for _ in range(limits.GIT_RETRIES):
            result = self._running.finish(deadline)
            patterns = result.out.split(b"\0")[:-1][_FIELDS - 2 :: _FIELDS]
            for path, pattern in zip(paths, patterns, strict=False):
                if pattern and not pattern.startswith(b"!"):
                    excluded[path] = _EXCLUDED
            paths = paths[len(patterns) :]
            if not paths:
                return excluded
            why = gitfiles.printable(result.reason)
            undecided = f"git cannot say whether .gitignore excludes it: {why}"
            if result.problem:
                break
            excluded[paths[0]] = undecided
            paths = paths[1:]
            self._running = self._ask(paths)
        self._running.stop()
        return excluded | dict.fromkeys(paths, undecided)

    def stop(self) -> None:
        """End git, if it is still at work."""
        self._running.stop()

    def _ask(self, paths: list[str]) -> gitcmd.Running:
        names = b"".join(_name(self._worktree, path) + b"\0" for path in paths)
        command = ("check-ignore", "--verbose", "--non-matching", "-z", "--stdin")
        try:
            return self._borrow(self._worktree).start(self._env, *command, stdin=names)
        except DiskError as failure:
            return gitcmd.Failed(failure.message)
