"""repo.git: made, asked and kept tidy. No setting but ours counts in it, and nobody's hooks run.

What git leaves undone for a commit to survive a power cut is done here: it never syncs the
directories that its new names stand in (measured: the old commit came back in 3 of 3 cuts).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from savepoint import gitcmd
from savepoint.core import limits
from savepoint.core.errors import CommitError, DiskError, MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store import durable
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

LEAST_VERSION = (2, 36)  # knows core.fsync; an older one would lose refs without a word
ID_DIGITS = 40  # SHA-1: stated at creation, since git 3 changes the default
BRANCHES = "refs/heads/savepoints"

_SETTINGS = (
    "core.fsync=all",  # the default syncs neither refs nor loose objects (git-config(1))
    "core.compression=0",  # what is encrypted does not shrink: deflating costs 25 ms a MB
    "core.bigFileThreshold=512k",  # larger blobs are streamed, not held in memory
    "core.hooksPath=" + os.devnull,
    "core.logAllRefUpdates=false",
    "core.sharedRepository=0600",  # whatever the umask
    "fastimport.unpackLimit=1",  # one pack a commit; loose objects would be synced one by one
    "gc.auto=0",  # the worker repacks; nothing else may move objects under a save
    "maintenance.auto=false",
    "gc.packRefs=false",
    "transfer.fsckObjects=true",  # what a hostile remote sends is looked at before it is taken
)
OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))
NEXT = ".next"  # in the name of a whole repository that is to take the place of a damaged one
_OURS = "savepoint"  # folder in repo.git for what is ours and no part of git
_OF_KERNEL = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.ENOMEM, errno.EAGAIN),
)
_DISK = (
    (errno.ENOSPC, b"Out of diskspace"),  # git's own words where a write took no bytes
    (errno.ENOMEM, b"Out of memory"),
    *((number, os.strerror(number).encode()) for number in _OF_KERNEL),
)
_ENDED = b" died of signal "  # git, of a git that it had started
_LEAST_FOREIGN = 126  # exit codes from here: of a shell or loader that found no git, of a signal,
_FATAL = 128  # of a git that knows the command otherwise; but this is git's own, for whatever it is


class Repository(NamedTuple):
    """A store's repository, and what it takes to run git in it."""

    path: str
    env: Mapping[str, str]  # what git may see of the environment: PATH, HOME, TMPDIR …
    deadline: float  # of time.monotonic(): until then every git is done or killed

    @classmethod
    def of(cls, store: Store, env: Mapping[str, str], deadline: float) -> Repository:
        """That of `store`, whether it exists or not."""
        return cls(store.repository, env, deadline)

    def ours(self, name: str) -> str:
        """A file in repo.git that is ours: caches, never evidence."""
        return os.path.join(self.path, _OURS, name)

    @property
    def option(self) -> str:
        """How every git of ours names the repository; by it a live one is known."""
        return f"--git-dir={self.path}"

    def start(
        self,
        *args: str,
        stdin: bytes | Iterable[bytes] = b"",
        limit: int = limits.GIT_OUTPUT_BYTES,
    ) -> gitcmd.Running:
        """Git at work in the repository. Named outright, so that it looks for none, and asks
        nobody whether the folder's owner is safe.
        """
        where = (self.option, *OPTIONS)
        return gitcmd.start((*where, *args), env=self.env, stdin=stdin, limit=limit, own=True)

    def run(self, *args: str, stdin: bytes = b"", limit: int = limits.GIT_OUTPUT_BYTES) -> bytes:
        """What git prints. Raises CommitError, DiskError."""
        result = self.start(*args, stdin=stdin, limit=limit).finish(self.deadline)
        if not result.ok:
            raise failure(result)
        return result.out


def ensure(repo: Repository) -> None:
    """The repository is there. Raises CommitError (no git, too old, no repository), DiskError."""
    if os.path.isfile(os.path.join(repo.path, "HEAD")) or finish_exchange(repo):
        return
    if os.path.lexists(repo.path):
        raise CommitError(f"{repo.path} is no git repository", hint="run `savepoint fsck`")
    _create(repo)


def _create(repo: Repository) -> None:
    """Under another name first: `git init` that is killed leaves half a repository. HEAD names a
    branch that never exists: were it ours, git would lock HEAD as well for each commit.
    """
    temporary = f"{repo.path}{durable.TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    version = check_version(repo)
    formats = ["--object-format=sha1", *(["--ref-format=files"] if version >= (2, 45) else [])]
    new = repo._replace(path=temporary)
    try:
        new.run("init", "--quiet", "--bare", "--template=", "--initial-branch=none", *formats)
        durable.make_directories(os.path.join(temporary, BRANCHES))
        durable.make_directories(os.path.join(temporary, _OURS))
        durable.publish_folder(temporary, repo.path)
    finally:
        durable.remove_folder(temporary)


