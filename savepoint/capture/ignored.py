"""Which files .gitignore excludes: git decides, in each worktree that a file lies in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint import gitcmd
from savepoint.capture import gitfiles
from savepoint.core.errors import DiskError
from savepoint.store.worktree import Worktree, find_worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from savepoint.capture.borrowed import Borrowed
    from savepoint.gitcmd import Result

_EXCLUDED = "excluded by .gitignore"
_NONE_EXCLUDED = 1  # git's exit code


def ignored(
    paths: Iterable[str],
    borrow: Callable[[Worktree], Borrowed],
    env: Mapping[str, str],
    deadline: float,
) -> dict[str, str]:
    """Real path → reason, for each of `paths` that is excluded.

    A tracked file never is. A file of which git cannot tell is: what must not be captured counts
    for more than what stands in the conversation anyway. Outside a worktree nothing is.
    """
    found = _by_worktree(paths)
    questions = {worktree: _ask(worktree, found[worktree], borrow, env) for worktree in found}
    excluded = {}
    for worktree, question in questions.items():
        excluded.update(_answer(worktree, found[worktree], question.finish(deadline)))
    return excluded


def _by_worktree(paths: Iterable[str]) -> dict[Worktree, list[str]]:
    known: dict[str, Worktree | None] = {}
    found: dict[Worktree, list[str]] = {}
    for path in paths:
        if "\0" in path:  # an agent may write anything; no file is called that
            continue
        real = os.path.realpath(path)
        folder = os.path.dirname(real)
        if folder not in known:
            known[folder] = find_worktree(folder)
        worktree = known[folder]
        if worktree and worktree.top:
            found.setdefault(worktree, []).append(real)
    return found


def _ask(
    worktree: Worktree,
    paths: list[str],
    borrow: Callable[[Worktree], Borrowed],
    env: Mapping[str, str],
) -> gitcmd.Running:
    prefix = _prefix(worktree)
    names = b"".join(os.fsencode(path.removeprefix(prefix)) + b"\0" for path in paths)
    try:
        return borrow(worktree).start(env, "check-ignore", "-z", "--stdin", stdin=names)
    except DiskError as failure:
        return gitcmd.Failed(failure.message)


def _answer(worktree: Worktree, paths: list[str], result: Result) -> dict[str, str]:
    if result.code not in {0, _NONE_EXCLUDED} or result.problem:
        reason = gitfiles.printable(result.reason)
        return dict.fromkeys(paths, f"git cannot say whether .gitignore excludes it: {reason}")
    names = result.out.split(b"\0")[:-1]
    return {_prefix(worktree) + os.fsdecode(name): _EXCLUDED for name in names}


def _prefix(worktree: Worktree) -> str:
    return (worktree.top or "").rstrip("/") + "/"
