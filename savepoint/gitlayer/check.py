"""Is our repository what the index says: every savepoint a commit, in order, and each one whole?

Git's own check sees objects that changed; that they are the savepoints of this index, it cannot
know. A blob that several savepoints share is opened once.
"""

from __future__ import annotations

import hashlib
import os
from functools import partial
from typing import TYPE_CHECKING

from savepoint.core import limits, record, verify
from savepoint.core.errors import (
    DiskError,
    KeyFileError,
    SavepointError,
    TamperedError,
    UnsupportedFormatError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer import by_hand, message, plan, repository, theirs, tree
from savepoint.gitlayer.held import held
from savepoint.gitlayer.repository import NoAnswerError
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.gitlayer.held import Held
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.agekeys import Identity
    from savepoint.store.layout import InstancePaths

    Progress = Callable[[int, int], None]  # savepoints checked, savepoints

_KEEP_A_TREE = ("retire", "accept")  # records whose commit is that of another, and the record
_SHOWN = 8  # lines of git's own check
_HISTORY_BYTES = 256 * limits.MIB  # of all commit objects of a branch
_NOBODY_LOOKED = (NoAnswerError, DiskError, KeyFileError, UnsupportedFormatError)


class Fault(NamedTuple):
    """Something that is not as it must be, or that nobody could look at."""

    verdict: Verdict  # TAMPERED; ROLLED_BACK: git has records that the index lacks; UNVERIFIABLE
    seq: int  # of the record that it counts for; 0: of all
    detail: str


class Step(NamedTuple):
    """A commit of the branch."""

    commit: str
    said: message.Commit


class Checked(NamedTuple):
    """What was found."""

    steps: list[Step]  # oldest first
    faults: list[Fault]


def check(
    repo: Repository,
    paths: InstancePaths,
    identities: list[Identity],
    progress: Progress | None = None,
) -> Checked:
    """Everything: git's own check, the branch, and every savepoint on it. Reads all that is there.

    identities: without one, encrypted content is UNVERIFIABLE. Raises DiskError (the index cannot
    be read).
    """
    own = _own_check(repo)
    found = branch(repo, paths)
    checker = Checker(repo, paths, identities)
    faults = own + found.faults
    for number, step in enumerate(found.steps, 1):
        one = checker.records.get(step.said.record)
        faults += checker.savepoint(step.commit, one) if one else []
        if progress:
            progress(number, len(found.steps))
    return Checked(found.steps, faults)


def branch(repo: Repository, paths: InstancePaths) -> Checked:
    """The commits of the instance's branch against its index: each is of a record, in the order of
    the index, and none is left out up to the tip. Raises DiskError (the index cannot be read).
    """
    records = savepoints.records(paths).all
    try:
        steps = _steps(repo, paths.slug)
    except SavepointError as failure:
        return Checked([], [_fault(0, failure)])
    known = {one.hash: one for one in records}
    faults, before = list[Fault](), 0
    for step in steps:
        faults += _misplaced(repo, paths, step, before, known)
        before = step.said.seq
    return Checked(steps, faults + _left_out(repo, paths, steps, records))


class Checker:
    """Checks single savepoints; what they share is looked at once."""

    def __init__(self, repo: Repository, paths: InstancePaths, identities: list[Identity]) -> None:
        self.records = {one.hash: one for one in savepoints.records(paths).all}  # by hash
        self._repo = repo
        self._paths = paths
        self._identities = identities
        self._index = _CutIndex(index.read(paths))
        self._seen: dict[tuple[str, str], SavepointError | None] = {}  # (path, blob) → its fault
        self._last: tuple[str, bytes] = ("", b"")  # blob and content of the pack opened last

    def savepoint(self, commit: str, one: Record) -> list[Fault]:
        """What is wrong with `commit` as the commit of record `one`."""
        try:
            found = held(self._repo, commit, self._identities)
            if (found.said.seq, found.said.record) != (one.seq, one.hash):
                raise TamperedError(f"commit {commit} is not that of record {one.seq}")
            chunks = self._index.at(one)
            for path, whole in chunks.items():
                self._same(found, path, whole)
            allowed = {*chunks, *self._readable(found, one), *self._content(found, one)}
        except SavepointError as failure:
            return [_fault(one.seq, failure)]
        foreign = sorted(set(found.files) - allowed)
        detail = f"commit {commit} has {len(foreign)} files that no savepoint has: {foreign[:1]}"
        return [Fault(Verdict.TAMPERED, one.seq, detail)] if foreign else []

    def _readable(self, found: Held, one: Record) -> set[str]:
        """What is not encrypted and no index. The README's commands are run by people."""
        if one.kind in _KEEP_A_TREE:
            return set()
        expected = {tree.README: Whole.of(by_hand.README)}
        bootstrap = read_bounded(self._paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
        if bootstrap is not None:
            expected[tree.BOOTSTRAP] = Whole.of(bootstrap)
        for path, whole in expected.items():
            self._same(found, path, whole)
        return set(expected)

    def _content(self, found: Held, one: Record) -> set[str]:
        """What makes the commit a savepoint; a RETIRE has that of the one before it."""
        if one.kind in _KEEP_A_TREE:
            before = [tree.list_files(self._repo, one) for one in found.said.parents[:1]]
            return {
                path for files in before for path in files if files[path] == found.files.get(path)
            }
        if one.kind != "save":
            return set()
        if not self._identities:
            raise KeyFileError(f"record {one.seq}: there is no age identity to open its commit")
        path = tree.snapshot(one.snapshot_file)
        document, finding = verify.snapshot_document(one, found.snapshot(one), found.where(path))
        if document is None:
            raise TamperedError(finding.detail)
        content = plan.content_with(document, lambda part: self._segment(found, part))
        for name in content.packs:
            self._once(found, tree.pack(name), partial(self._pack, found, name))
        recover = found.opened(tree.RECOVER, limits.SPILLED_LIST_BYTES)
        if recover != by_hand.recover_tsv(content.files):
            raise TamperedError(f"{found.where(tree.RECOVER)} does not fit the snapshot")
        return {tree.RECOVER, path, *map(tree.pack, content.packs)}

    def _segment(self, found: Held, part: Segment) -> bytes:
        return verify.open_segment(part, self._pack(found, part.pack), found.where(part.pack))

    def _pack(self, found: Held, name: str) -> bytes:
        blob = found.files.get(tree.pack(name), "")
        if self._last[0] != blob or not blob:
            self._last = ("", b"")  # never two packs in memory
            self._last = (blob, found.pack(name))
        return self._last[1]

    def _same(self, found: Held, path: str, whole: Whole) -> None:
        """The file at `path` has these bytes. Its id only tells whether to read them again."""

        def compare() -> None:
            if found.read(path, len(whole.data)) != whole.data:
                raise TamperedError(f"{found.where(path)} is not what it must be")

        if path in found.files and found.files[path] != whole.blob:
            raise TamperedError(f"{found.where(path)} is not what it must be")
        self._once(found, path, compare)

    def _once(self, found: Held, path: str, look: Callable[[], object]) -> None:
        key = (path, found.files.get(path, ""))
        if key not in self._seen:
            self._seen[key] = None
            try:
                look()
            except SavepointError as failure:
                self._seen[key] = failure
        before = self._seen[key]
        if before is not None:
            raise before


class Whole(NamedTuple):
    """All bytes of a file, and what git calls them."""

    data: bytes
    blob: str

    @classmethod
    def of(cls, data: bytes) -> Whole:
        """Of any bytes."""
        return cls(data, tree.blob_id(data))


class _CutIndex:
    """The local index, cut as commits hold it."""

    def __init__(self, data: bytes) -> None:
        self._lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
        self._numbers = {
            hashlib.sha256(line[:-1]).hexdigest(): number
            for number, line in enumerate(self._lines, 1)
        }
        self._closed: dict[str, Whole] = {}
        for start in range(0, len(self._lines), limits.INDEX_CHUNK_RECORDS):
            lines = self._lines[start : start + limits.INDEX_CHUNK_RECORDS]
            if len(lines) == limits.INDEX_CHUNK_RECORDS:
                first = record.parse(lines[0][:-1]).seq
                self._closed[tree.closed_chunk(first)] = Whole.of(b"".join(lines))

    def at(self, one: Record) -> dict[str, Whole]:
        """Path → chunk, of a commit of this record."""
        number = self._numbers[one.hash]
        count = number // limits.INDEX_CHUNK_RECORDS
        open_chunk = b"".join(self._lines[count * limits.INDEX_CHUNK_RECORDS : number])
        closed = dict(list(self._closed.items())[:count])
        return {**closed, tree.OPEN_CHUNK: Whole.of(open_chunk)}


def _own_check(repo: Repository) -> list[Fault]:
    """That of git: every object, every pack and its index, every link, every ref."""
    options = ("--full", "--strict", "--no-dangling", "--no-progress")
    result = repo.start("fsck", *options).finish(repo.deadline)
    if result.ok:
        return []
    if result.problem:
        return [Fault(Verdict.UNVERIFIABLE, 0, result.reason)]
    said = (result.out + result.err).decode("utf-8", "backslashreplace").split("\n")
    lines = [line for line in said if line and not line.startswith("notice: ")]
    more = [f"… {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [Fault(Verdict.TAMPERED, 0, f"git fsck: {line}") for line in lines[:_SHOWN] + more]


def _steps(repo: Repository, slug: str) -> list[Step]:
    """The branch, oldest first; empty where there is none. Raises MalformedError (a commit that is
    none of ours), CommitError, DiskError.
    """
    name = repository.branch(slug)
    if repository.read_ref(repo, name) is None:
        return []
    listed = repo.run("rev-list", "--reverse", "--first-parent", name, limit=_HISTORY_BYTES)
    names = listed.decode("ascii", "replace").split()
    data = tree.contents(repo, names, _HISTORY_BYTES, b"commit")
    return [Step(one, message.parse(raw)) for one, raw in zip(names, data, strict=True)]


def _misplaced(
    repo: Repository, paths: InstancePaths, step: Step, before: int, known: dict[str, Record]
) -> list[Fault]:
    """What is wrong with the place of a commit. Only what accepts a foreign tip has two parents."""
    seq, one = step.said.seq, known.get(step.said.record)
    if one is None or one.seq != seq:
        return [_unknown(repo, paths, step)]
    if seq <= before or (len(step.said.parents) > 1 and one.kind != "accept"):
        detail = f"commit {step.commit} of record {seq} does not follow that of record {before}"
        return [Fault(Verdict.TAMPERED, seq, detail)]
    return []


def _unknown(repo: Repository, paths: InstancePaths, step: Step) -> Fault:
    """Of a record that the index lacks. If the key has signed it, the index went back."""
    detail = f"git has record {step.said.seq} in commit {step.commit}; the index has not"
    try:
        theirs.read(repo, paths.slug, step.commit)
    except SavepointError as failure:
        return _fault(step.said.seq, failure)
    return Fault(Verdict.ROLLED_BACK, step.said.seq, detail)


def _left_out(
    repo: Repository, paths: InstancePaths, steps: list[Step], records: list[Record]
) -> list[Fault]:
    """Records that must have a commit, up to the tip, and have none."""
    there = {step.said.seq for step in steps}
    is_shallow = os.path.exists(os.path.join(repo.path, "shallow"))
    border = min(there, default=0) if is_shallow else 0
    lost = [
        one.seq
        for one in records
        if one.seq <= max(there, default=0) and one.seq not in there and plan.has_commit(paths, one)
    ]
    return [
        Fault(Verdict.UNVERIFIABLE, seq, f"record {seq} lies behind the border of the history here")
        if seq < border
        else Fault(Verdict.TAMPERED, seq, f"record {seq} has no commit")
        for seq in lost
    ]


def _fault(seq: int, failure: SavepointError) -> Fault:
    looked = not isinstance(failure, _NOBODY_LOOKED)
    return Fault(Verdict.TAMPERED if looked else Verdict.UNVERIFIABLE, seq, failure.message)
