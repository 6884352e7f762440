"""Makes a proof of a savepoint that is anchored, and asks a ledger about one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchor_service import queue, witness
from savepoint.core import limits, spelling, verify_chain, verify_proof
from savepoint.core.errors import (
    RolledBackError,
    SavepointError,
    TamperedError,
    UnverifiableError,
)
from savepoint.core.proof import Proof, Transaction, parents
from savepoint.core.verdicts import Finding, Verdict, unchecked, worst
from savepoint.core.verify_chain import Who
from savepoint.gitlayer import history, tree
from savepoint.store import savepoints

if TYPE_CHECKING:
    from anchor_service.witness import Looked
    from savepoint.core.entry import Account
    from savepoint.core.ledger import Landing, Ledger
    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_SYNC = "run `savepoint sync`, then export it again"
_COMMITS_BYTES = limits.PROOF_BYTES  # of all commit objects
_ONLINE = (*verify_chain.ACCOUNT_RULES, verify_proof.PROOF_RULES[1])  # only the ledger tells


def export(
    ledger: Ledger, program: bytes, repo: Repository, paths: InstancePaths, one: Record
) -> Proof:
    """The proof of savepoint `one`. program: the id of the program there.

    Raises UnverifiableError (it is not anchored yet), TamperedError or RolledBackError (the chain
    witness says so), LedgerUnreachableError, LedgerRefusedError, CommitError, DiskError.
    """
    birth = savepoints.records(paths).all[0]
    who = Who(birth.instance, birth.signer, program)
    found = witness.look(ledger, who, repo, paths)
    read, last = _covering(found, one)
    records = found.history.records
    numbers = {record.hash: number for number, record in enumerate(records)}
    between = records[numbers[one.hash] : numbers[last.hash] + 1]
    return Proof(
        ledger=ledger.name,
        genesis=found.answer.genesis,
        program=program,
        account=found.anchor.address,
        birth=records[0],
        records=tuple(between),
        account_data=read.to_bytes(),
        commits=_commits(repo, read.claim.commit, one) if found.commits.behind else (),
        transaction=_transaction(ledger, paths, found.answer.genesis, read),
    )


def not_asked(reason: str, hint: str = "") -> list[Finding]:
    """The rules that only the ledger can tell, where it was to be asked and could not be."""
    return [unchecked(rule, reason, hint=hint) for rule in _ONLINE]


def ask(ledger: Ledger, given: Proof, read: Account) -> list[Finding]:
    """What the ledger says of a proof whose entry is `read`: the rules over the account as it is
    now, and VERIFY-30. Never raises for an answer, or for none: that is the finding.
    """
    try:
        genesis = ledger.genesis()
        if genesis != given.genesis:
            other = f"{ledger.name} has genesis {spelling.base58(genesis)}, not the proof's"
            return not_asked(other, "name the ledger with --ledger")
        seen = verify_proof.seen_of(read)
        answer = witness.ask(ledger, verify_proof.who_of(given), genesis, seen)
        landing = _landing(ledger, given)
    except SavepointError as failure:
        return not_asked(failure.message, failure.hint)
    anchor = verify_chain.account(verify_proof.who_of(given), answer, seen, witness.shipped())
    found = [*anchor.findings, verify_proof.online(read, anchor, landing, ledger.name)]
    return sorted(found, key=lambda one: _ONLINE.index(one.rule))


def _landing(ledger: Ledger, given: Proof) -> Landing | None:
    sent = given.transaction
    return None if sent is None else ledger.landing(sent.signature, history=True)


def _covering(found: Looked, one: Record) -> tuple[Account, Record]:
    """The entry and the record that it names, if all of it holds and leads back to `one`."""
    read, vouched = found.anchor.account, found.vouched
    findings = list(found.anchor.findings)
    if read is not None and vouched is not None:
        findings += verify_chain.savepoint(one, read, vouched, found.history, found.commits)
    verdict = worst(finding.verdict for finding in findings)
    fault = next(finding for finding in findings if finding.verdict is verdict)
    if verdict is Verdict.TAMPERED:
        raise TamperedError(f"{fault.rule}: {fault.detail}")
    if verdict is Verdict.ROLLED_BACK:
        raise RolledBackError(f"{fault.rule}: {fault.detail}")
    last = vouched.record if vouched is not None else None
    is_final = found.answer.level == verify_chain.FINALIZED
    if read is None or vouched is None or last is None or not is_final:
        raise UnverifiableError(f"savepoint {one.seq} is not anchored yet", hint=_SYNC)
    if one.hash not in vouched.behind:
        raise UnverifiableError(f"savepoint {one.seq} is not anchored yet", hint=_SYNC)
    return read, last


def _commits(repo: Repository, tip: str, one: Record) -> tuple[bytes, ...]:
    """Commit objects from the entry's commit to that of the savepoint, each a parent of the one
    before it; none where the history here does not reach so far. Raises CommitError, DiskError.
    """
    behind = history.records(repo, tip)
    names = list(behind)  # newest first: none stands before what comes from it
    target = next((name for name in names if behind[name] == one.hash), None)
    if target is None:
        return ()
    names = names[: names.index(target) + 1]
    objects = dict(zip(names, tree.contents(repo, names, _COMMITS_BYTES, b"commit"), strict=True))
    towards = {target: target}
    for name in reversed(names[:-1]):
        nearer = next((p for p in parents(objects[name]) if p in towards), None)
        towards |= {} if nearer is None else {name: nearer}
    path = [tip]
    while path[-1] != target:
        path.append(towards[path[-1]])
    return tuple(objects[name] for name in path)


def _transaction(
    ledger: Ledger, paths: InstancePaths, genesis: bytes, read: Account
) -> Transaction | None:
    """The one that was sent from this store, if the ledger knows that it landed."""
    where = spelling.base58(genesis)
    rows = [one for one in queue.rows(paths.store, paths.slug) if one.genesis == where]
    raw = next((one.raw for one in rows if one.entry == read.hash and one.raw), None)
    if raw is None:
        return None
    landing = ledger.landing(raw[1:65], history=True)
    return None if landing is None else Transaction(raw, landing.slot)
