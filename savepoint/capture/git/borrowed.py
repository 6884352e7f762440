"""A git directory of our own for the user's files: git reads them, and runs nothing that they name.

It has the user's objects and ignore rules as links, a copy of the index, a HEAD, and a config that
is ours. So whatever the repository's config says does not exist for git: no filter, fsmonitor,
hook, textconv, external diff or include, under whatever name (a driver called `a=b` cannot be
overridden by `-c`, openai/codex#24954); no promisor to fetch a missing object from, which a git
that knows no GIT_NO_LAZY_FETCH does with the repository's own `core.sshCommand`; no `core.worktree`
that points at another folder. And what git does to an index when it reads one (it touches the
shared part of a split index) it does to the copy.
"""

from __future__ import annotations

import os

from savepoint import gitcmd
from savepoint.capture.git import gitfiles
from savepoint.core import limits
from savepoint.core.errors import DiskError, SavepointError
from savepoint.store.durable import ScratchFolder
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from savepoint.capture.git.gitfiles import Config
    from savepoint.store.worktree import Worktree

# The user's own ~/.gitconfig is still read, for the ignore rules it names.
_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "protocol.allow=never"),
)
# The only settings taken over: how the file system under the worktree behaves, and that files which
# a sparse checkout leaves out, but which are there, are to be looked at.
_BOOLEANS = (
    *("filemode", "symlinks", "ignorecase", "precomposeunicode", "trustctime"),
    "sparsecheckout",
)
_BOOLEAN_WORDS = {"true", "false", "yes", "no", "on", "off", "1", "0"}

# Git reads the contents of entries that are not older than the index, through the filters that
# .gitattributes asks for. In 2106, the end of the index's own seconds, none is.
_FAR_AHEAD = 2**32 - 2

_BLOB_FIELDS = 3  # id, kind, size


class Borrowed:
    """One worktree, ready for git to read; `index`: also what is staged, which may be long, and no
    command about commits looks at it. Raises DiskError where it cannot be set up.
    """

    def __init__(
        self,
        worktree: Worktree,
        commit: str | None,
        config: Config,
        scratch: str,
        *,
        index: bool = True,
    ) -> None:
        self.worktree = worktree
        self.index = b""  # as it was read; empty where there is none
        self.index_mtime = 0  # of the user's index, nanoseconds
        self.shared: dict[str, bytes] = {}  # the shared parts of a split index, by id
        self._folder = ScratchFolder(scratch)
        try:
            self._fill(commit, config, index=index)
        except DiskError:
            self._folder.remove()
            raise

    def _fill(self, commit: str | None, config: Config, *, index: bool) -> None:
        folder, worktree = self._folder, self.worktree
        folder.folder("refs")
        folder.link("objects", os.path.join(worktree.common_dir, "objects"))
        folder.link("info", os.path.join(worktree.common_dir, "info"))
        folder.write("HEAD", (commit or "ref: refs/heads/none").encode() + b"\n")
        folder.write("config", _own_config(config))
        if index:
            self._read_index()
        if self.index:
            folder.write("index", self.index, mtime=_FAR_AHEAD)
        for name, data in self.shared.items():
            folder.write("sharedindex." + name, data)

    def _read_index(self) -> None:
        """The index with its mtime. It is replaced whole, never written in place; if that happens
        between the two, the older mtime only makes more entries suspect.
        """
        git_dir = self.worktree.git_dir
        path = os.path.realpath(os.path.join(git_dir, "index"))
        try:
            self.index_mtime = os.stat(path).st_mtime_ns
            self.index = read_bounded(path, limits.GIT_INDEX_BYTES) or b""
            shared = [name for name in os.listdir(git_dir) if name.startswith("sharedindex.")]
            for name in shared:
                data = read_bounded(os.path.join(git_dir, name), limits.GIT_INDEX_BYTES)
                self.shared[name.removeprefix("sharedindex.")] = data or b""
        except FileNotFoundError:
            return
        except (OSError, SavepointError) as failure:
            raise DiskError(f"the index cannot be read: {failure}") from failure

    def start(
        self,
        env: Mapping[str, str],
        *args: str,
        stdin: bytes = b"",
        limit: int = limits.GIT_OUTPUT_BYTES,
    ) -> gitcmd.Running:
        """Start a git command that reads the worktree."""
        top = self.worktree.top or "/"
        where = ("-C", top, f"--git-dir={self._folder.path}", f"--work-tree={top}")
        return gitcmd.start((*where, *_OPTIONS, *args), env=env, stdin=stdin, limit=limit)

    def remove(self) -> None:
        """Remove the folder; git must have ended."""
        self._folder.remove()


class Blobs:
    """Staged blobs, by id. What git cannot give is absent."""

    def __init__(self, repository: Borrowed, env: Mapping[str, str], deadline: float) -> None:
        self._repository = repository
        self._env = env
        self._deadline = deadline

    def sizes(self, ids: Collection[str]) -> dict[str, int]:
        """Bytes of each blob. Asked first, since git prints a blob of any size."""
        lines = self._ask("--batch-check", ids).decode("ascii", "replace").splitlines()
        answers = [line.split(" ") for line in lines]
        return {oid: int(size) for oid, kind, size in filter(_is_blob, answers)}

    def contents(self, ids: Collection[str]) -> dict[str, bytes]:
        """The bytes of each blob: a line `<id> blob <size>`, the bytes, LF; and again."""
        output = self._ask("--batch", ids)
        found = {}
        at = 0
        while (end := output.find(b"\n", at)) >= 0:
            header = output[at:end].decode("ascii", "replace").split(" ")
            at = end + 1
            if _is_blob(header):
                size = int(header[2])
                if at + size < len(output):
                    found[header[0]] = output[at : at + size]
                at += size + 1
        return found

    def _ask(self, how: str, ids: Collection[str]) -> bytes:
        lines = "".join(f"{oid}\n" for oid in ids).encode()
        limit = limits.CHANGES_BYTES + limits.GIT_OUTPUT_BYTES
        start = self._repository.start
        running = start(self._env, "cat-file", how, stdin=lines, limit=limit)
        return running.finish(self._deadline).out


def _is_blob(header: list[str]) -> bool:
    return len(header) == _BLOB_FIELDS and header[1] == "blob" and header[2].isdigit()


def start_in_place(worktree: Worktree, env: Mapping[str, str], *args: str) -> gitcmd.Running:
    """Start a git command that reads refs, in the user's own git directory. Only for those, which
    look at neither index, files nor objects: nothing that the config names is run for them.
    """
    return gitcmd.start((f"--git-dir={worktree.git_dir}", *_OPTIONS, *args), env=env)


def object_format(config: Config) -> str:
    """`sha1` or `sha256`, or another that we and git do not know."""
    return gitfiles.last(config, "extensions.objectformat").lower() or "sha1"


def _own_config(config: Config) -> bytes:
    lines = ["[core]", "repositoryformatversion = 1", "bare = false"]
    for name in _BOOLEANS:
        value = gitfiles.last(config, f"core.{name}").lower()
        if value in _BOOLEAN_WORDS:
            lines.append(f"{name} = {value}")
    excludes = gitfiles.last(config, "core.excludesfile")
    if excludes:
        lines.append(f"excludesfile = {_quoted(excludes)}")
    lines += ["[extensions]", f"objectformat = {_quoted(object_format(config))}", ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
