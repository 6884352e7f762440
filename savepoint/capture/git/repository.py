"""The state of the user's git repository and its changes, only read, with none of its programs run.

    with begin(request, scratch) as pending:    three git processes are at work
        …                                       the conversation is read meanwhile
        found = pending.collect(deadline, exclusion)

How git is kept from running what a repository names: borrowed.py. No state of a repository is an
error here: what cannot be told is null or `unknown`, what cannot be stored is named with a reason.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from savepoint.capture.git import borrowed, gitfiles, gitindex
from savepoint.capture.git.borrowed import Blobs, Borrowed
from savepoint.capture.git.changes import Change, Collector, IndexFacts, path_json, raw_entries
from savepoint.capture.git.ignored import Ignored
from savepoint.core import limits
from savepoint.core.errors import DiskError, MalformedError
from savepoint.core.named import NamedTuple
from savepoint.store.worktree import current_worktree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import TracebackType

    from savepoint.capture.exclusion import Exclusion
    from savepoint.capture.git.gitfiles import Config, Head
    from savepoint.capture.git.gitindex import Entry, Reading
    from savepoint.capture.realpaths import RealPaths
    from savepoint.capture.request import Request
    from savepoint.core.strict_json import Json
    from savepoint.gitcmd import Running
    from savepoint.store.worktree import Worktree

_ID_BYTES = {"sha1": 20, "sha256": 32}
_EMPTY_TREE = {  # what a first commit differs from; git knows it without having it
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
_STAGED_ONLY = ("--ita-invisible-in-index",)  # what `git add -N` announced is not staged yet
_STAGED, _WORKING, _UNTRACKED = "staged changes", "changed files", "untracked files"


class Repository(NamedTuple):
    """What was found. Paths are those from the worktree's top."""

    state: dict[str, Json]  # the members of git_state before `changes`, in their order
    changes: tuple[Change, ...]
    deleted: tuple[Json, ...]  # paths that HEAD or the index has and the worktree has not
    excluded: tuple[tuple[Json, str], ...]  # path and reason, for each file not stored
    omitted: str | None  # what should have been stored and was not, or could not be told


def begin(request: Request, scratch: str) -> Pending:
    """Start git in the worktree that belongs to the request, and return at once; never raises.

    `scratch` is an existing folder of ours; what is made in it is removed at the end.
    """
    pending = Pending(request, scratch)
    pending.start()
    return pending


