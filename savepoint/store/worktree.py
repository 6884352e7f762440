"""Which git repository a folder belongs to, read by hand: no git process, no program, no write.

A store is found by the common directory, which all worktrees of a repository share. Ownership is
not looked at (git's `safe.directory`): that guards against programs which a repository's config
names, and nothing here runs any.
"""

from __future__ import annotations

import os
import stat

from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Worktree(NamedTuple):
    """A repository as seen from one folder. Real paths; bytes that are not UTF-8 as surrogates."""

    top: str | None  # the folder whose files it tracks; None in a bare repository
    git_dir: str  # of this worktree: HEAD, index
    common_dir: str  # of all worktrees: objects, refs, config


def find_worktree(path: str) -> Worktree | None:
    """The repository that `path`, or the nearest folder above it, belongs to; None without one.

    As git looks for it: up to the root of the file system. Never raises: what cannot be read or
    understood is no repository. A `.git` folder that lost its HEAD still counts, since its files
    can still be saved.
    """
    try:
        return worktree_above(os.path.realpath(path), {})
    except (OSError, ValueError):  # a path with NUL in it, or relative to a folder that is gone
        return None


def worktree_above(folder: str, known: dict[str, Worktree | None]) -> Worktree | None:
    """As `find_worktree`, for many folders, by their real paths; `known`: what was found so far."""
    device = found = None
    passed = []
    for one in upwards(folder):
        here = _device(one)
        if here is not None:  # a folder that is gone says nothing; those above it may
            if device not in {None, here}:
                break
            device = here
            if one in known:
                found = known[one]
                break
            found = _below(one) or _bare(one)
        passed.append(one)
        if found:
            break
    known.update(dict.fromkeys(passed, found))
    return found


def upwards(folder: str) -> Iterator[str]:
    """The folder, and all above it."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def current_worktree(project: str, cwd: str) -> Worktree | None:
    """The worktree whose state belongs to a save: that of `cwd` if it is the project's repository.

    Entering a worktree moves the agent's cwd but not the project folder of its hooks
    (claude-code#87890). A cwd in some other repository says nothing about the project.
    """
    home = find_worktree(project)
    here = find_worktree(cwd)
    return here if home and here and here.common_dir == home.common_dir else home


def _below(folder: str) -> Worktree | None:
    """`folder` as the top of a worktree: with a `.git` folder, or a file that names one. Where
    that one is gone, git stops as well, and does not take the repository further up for it.
    """
    dot_git = os.path.join(folder, ".git")
    mode = _mode(dot_git)
    if not mode:
        return None
    dot_git = os.path.realpath(dot_git)
    if stat.S_ISDIR(mode) and _holds_a_repository(common := _common(dot_git)):
        return Worktree(folder, dot_git, common)
    named = _pointer(dot_git, b"gitdir: ") if stat.S_ISREG(mode) else None
    if named is None:
        return None
    git_dir = os.path.realpath(os.path.join(folder, named))
    return Worktree(folder, git_dir, _common(git_dir))


def _bare(folder: str) -> Worktree | None:
    """`folder` as a bare repository. A `.git` is none: its worktree is one level up."""
    parts = (os.path.join(folder, name) for name in ("objects", "refs"))
    if os.path.basename(folder) == ".git" or not all(stat.S_ISDIR(_mode(part)) for part in parts):
        return None
    return Worktree(None, folder, _common(folder)) if _has_head(folder) else None


def _common(git_dir: str) -> str:
    named = _pointer(os.path.join(git_dir, "commondir"), b"")
    return git_dir if named is None else os.path.realpath(os.path.join(git_dir, named))


def _holds_a_repository(common: str) -> bool:
    """Not so an empty `.git`, as sandboxes make it to keep one from being made."""
    return _has_head(common) or stat.S_ISDIR(_mode(os.path.join(common, "objects")))


def _has_head(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, "HEAD"))


def _pointer(path: str, prefix: bytes) -> str | None:
    """The path that a one-line file holds after `prefix`."""
    try:
        data = read_bounded(path, limits.GIT_FILE_BYTES)
    except SavepointError:
        return None
    if data is None or not data.startswith(prefix):
        return None
    named = data.removeprefix(prefix).rstrip(b"\r\n")
    return os.fsdecode(named) if named and b"\0" not in named else None


def _mode(path: str) -> int:
    """What stands there, links followed; 0 for nothing that can be seen."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None
