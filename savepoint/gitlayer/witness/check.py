"""Is our repository what the index says: every savepoint a commit, in order, and each one whole?

Git's own check sees objects that changed; that they are the savepoints of this index, it cannot
know. What several savepoints share is looked at once, and no git runs for each of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, verdicts, verify_git
from savepoint.core.errors import SavepointError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Verdict, passed, unchecked
from savepoint.gitlayer import blobs, repository, tree
from savepoint.gitlayer.commits import message, plan
from savepoint.gitlayer.remote import theirs
from savepoint.gitlayer.witness.checker import Checker, failed
from savepoint.store import savepoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths

    Progress = Callable[[int, int], None]  # savepoints checked, savepoints

_SHOWN = 8  # lines of git's own check
_HISTORY_BYTES = 256 * limits.MIB  # of all commit objects of a branch


class Fault(NamedTuple):
    """Something that is not as it must be, or that nobody could look at."""

    seq: int  # of the record that it counts for; 0: of all
    finding: Finding

    @property
    def verdict(self) -> Verdict:
        """TAMPERED; ROLLED_BACK: git has records that the index lacks; UNVERIFIABLE."""
        return self.finding.verdict

    @property
    def detail(self) -> str:
        """For people."""
        return self.finding.detail


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
    own = [Fault(0, one) for one in own_check(repo) if one.result != "pass"]
    found = instance(repo, paths, identities, progress)
    return Checked(found.steps, own + found.faults)


def instance(
    repo: Repository,
    paths: InstancePaths,
    identities: list[Identity],
    progress: Progress | None = None,
) -> Checked:
    """As `check`, without git's own check, which is of all instances."""
    found = branch(repo, paths)
    checker = Checker(repo, paths, identities)
    faults = list(found.faults)
    numbers = {step.commit: at for at, step in enumerate(found.steps, 1)}
    steps = [step for step in found.steps if step.said.record in checker.records]
    for step, findings in each(checker, steps):
        worst = verdicts.worst(one.verdict for one in findings)  # what follows from it is no news
        told = [one for one in findings if one.result != "pass" and one.verdict is worst]
        faults += [Fault(step.said.seq, one) for one in told]
        if progress:
            progress(numbers[step.commit], len(found.steps))
    return Checked(found.steps, faults)


def each(checker: Checker, steps: list[Step]) -> Iterator[tuple[Step, list[Finding]]]:
    """Rules 9, 11 and 12 of these commits, each of a record of the index. Their trees and blobs
    are read by few gits.
    """
    for at in range(0, len(steps), limits.TREES_AT_ONCE):
        some = steps[at : at + limits.TREES_AT_ONCE]
        trees = blobs.trees(checker.repo, [step.said for step in some])
        checker.expect(trees)
        for step, files in zip(some, trees, strict=True):
            one = checker.records[step.said.record]
            yield step, checker.savepoint(step.commit, one, step.said, files)


def branch(repo: Repository, paths: InstancePaths) -> Checked:
    """The commits of the instance's branch against its index: each is of a record, in the order of
    the index, and none is left out up to the tip. Raises DiskError (the index cannot be read).
    """
    try:
        steps = _steps(repo, paths.slug)
    except SavepointError as failure:
        return Checked([], [Fault(0, failed("VERIFY-10", failure))])
    records = savepoints.records(paths)  # after them: what is saved meanwhile is in both, or in it
    known = {one.hash: one for one in records.all}
    faults, before = list[Fault](), 0
    for step in steps:
        if step.said.seq in records.newer:
            found = verify_git.newer(step.said.seq, f"commit {step.commit}")
            faults.append(Fault(step.said.seq, found))
        else:
            faults += _misplaced(repo, paths, step, before, known.get(step.said.record))
        before = step.said.seq
    return Checked(steps, faults + _left_out(repo, paths, steps, records.all))


def left_out(repo: Repository, paths: InstancePaths) -> tuple[Record, list[Step]] | None:
    """The first record that must have a commit, up to the tip of the branch, and has none, where
    nothing else is wrong with the branch; with the commits before it. Raises DiskError (the index
    cannot be read).
    """
    found = branch(repo, paths)
    if not found.faults or any(
        (one.finding.rule, one.finding.verdict) != ("VERIFY-9", Verdict.TAMPERED)
        for one in found.faults
    ):
        return None
    first = min(one.seq for one in found.faults)
    one = next(one for one in savepoints.records(paths).all if one.seq == first)
    return one, [step for step in found.steps if step.said.seq < first]


def own_check(repo: Repository) -> list[Finding]:
    """VERIFY-13: that of git: every object, every pack and its index, every link, every ref."""
    options = ("--full", "--strict", "--no-dangling", "--no-progress")
    result = repo.start("fsck", *options).finish(repo.deadline)
    if result.ok:
        return verify_git.own_check([])
    if hindered := repository.hindrance(result):
        return [unchecked("VERIFY-13", f"git fsck: {hindered.message}", hint=hindered.hint)]
    said = (result.out + result.err).decode("utf-8", "backslashreplace").split("\n")
    lines = [
        line.replace(repo.path, os.path.basename(repo.path))
        for line in said
        if line and not line.startswith("notice: ")
    ]
    more = [f"… {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return verify_git.own_check((lines[:_SHOWN] + more) or [f"exit code {result.code}"])


def in_order(slug: str, steps: list[Step]) -> Finding:
    """VERIFY-10, where nothing was found."""
    detail = f"branch savepoints/{slug}: {len(steps)} commits, each follows the one before it"
    return passed("VERIFY-10", detail)


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
    repo: Repository, paths: InstancePaths, step: Step, before: int, one: Record | None
) -> list[Fault]:
    """VERIFY-10: what is wrong with the place of a commit. Of a record that the index lacks: if the
    key has signed it, the index went back.
    """
    seq = step.said.seq
    where = f"commit {step.commit}"
    found = verify_git.follows(one, seq, before, len(step.said.parents), where)
    if found is None:
        return []
    if found.verdict is Verdict.ROLLED_BACK:
        try:
            theirs.read(repo, paths.slug, step.commit)
        except SavepointError as failure:
            return [Fault(seq, failed("VERIFY-10", failure))]
    return [Fault(seq, found)]


def _left_out(
    repo: Repository, paths: InstancePaths, steps: list[Step], records: list[Record]
) -> list[Fault]:
    """VERIFY-9: records that must have a commit, up to the tip, and have none."""
    there = {step.said.seq for step in steps}
    reach = max(there, default=0)
    is_shallow = os.path.exists(os.path.join(repo.path, "shallow"))
    border = min(there, default=0) if is_shallow else 0
    lost = [
        one
        for one in records
        if one.seq <= reach and one.seq not in there and plan.has_commit(paths, one)
    ]
    return [
        Fault(one.seq, verify_git.behind("VERIFY-9", one))
        if one.seq < border
        else Fault(one.seq, verify_git.uncommitted(one, reach, _newer(paths, one)))
        for one in lost
    ]


def _newer(paths: InstancePaths, one: Record) -> str:
    """Of which version the snapshot is, where that is newer than this one; it got no commit."""
    try:
        if one.kind == "save":
            savepoints.open_snapshot(paths, one)
    except UnsupportedFormatError as failure:
        return failure.message
    except SavepointError:  # the local witness says so
        return ""
    return ""
