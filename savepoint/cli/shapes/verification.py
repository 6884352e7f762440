"""Shapes: what `verify` and `proof verify` find."""

from __future__ import annotations

from typing import Literal

from savepoint.cli.shapes.shape import Shape


class Finding(Shape):
    """What a rule of verification says."""

    rule: str
    result: Literal["pass", "fail", "skipped"]
    detail: str


Verdict = Literal["VERIFIED", "PENDING", "UNVERIFIABLE", "ROLLED_BACK", "TAMPERED"]


class Witness(Shape):
    """One of the places that hold a savepoint. `reason` says why it is OFF."""

    verdict: Verdict | Literal["OFF"]
    findings: list[Finding]
    reason: str | None = None


class ChainWitness(Witness):
    """The ledger."""

    ledger: str | None
    independent: bool
    covered_by: int | None
    account: str | None
    account_data: str | None
    github_commit: str | None
    upgrade_authority: str | None


class GitWitness(Witness):
    """Our repository and its remote. `commit`: that of the savepoint, if it has one."""

    commit: str | None
    remote: str | None


class Witnesses(Shape):
    """All three."""

    local: Witness
    git: GitWitness
    chain: ChainWitness


class CheckedSavepoint(Shape):
    """A savepoint and what each witness says of it."""

    seq: int
    snapshot_hash: str
    verdict: Verdict
    witnesses: Witnesses


class Verification(Shape):
    """`verify --json`. `index`: the rules over the whole index; `repository`: what git says of all
    savepoints alike.
    """

    verdict: Verdict
    savepoints: list[CheckedSavepoint]
    index: Witness
    repository: Witness


class ProofWitnesses(Shape):
    """The file by itself, and the ledger if it was asked."""

    proof: Witness
    ledger: Witness


class ProofVerification(Shape):
    """`proof verify --json`. `anchored_by`: the record that the entry names; `proves`,
    `only_online`: what the file shows by itself, and what it cannot, in words.
    """

    verdict: Verdict
    instance: str
    signer: str
    seq: int
    snapshot_hash: str
    anchored_by: int
    ledger: str
    account: str
    witnesses: ProofWitnesses
    proves: list[str]
    only_online: list[str]