class Pending:
    """Git at work. Leaving the block ends what is left of it."""

    def __init__(self, request: Request, scratch: str) -> None:
        self._project = os.path.realpath(request.project)
        self._home = os.path.realpath(request.home)
        self._env = request.environment
        self._scratch = scratch
        self._worktree = current_worktree(request.project, request.cwd)
        self._head = gitfiles.Head(None, None, "")
        self._config: Config = {}
        self._borrowed: dict[Worktree, Borrowed] = {}
        self._reading: Reading | None = None  # of the worktree's own index
        self._running: dict[str, Running] = {}
        self._asked: list[Ignored] = []
        self._problems: list[str] = []  # what could not be told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for running in self._running.values():
            running.stop()
        for asked in self._asked:
            asked.stop()
        for ours in self._borrowed.values():
            ours.remove()

    def start(self) -> None:
        """Read what needs no git, and start what does."""
        worktree = self._worktree
        if worktree is None:
            return
        self._config = gitfiles.read_config(worktree)
        self._head = self._read_head(worktree)
        if self._head.problem:
            self._problems.append(self._head.problem)
        if worktree.top is None or self._is_bare(worktree):
            return
        algorithm = borrowed.object_format(self._config)
        if algorithm not in _ID_BYTES:
            self._problems.append(f"object format {gitfiles.printable(algorithm)} is not known")
            return
        try:
            ours = self._borrow(worktree)
        except DiskError as failure:
            self._problems.append(failure.message)
            return
        if not self._head.problem:
            tree = self._head.commit or _EMPTY_TREE[algorithm]
            self._start(ours, _STAGED, "diff-index", "--cached", *_STAGED_ONLY, *_RAW, tree)
        self._start(ours, _WORKING, "diff-files", *_RAW)
        rules = ("--exclude-standard", *self._without_home(worktree.top))
        self._start(ours, _UNTRACKED, "ls-files", "-o", "-z", *rules)

    def collect(self, deadline: float, exclusion: Exclusion) -> Repository:
        """What git found, and the changed files with their bytes; once.

        Takes at most CHANGES_SECONDS, and ends at `deadline` (of time.monotonic).
        """
        worktree = self._worktree
        deadline = min(deadline, time.monotonic() + limits.CHANGES_SECONDS)
        top = worktree.top if worktree and worktree.top else self._project
        gathered = Collector(top, self._project, exclusion, deadline)
        if worktree and self._running and worktree in self._borrowed:
            self._gather(gathered, self._borrowed[worktree], deadline)
        lost = [f"{reason} ({count})" for reason, count in gathered.lost.items()]
        return Repository(
            state=self._state(gathered),
            changes=tuple(gathered.changes),
            deleted=tuple(path_json(path) for path in sorted(gathered.deleted)),
            excluded=tuple(gathered.excluded),
            omitted="; ".join([*self._problems, *lost]) or None,
        )

    def ignored(self, paths: Iterable[str], real_paths: RealPaths) -> Ignored:
        """Ask which of these files .gitignore excludes; git answers beside our own work."""
        asked = Ignored(paths, real_paths, self._tracked, self._borrow, self._env)
        self._asked.append(asked)
        return asked

    def _read_head(self, worktree: Worktree) -> Head:
        """HEAD, from git itself where refs are not files (the reftable format)."""
        if gitfiles.last(self._config, "extensions.refstorage").lower() in {"", "files"}:
            return gitfiles.read_head(worktree)
        deadline = time.monotonic() + limits.CHANGES_SECONDS
        asked = [
            borrowed.start_in_place(worktree, self._env, *command)
            for command in (("symbolic-ref", "-q", "HEAD"), ("rev-parse", "-q", "--verify", "HEAD"))
        ]
        ref, commit = (running.finish(deadline) for running in asked)
        if not ref.ok and not commit.ok:
            return gitfiles.Head(None, None, commit.reason)
        name = os.fsdecode(ref.out.strip()) if ref.ok else None
        return gitfiles.Head(commit.out.strip().decode() if commit.ok else None, name, "")

    def _is_bare(self, worktree: Worktree) -> bool:
        """A `.git` that only worktrees elsewhere are linked to; their config says `bare` too."""
        is_linked = worktree.git_dir != worktree.common_dir
        return not is_linked and gitfiles.last(self._config, "core.bare").lower() == "true"

    def _borrow(self, worktree: Worktree) -> Borrowed:
        ours = self._borrowed.get(worktree)
        if ours is None:
            is_own = worktree == self._worktree
            config = self._config if is_own else gitfiles.read_config(worktree)
            commit = self._head.commit if is_own else None
            ours = self._borrowed[worktree] = Borrowed(worktree, commit, config, self._scratch)
        return ours

    def _start(self, ours: Borrowed, what: str, *args: str) -> None:
        self._running[what] = ours.start(self._env, *args)

    def _without_home(self, top: str) -> list[str]:
        """A home folder that is a repository holds all stores: not even their names are listed."""
        if not self._home.startswith(top.rstrip("/") + "/"):
            return []
        inside = self._home[len(top.rstrip("/")) :]
        for letter in "\\*?[":
            inside = inside.replace(letter, f"\\{letter}")
        return [f"--exclude={inside}/"]

    def _gather(self, gathered: Collector, ours: Borrowed, deadline: float) -> None:
        algorithm = borrowed.object_format(self._config)
        trust_modes = gitfiles.last(self._config, "core.filemode").lower() != "false"
        index = IndexFacts(ours.index_mtime, algorithm, trust_modes)
        staged = raw_entries(self._finish(_STAGED, deadline))
        gathered.add_staged(staged, Blobs(ours, self._env, deadline))
        working = raw_entries(self._finish(_WORKING, deadline))
        gathered.add_working(working, self._suspects(ours, _ID_BYTES[algorithm]), index)
        gathered.add_untracked(self._finish(_UNTRACKED, deadline))

    def _finish(self, what: str, deadline: float) -> bytes:
        """What a command printed: if it did not end well, as far as it came, and that is told."""
        running = self._running.get(what)
        if running is None:
            return b""
        result = running.finish(deadline)
        if not result.ok:
            self._problems.append(f"{what}: {gitfiles.printable(result.reason)}")
        return result.out[: result.out.rfind(b"\0") + 1]

    def _tracked(self, worktree: Worktree, paths: Collection[bytes]) -> Collection[bytes]:
        """Those of the paths, from its top, that the index surely has: of none of them git would
        say that it is excluded. Where nothing can be told, git is asked, and says what is wrong.
        """
        id_bytes = _ID_BYTES.get(borrowed.object_format(self._config))
        if worktree != self._worktree or id_bytes is None:
            return ()
        try:
            return self._read_index(self._borrow(worktree), id_bytes, paths).tracked
        except (DiskError, MalformedError):
            return ()

    def _suspects(self, ours: Borrowed, id_bytes: int) -> list[Entry]:
        try:
            return self._read_index(ours, id_bytes).suspects
        except MalformedError as failure:
            self._problems.append(failure.message)
            return []

    def _read_index(self, ours: Borrowed, id_bytes: int, paths: Collection[bytes] = ()) -> Reading:
        """Once: of a large repository it takes longer than all else. Raises MalformedError."""
        if self._reading is None:
            if not ours.index:
                return gitindex.Reading([], set())
            since = ours.index_mtime // 10**9
            self._reading = gitindex.read(ours.index, id_bytes, since, ours.shared.get, paths)
        return self._reading

    def _state(self, gathered: Collector) -> dict[str, Json]:
        worktree, head = self._worktree, self._head
        is_known = self._running and not self._problems and not gathered.lost
        status = "clean" if is_known else gitfiles.UNKNOWN
        top = worktree.top if worktree else None
        return {
            "current_commit": head.commit,
            "branch": head.branch,
            "remotes": dict(gitfiles.remotes(self._config)),
            "status": "dirty" if gathered.dirty else status,
            "last_push": gitfiles.last_push(worktree, head, self._config),
            "object_format": borrowed.object_format(self._config) if worktree else None,
            "operation": gitfiles.operation(worktree) if worktree else None,
            "roots": {
                "project": path_json(os.fsencode(self._project)),
                "worktree": path_json(os.fsencode(top)) if top else None,
            },
        }
