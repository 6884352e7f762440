"""The chain witness: what a ledger says of an instance's savepoints.

The ledger is asked once for all of them: its genesis hash, and three accounts from one bank.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from anchor_service import queue
from savepoint.core import accounts, limits, spelling, verify_chain
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.history import History
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Witness, chain_members, completed, tampered
from savepoint.core.verify_chain import Answer, Commits, Seen, Who
from savepoint.gitlayer import history
from savepoint.store import savepoints, trusted
from savepoint.store.config import EMBEDDED
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from anchor_service.queue import Submission
    from savepoint.core.ledger import Ledger
    from savepoint.core.record import Record
    from savepoint.core.verdicts import Report
    from savepoint.core.verify_chain import Anchor, Vouched
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_FRESH_RULES = verify_chain.CHAIN_RULES[:6]


class Sought(NamedTuple):
    """Which account is looked for."""

    program: bytes  # its id
    account: bytes | None = None  # the one that the verifier expects
    knows: bool = True  # is it the program whose entries this machine has seen?


class Looked(NamedTuple):
    """What was found at one ledger for one instance."""

    anchor: Anchor
    answer: Answer
    vouched: Vouched | None  # None where there is no entry of ours
    commits: Commits
    history: History  # the index, as it was read after that


def verify(
    ledger: Ledger, sought: Sought, repo: Repository, paths: InstancePaths, report: Report
) -> Report:
    """`report`, that of the other witnesses, with what the ledger says of the same savepoints.

    Never raises for what is found on the ledger, or if it does not answer: that is the report.
    Raises DiskError (the index cannot be read).
    """
    records = savepoints.records(paths).all
    if not records:
        return skipped(report, ledger.name, f"no record of {paths.slug} can be read")
    who = Who(records[0].instance, records[0].signer, sought.program, sought.account)
    try:
        found = look(ledger, who, repo, paths, knows=sought.knows)
    except MalformedError as failure:
        return _all(report, ledger.name, [tampered("VERIFY-18", failure.message)])
    except SavepointError as failure:
        return skipped(report, ledger.name, failure.message, failure.hint)
    return _with_chain(report, found)


def off(report: Report, ledger: str | None, reason: str) -> Report:
    """The ledger does not count, and why."""
    return _put(report, Witness((), off=reason, members=chain_members(ledger)))


def skipped(report: Report, ledger: str, reason: str, hint: str = "") -> Report:
    """The ledger could not be asked, or was not to be."""
    return _all(report, ledger, verify_chain.not_asked(reason, hint))


def waiting(report: Report, ledger: str, reason: str) -> Report:
    """Nothing is anchored yet."""
    told = [verify_chain.pending(rule, reason) for rule in verify_chain.CHAIN_RULES]
    return _all(report, ledger, told)


def last_contact(paths: InstancePaths, ledger: str) -> str:
    """When an entry was last seen there, by what anchoring has noted."""
    try:
        seen = [one.changed for one in _verified(paths, ledger)]
    except SavepointError as failure:
        return f"what was seen there cannot be read: {failure.message}"
    if not seen:
        return "it was never seen to have anything"
    return f"it was last seen to have an entry {max(0, int(time.time()) - max(seen))} seconds ago"


def was_anchored(paths: InstancePaths, ledger: str) -> bool:
    """Was anything anchored there from this store? Raises BusyError, DiskError."""
    return bool(_verified(paths, ledger))


def _verified(paths: InstancePaths, ledger: str) -> list[Submission]:
    rows = queue.rows(paths.store, paths.slug)
    return [one for one in rows if (one.ledger, one.state) == (ledger, queue.VERIFIED)]


def look(
    ledger: Ledger,
    who: Who,
    repo: Repository,
    paths: InstancePaths,
    *,
    knows: bool = True,
) -> Looked:
    """Ask, and hold the account against its rules. Raises SavepointError (no answer, or no).

    The index is read last, what was seen first: whatever is saved and anchored meanwhile, neither
    ledger nor index looks older than what it is compared with.
    """
    head = trusted.load(paths) if knows else None
    known = {} if head is None else head.ledgers
    genesis = ledger.genesis()
    seen = Seen.of(known, genesis)
    answer = ask(ledger, who, genesis, seen)
    records, _, newer = savepoints.records(paths)
    known_here = History(records, newer)
    anchor = verify_chain.account(who, answer, seen, shipped())
    if anchor.account is None:
        return Looked(anchor, answer, None, Commits(None), known_here)
    bootstrap = read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
    vouched = verify_chain.vouched(anchor.account, known_here, bootstrap)
    there = commits(repo, anchor.account.claim.commit)
    return Looked(anchor, answer, vouched, there, known_here)


def shipped() -> bytes:
    """The program's bytes."""
    from anchor_service.program import instructions  # solders: for who asks a ledger alone

    return instructions.elf()


