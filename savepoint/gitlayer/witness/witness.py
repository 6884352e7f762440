"""The git witness: what our repository and its remote say of an instance's savepoints.

The remote is asked once for all of them. What it has and we have not is fetched to be compared,
into a place of its own: no ref of the instance moves.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.core import verify_git
from savepoint.core.errors import KeyFileError, RolledBackError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Witness, completed, tampered, unchecked
from savepoint.gitlayer import history
from savepoint.gitlayer.remote import clone, remote_url, tip
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.witness import check
from savepoint.gitlayer.witness.checker import Checker, failed
from savepoint.store import border, config, savepoints, trusted
from savepoint.store.keys import agekeys

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.verdicts import CheckedSavepoint, Report
    from savepoint.gitlayer.remote.tip import Tips
    from savepoint.gitlayer.repository import Repository
    from savepoint.gitlayer.witness.check import Step
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths, Store

_ONLINE = "verify again without --offline"
_TRACKING = "refs/remotes/origin/savepoints"


class Look(NamedTuple):
    """How far to look."""

    offline: bool = False  # rules 14 to 16 are skipped
    deep: bool = False  # also a fresh clone of the remote
    whole: bool = False  # git's own check of everything, too


def verify(repo: Repository, paths: InstancePaths, report: Report, look: Look) -> Report:
    """`report`, that of the local witness, with what git says of the same savepoints.

    Never raises for what is found in git or at the remote: that is the report. Raises
    MalformedError (the config), DiskError (the index or the config cannot be read).
    """
    where = _remote_of(repo, paths.store)
    shown = where.url.shown if where else None
    asked = {(one.seq, one.snapshot_hash) for one in report.savepoints}
    records = [
        one
        for one in savepoints.records(paths).saves
        if (one.seq, str(one.body["snapshot_hash"])) in asked
    ]
    if not _exists(repo):
        found = _nothing_here(paths, records, shown)
    else:
        found = _here(repo, paths, records, look)
        if where is not None:
            found = _there(where, paths, records, found, look)
    rules = _rules(look, has_remote=where is not None)
    savepoints_ = [_with_git(one, found, rules, shown) for one in report.savepoints]
    told = (*found.common, *found.branch)
    whole = Witness(told) if told else Witness((), off="nothing was committed yet")
    return _freshened(report._replace(savepoints=tuple(savepoints_), git=whole))


class _Found(NamedTuple):
    """What git says."""

    common: list[Finding]  # counts for every savepoint
    branch: list[Finding]  # of the whole branch, whichever savepoints it counts for
    single: dict[int, list[Finding]]  # sequence → what counts for that savepoint
    commits: dict[int, str]  # sequence → commit

    def with_common(self, more: list[Finding]) -> _Found:
        """And these."""
        return self._replace(common=[*self.common, *more])

    def with_single(self, more: dict[int, list[Finding]]) -> _Found:
        """And these."""
        both = {seq: [*told, *more.get(seq, [])] for seq, told in self.single.items()}
        return self._replace(single=both)


def _rules(look: Look, *, has_remote: bool) -> tuple[str, ...]:
    """Those that must say something of each savepoint."""
    own = verify_git.GIT_RULES[: 5 if look.whole else 4]
    return (*own, *(verify_git.REMOTE_RULES if has_remote else ()))


def identities_of(store: Store) -> list[Identity]:
    """What opens encrypted content; none where that is missing or unsafe."""
    try:
        return agekeys.identities(store)
    except KeyFileError:
        return []


def _remote_of(repo: Repository, store: Store) -> Remote | None:
    url = config.load(store).remote
    return None if url is None else Remote.of(repo, remote_url.parse(url, "/"))


def _exists(repo: Repository) -> bool:
    return os.path.lexists(repo.path)


def _with_git(
    one: CheckedSavepoint, found: _Found, rules: tuple[str, ...], shown: str | None
) -> CheckedSavepoint:
    own = found.single.get(one.seq, [])
    if not own:  # its record cannot be read, or is doubled: the local witness says so
        own = [unchecked("VERIFY-9", f"record {one.seq} is not read, so its commit is not known")]
    told = (*own, *found.common)
    beside = [rule for rule in verify_git.GIT_RULES if rule in {*rules, *(f.rule for f in told)}]
    members = {"commit": found.commits.get(one.seq), "remote": shown}
    git = Witness(completed(told, beside), members=dict(members))
    return one._replace(witnesses={**one.witnesses, "git": git})


def _nothing_here(paths: InstancePaths, records: list[Record], shown: str | None) -> _Found:
    """There is no repository: nothing was committed yet, or it is gone."""
    head = _head_tip(paths)
    if head is None:
        return _Found([], [], {one.seq: [verify_git.uncommitted(one, 0)] for one in records}, {})
    lost = tampered("VERIFY-9", f"repo.git is missing; {shown or 'a remote'} had {head} from it")
    lost = lost._replace(hint="run `savepoint fsck --repair`")
    return _Found([lost], [], {one.seq: [lost] for one in records}, {})


def _head_tip(paths: InstancePaths) -> str | None:
    head = trusted.load(paths)
    return head.remote_tip if head is not None else None


# our repository


def _here(repo: Repository, paths: InstancePaths, records: list[Record], look: Look) -> _Found:
    common = check.own_check(repo) if look.whole else []
    found = check.branch(repo, paths)
    known = {one.seq: one.kind for one in savepoints.records(paths).all}
    placed = [one for one in found.faults if one.finding.rule == "VERIFY-10"]
    common += [one.finding for one in placed if one.seq not in known]
    placed = [one for one in placed if one.seq in known]
    single = {one.seq: [f.finding for f in placed if f.seq <= one.seq] for one in records}
    branch = [one.finding for one in placed]
    if not any(one.rule == "VERIFY-10" for one in common):
        held = check.in_order(paths.slug, found.steps)
        branch = branch or [held]
        single = {seq: told or [held] for seq, told in single.items()}
    for one in found.faults:
        if one.finding.rule == "VERIFY-9" and one.seq in single:
            single[one.seq].append(one.finding)
        elif one.finding.rule == "VERIFY-9" and known.get(one.seq) != "save":
            branch += [] if one.finding.behind else [one.finding]
    commits = _each(repo, paths, records, found.steps, single)
    if not found.steps and any(one.result != "pass" for one in common):
        for seq in single:  # nobody could look
            single[seq] = [unchecked("VERIFY-9", f"the branch of {paths.slug} cannot be read")]
    return _Found(common, branch, single, commits)


def _each(
    repo: Repository,
    paths: InstancePaths,
    records: list[Record],
    steps: list[Step],
    single: dict[int, list[Finding]],
) -> dict[int, str]:
    """Rules 9, 11 and 12 of the savepoints, put into `single`; sequence → commit."""
    by_record = {step.said.record: step for step in steps}
    reach = max((step.said.seq for step in steps), default=0)
    wanted = [by_record[one.hash] for one in records if one.hash in by_record]
    checker = Checker(repo, paths, identities_of(paths.store))
    for step, found in check.each(checker, wanted):
        single[step.said.seq] += found
    for one in records:
        if one.hash not in by_record and not any(f.rule == "VERIFY-9" for f in single[one.seq]):
            single[one.seq].append(verify_git.uncommitted(one, reach))
    return {step.said.seq: step.commit for step in wanted}


# the remote


def _there(
    remote: Remote, paths: InstancePaths, records: list[Record], here: _Found, look: Look
) -> _Found:
    """`here`, with rules 14 to 16, and those of a fresh clone."""
    if look.offline:
        reason = f"{remote.url.shown} was not asked: {_last_contact(remote, paths)}"
        return here.with_common(verify_git.not_asked(reason, _ONLINE))
    try:
        tips = tip.look(remote, paths)
        tip.bring(remote, paths, tips)
    except SavepointError as failure:
        if isinstance(failure, RolledBackError):  # what it sends is unsound
            return here.with_common([failed("VERIFY-16", failure)])
        return here.with_common(verify_git.not_asked(failure.message, failure.hint))
    found = here.with_common(
        [
            verify_git.kept(_raised(tip.check_seen, remote, paths, tips), remote.url.shown),
            verify_git.own_history(_raised(tip.check_ours, remote, paths, tips), remote.url.shown),
        ]
    ).with_single(_pushed(remote, paths, records, here.commits, tips))
    if look.deep and tips.remote is not None:
        return _deep(remote, paths, records, tips.remote, found)
    return found


def _raised(
    look: tip.Comparison, remote: Remote, paths: InstancePaths, tips: Tips
) -> SavepointError | None:
    try:
        look(remote, paths, tips)
    except SavepointError as failure:
        return failure
    return None


def _pushed(
    remote: Remote,
    paths: InstancePaths,
    records: list[Record],
    commits: dict[int, str],
    tips: Tips,
) -> dict[int, list[Finding]]:
    """VERIFY-14. What lies behind the border of a fetched history has no commit here to ask for."""
    try:
        there = set() if tips.remote is None else history.leading_to(remote.repo, tips.remote)
    except SavepointError as failure:
        return {one.seq: [failed("VERIFY-14", failure)] for one in records}
    shown, first = remote.url.shown, border.load(paths)
    return {
        one.seq: [verify_git.behind("VERIFY-14", one)]
        if one.seq < first and one.seq not in commits
        else [verify_git.pushed(one, is_there=commits.get(one.seq) in there, remote=shown)]
        for one in records
    }


def _deep(
    remote: Remote, paths: InstancePaths, records: list[Record], at: str, here: _Found
) -> _Found:
    """The same rules, and git's own check, from what the remote gives to whoever has nothing."""
    try:
        with clone.fresh(remote, paths, at) as repo:
            found = _here(repo, paths, records, Look(whole=True))
    except SavepointError as failure:
        return here.with_common([failed("VERIFY-13", failure)])
    branch = [*here.branch, *map(_of_clone, found.branch)]
    single = {seq: [*map(_of_clone, told)] for seq, told in found.single.items()}
    common = [*map(_of_clone, found.common)]
    return here._replace(branch=branch).with_common(common).with_single(single)


def _of_clone(one: Finding) -> Finding:
    return one._replace(detail=f"fresh clone: {one.detail}")


def _last_contact(remote: Remote, paths: InstancePaths) -> str:
    """When a push was last read back, by the remote-tracking ref."""
    try:
        seen = os.stat(os.path.join(remote.repo.path, _TRACKING, paths.slug)).st_mtime
    except OSError:
        return "it was never seen to have anything"
    return f"its branch was last read back {int(max(0, time.time() - seen))} seconds ago"


def _freshened(report: Report) -> Report:
    """VERIFY-4 without a trusted head: a remote that was asked, and has nothing newer, tells that
    the index is the newest (only a rollback of both together would pass).
    """
    found = [f for one in report.savepoints for f in one.witnesses["git"].findings]
    if not set(verify_git.REMOTE_RULES) <= {one.rule for one in found if one.result == "pass"}:
        return report
    return report.fresh("the remote has nothing newer")