def finish_exchange(repo: Repository) -> bool:
    """Put a repository that a repair has made into the place of the one that it set aside, if it
    was killed in between. Else a new one would be begun, and what was rescued be lost.
    """
    if os.path.lexists(repo.path) or not os.path.isdir(repo.path + NEXT):
        return False
    durable.set_aside(repo.path + NEXT, repo.path)
    return True


def check_version(repo: Repository) -> tuple[int, ...]:
    """Major and minor of git. Raises CommitError for none, or one that is too old."""
    running = gitcmd.start(("version",), env=repo.env, own=True)
    result = running.finish(repo.deadline)
    if not result.ok:
        raise failure(result)
    words = result.out.decode("utf-8", "replace").split()
    numbers = words[2].split(".")[:2] if len(words) > 2 else []
    version = tuple(int(one) for one in numbers if one.isascii() and one.isdigit())
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise CommitError(
            f"{' '.join(words)[:80]} is too old", hint=f"install git {least} or newer"
        )
    return version


def program(repo: Repository) -> list[Json]:
    """Which git this is: path, device, inode, size and mtime_ns; nothing where there is none.
    Raises DiskError.
    """
    path = gitcmd.find_git(repo.env)
    if path is None:
        return []
    try:
        seen = os.stat(path)
    except OSError as failure:  # it is being replaced just now
        raise DiskError.of(failure, path) from failure
    return [path, seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns]


def failure(result: gitcmd.Result) -> SavepointError:
    """What to raise for a git that failed: `hindrance`, else CommitError."""
    return hindrance(result) or CommitError(result.reason)


def hindrance(result: gitcmd.Result) -> SavepointError | None:
    """What kept git from looking, so that it says nothing of the repository: DiskError where the
    kernel was in its way (its words are those of strerror, by LC_ALL=C), NoAnswerError where it
    did not end by itself (out of time; the kernel kills who takes too much memory).
    """
    for number, words in _DISK:
        if words in result.err:
            return DiskError.of(OSError(number, words.decode()), "git")
    foreign = result.code < 0 or (result.code >= _LEAST_FOREIGN and result.code != _FATAL)
    if result.problem or foreign or _ENDED in result.err:
        return NoAnswerError(result.reason)
    return None


class NoAnswerError(CommitError):
    """Git could not be started, or did not end by itself: nothing is known of the repository."""


# refs, read by hand: a git process costs 3 ms


def branch(slug: str) -> str:
    """The ref of an instance."""
    return f"{BRANCHES}/{slug}"


def read_ref(repo: Repository, name: str) -> str | None:
    """The commit that a ref names; None where there is no such ref.

    Raises BrokenRefError where its file holds no commit id, DiskError.
    """
    try:
        data = read_bounded(os.path.join(repo.path, name), limits.GIT_FILE_BYTES)
    except MalformedError as failure:
        raise BrokenRefError(failure.message) from failure
    if data is None:
        data = _packed(repo, name)
    if data is None:
        return None
    text = data.rstrip(b"\n")
    if len(text) == ID_DIGITS and not text.strip(b"0123456789abcdef"):
        return text.decode()
    raise BrokenRefError(f"ref {name} holds no commit id", empty=not data.strip(b"\0\n"))


class BrokenRefError(CommitError):
    """The file of a ref is not what git writes; `empty` where a power cut has left it without its
    content.
    """

    default_hint = "run `savepoint fsck --repair`"

    def __init__(self, message: str, *, empty: bool = False) -> None:
        super().__init__(message)
        self.empty = empty


def _packed(repo: Repository, name: str) -> bytes | None:
    """Nothing of ours packs refs, but people do."""
    data = read_bounded(os.path.join(repo.path, "packed-refs"), limits.GIT_REFS_BYTES) or b""
    end = data.find(b" " + name.encode() + b"\n")
    return data[data.rfind(b"\n", 0, end) + 1 : end] if end >= 0 else None


def sync(repo: Repository) -> None:
    """What git has written is durable, with its names. Raises DiskError."""
    for name in ("objects/pack", BRANCHES, os.path.dirname(BRANCHES)):
        durable.sync_directory(os.path.join(repo.path, name))