def commits(repo: Repository, named: str) -> Commits:
    """What our repository has of the commit that an entry names."""
    if not os.path.lexists(repo.path):
        return Commits(None, problem="repo.git is missing")
    has_border = os.path.exists(os.path.join(repo.path, "shallow"))
    try:
        if not history.has(repo, named):
            return Commits(None)
        behind = history.records(repo, named)
    except SavepointError as failure:
        return Commits(None, problem=f"commit {named}: {failure.message}")
    return Commits(frozenset(behind.values()), behind[named], has_border)


def ask(ledger: Ledger, who: Who, genesis: bytes, seen: Seen) -> Answer:
    """At finalized; where that has nothing, at confirmed, to tell what is on its way.

    An endpoint that lags is no rollback: what looks like one is asked for again.
    """
    wanted = [who.address[0], who.program, accounts.program_data(who.program)]
    level = verify_chain.FINALIZED
    found = ledger.accounts(wanted, level)
    for _ in range(0 if ledger.name == EMBEDDED else limits.LEDGER_LOOKS):
        if not _lags(found[0].data if found[0] else b"", seen):
            break
        time.sleep(limits.LEDGER_LOOK_SECONDS)
        found = ledger.accounts(wanted, level)
    if found[0] is None and not seen.seq:
        level = "confirmed"
        found = ledger.accounts(wanted, level)
    return Answer(ledger.name, genesis, ledger.is_public, ledger.endpoints, level, *found)


def _lags(data: bytes, seen: Seen) -> bool:
    return int.from_bytes(data[4:12], "little") < seen.seq


def _with_chain(report: Report, found: Looked) -> Report:
    saves = [one for one in found.history.records if one.kind == "save"]
    by_key = {(one.seq, one.body["snapshot_hash"]): one for one in saves}
    checked = []
    for one in report.savepoints:
        of = by_key.get((one.seq, one.snapshot_hash))
        witness = _witness(of, found)
        checked.append(one._replace(witnesses={**one.witnesses, "chain": witness}))
    whole = report._replace(savepoints=tuple(checked))
    held = {one.rule for one in _account_findings(found) if one.result == "pass"}
    if set(_FRESH_RULES) <= held and found.answer.ledger != EMBEDDED:
        return whole.fresh("the ledger has nothing newer")
    return whole


def _account_findings(found: Looked) -> tuple[Finding, ...]:
    return (*found.anchor.findings, *(found.vouched.findings if found.vouched else ()))


def _witness(one: Record | None, found: Looked) -> Witness:
    findings = list(found.anchor.findings)
    read, vouched = found.anchor.account, found.vouched
    if read is not None and vouched is not None and one is not None:
        findings += verify_chain.savepoint(one, read, vouched, found.history, found.commits)
    covers = one is not None and vouched is not None and one.hash in vouched.behind
    last = vouched.record if vouched is not None and covers else None
    members = chain_members(found.answer.ledger) | {
        "independent": found.anchor.independent,
        "covered_by": last.seq if last is not None and one != last else None,
        "account": spelling.base58(found.anchor.address),
        "github_commit": read.claim.commit if read is not None and covers else None,
    }
    state, authority = found.answer.account, found.anchor.upgrade_authority
    members["account_data"] = None if state is None else state.data.hex()
    members["upgrade_authority"] = None if authority is None else spelling.base58(authority)
    return Witness(completed(findings, verify_chain.CHAIN_RULES), members=members)


def _all(report: Report, ledger: str, findings: list[Finding]) -> Report:
    told = completed(findings, verify_chain.CHAIN_RULES)
    return _put(report, Witness(told, members=chain_members(ledger)))


def _put(report: Report, chain: Witness) -> Report:
    checked = [
        one._replace(witnesses={**one.witnesses, "chain": chain}) for one in report.savepoints
    ]
    return report._replace(savepoints=tuple(checked))
