"""Commits to our own repository: one `git fast-import` a run, durable with its ref when it ends.

    records that git lacks → packs, snapshot, RECOVER.tsv encrypted → commits → ref → synced

The caller holds the store lock. A failure fails no save: what is not committed now is queued, by
nothing but the index being ahead of the ref, and the next run commits it in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import CommitError, DiskError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.core.packs import compress
from savepoint.gitlayer import cursor, repository, tree
from savepoint.gitlayer.commits import by_hand, message, script
from savepoint.gitlayer.commits.encrypt import Sealer
from savepoint.gitlayer.commits.plan import Content, New, Plan, Step, plan
from savepoint.gitlayer.cursor import Base, Cursor
from savepoint.gitlayer.repair.leftovers import Writing
from savepoint.gitlayer.repository import BrokenRefError, NoAnswerError, Repository
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths

_AUDIENCE = ""  # beside the packs in a map of blobs: to whom they were encrypted (Sealer.audience)


class Committed(NamedTuple):
    """What a run has made durable."""

    cursor: Cursor
    commits: tuple[tuple[int, str], ...]  # sequence of the record, commit
    blobs: dict[str, str]  # pack → blob of all packs in these commits: for the session's cache
    left: int  # records that wait for another run
    skipped: tuple[tuple[int, str], ...]  # savepoints damaged on disk, and why: git has them not
    warnings: tuple[str, ...]


def commit(
    paths: InstancePaths, env: Mapping[str, str], deadline: float, newest: New | None = None
) -> Committed | None:
    """Commit what the index has and the ref has not; None where that is nothing.

    env: what git may see of the environment. deadline: of time.monotonic(); then git is killed and
    the ref stands where it was. Raises CommitError, KeyFileError, TamperedError, DiskError.
    """
    repo = Repository.of(paths.store, env, deadline)
    repository.ensure(repo)
    with Writing(repo, paths.slug):
        try:
            return _commit(repo, paths, newest)
        except RefMovedError:  # the git of a process that died has ended its work meanwhile
            return _commit(repo, paths, newest)


def _commit(repo: Repository, paths: InstancePaths, newest: New | None) -> Committed | None:
    base, lines = _base(repo, paths)
    todo = plan(paths, base, lines, newest)
    if not todo.steps:
        if todo.skipped:
            raise TamperedError(todo.skipped[0][1])
        return None
    program = repository.program(repo)
    if program != base.program:
        repository.check_version(repo)
    sealer = Sealer(paths.store)
    known = _known(repo, base, todo, newest, sealer.audience)
    run = _Run(repo, paths, base, todo, known, sealer)
    return run.finished(_import(run), program)


def _base(repo: Repository, paths: InstancePaths) -> tuple[Base, bytes]:
    try:
        return cursor.base(repo, paths)
    except BrokenRefError as failure:
        if not failure.empty:
            raise
    from savepoint.gitlayer.repair import repair

    repair.rebuild_ref(repo, paths)
    return cursor.base(repo, paths)


def _known(
    repo: Repository, base: Base, todo: Plan, newest: New | None, audience: str
) -> dict[str, str]:
    """Pack → blob of what is in git already. Only packs that nobody can vouch for are looked up.

    A savepoint opens whole with each key that it is encrypted to, so a pack that was encrypted to
    others is encrypted again. Where there are others, only a session's cache says to whom it was.
    """
    known = dict(newest.blobs) if newest else {}
    if known.pop(_AUDIENCE, "") != audience:
        known.clear()
    if audience:
        return known
    known.update(tree.packs_in(base.files))
    written = newest.written if newest else frozenset[str]()
    for step in todo.steps:
        packs = step.content.packs if step.content else []
        unknown = {name for name in packs if name not in known} - written
        if unknown:
            from savepoint.gitlayer.repair import lookup

            known.update(lookup.blobs(repo, base.cursor, step.record, unknown))
    return known


def _import(run: _Run) -> list[str]:
    """What fast-import answers: the ids of the marks. If a blob that was known is lost, all packs
    are sent anew.
    """
    try:
        return run.fast_import()
    except NoAnswerError:
        raise
    except CommitError as failure:
        if run.ref_moved():
            raise RefMovedError(failure.message) from failure
        if not run.known:
            raise
    run.known.clear()
    return run.fast_import()


class RefMovedError(CommitError):
    """Somebody else has committed since the ref was read."""


class _Run:
    """One fast-import: its script, which encrypts while git takes in what came before, and what
    came of it.
    """

    def __init__(
        self,
        repo: Repository,
        paths: InstancePaths,
        base: Base,
        todo: Plan,
        known: dict[str, str],
        sealer: Sealer,
    ) -> None:
        self.known = known  # pack → blob
        self._repo = repo
        self._paths = paths
        self._base = base
        self._todo = todo
        self._sealer = sealer
        self._marks: dict[str, int] = {}  # pack, or hash of a record → mark

    def ref_moved(self) -> bool:
        """Does the ref name another commit than the one that is built on?"""
        before = self._base.cursor.commit if self._base.cursor else None
        return repository.read_ref(self._repo, repository.branch(self._paths.slug)) != before

    def fast_import(self) -> list[str]:
        """Run it; the ids of all marks. Raises CommitError, DiskError, TamperedError."""
        self._marks.clear()
        options = ("--quiet", "--done", "--depth=0", "--date-format=raw")
        running = self._repo.start("fast-import", *options, stdin=self._script())
        result = running.finish(self._repo.deadline)
        if not result.ok:
            raise repository.failure(result)
        return result.out.decode("ascii", "replace").split()

    def finished(self, ids: list[str], program: list[Json]) -> Committed:
        """Check that the ref is what it must be, and make it durable. Raises CommitError,
        DiskError.
        """
        named = dict(zip(self._marks, ids, strict=True))
        commits = tuple((step.record.seq, named[step.record.hash]) for step in self._todo.steps)
        last = self._todo.steps[-1]
        at = Cursor(commits[-1][1], last.record.seq, last.record.hash)
        if repository.read_ref(self._repo, repository.branch(self._paths.slug)) != at.commit:
            raise CommitError("git moved the ref to another commit than it made")
        repository.sync(self._repo)
        warnings: tuple[str, ...] = ()
        try:
            cursor.save(self._repo, self._paths.slug, at, last.chunk, program)
        except DiskError as failure:
            warnings = (failure.message,)
        packs = {name for one in self._todo.steps if one.content for name in one.content.packs}
        blobs = {name: self.known.get(name) or named[name] for name in packs}
        if self._sealer.audience:
            blobs[_AUDIENCE] = self._sealer.audience
        return Committed(at, commits, blobs, self._todo.left, self._todo.skipped, warnings)

    def _script(self) -> Iterator[bytes]:
        for number, step in enumerate(self._todo.steps):
            for name in step.content.packs if step.content else ():
                if name not in self.known and name not in self._marks:
                    yield from self._pack(name)
            yield from self._commit(step, is_first=number == 0)
        yield b"".join(b"get-mark :%d\n" % mark for mark in self._marks.values())
        yield b"done\n"

    def _pack(self, name: str) -> Iterator[bytes]:
        pieces = self._sealer.seal_file(self._paths.store.pack(name))
        size = sum(map(len, pieces))
        yield b"blob\nmark :%d\ndata %d\n" % (self._mark(name), size)
        pieces.reverse()
        while pieces:
            yield pieces.pop()  # what git has taken need not be held
        yield b"\n"

    def _commit(self, step: Step, *, is_first: bool) -> Iterator[bytes]:
        one, content = step.record, step.content
        text = message.compose(one, content.snapshot.document if content else None)
        ref, who = repository.branch(self._paths.slug), message.author(self._paths.slug, one)
        yield f"commit {ref}\nmark :{self._mark(one.hash)}\ncommitter {who}\n".encode()
        yield script.data(text)
        if is_first and self._base.cursor:
            yield b"from %b\n" % self._base.cursor.commit.encode()
        yield self._clearing(one.kind, is_first=is_first)
        for path, chunk in step.closed.items():
            yield script.file(path, chunk)
        yield script.file(tree.OPEN_CHUNK, step.chunk.data)
        if one.kind not in tree.KEPT_BY:
            yield from self._readable()
        if content:
            yield from self._content(one.snapshot_file, content)

    def _clearing(self, kind: str, *, is_first: bool) -> bytes:
        """What of the parent does not stay. Where its tree was listed and not known, nothing of it
        but what is put back: a foreign tip may hold anything.
        """
        if kind in tree.KEPT_BY:
            return b""
        if is_first and self._base.closed is not None:
            return b"deleteall\n"
        return f"D {tree.PACKS}\nD {tree.SNAPSHOTS}\n".encode()

    def _readable(self) -> Iterator[bytes]:
        yield script.file(tree.README, by_hand.README)
        bootstrap = read_bounded(self._paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
        if bootstrap is not None:
            yield script.file(tree.BOOTSTRAP, bootstrap)
        elif tree.BOOTSTRAP in self._base.files:  # lost on disk: git keeps what it has
            yield f"M 100644 {self._base.files[tree.BOOTSTRAP]} {tree.BOOTSTRAP}\n".encode()

    def _content(self, file: str, content: Content) -> Iterator[bytes]:
        for name in content.packs:
            where = self.known.get(name) or f":{self._marks[name]}"
            yield f"M 100644 {where} {tree.pack(name)}\n".encode()
        recover = self._sealer.seal(by_hand.recover_tsv(content.files))
        yield script.file(tree.RECOVER, recover)
        yield script.file(tree.snapshot(file), self._sealer.seal(compress(content.snapshot.data)))

    def _mark(self, name: str) -> int:
        return self._marks.setdefault(name, len(self._marks) + 1)
