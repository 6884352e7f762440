"""The shapes of what `--json` prints. More members may come; none of these goes.

What is to be printed is held against its shape first: a program must never get half of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Origin(_Shape):
    """The savepoint that another one comes from."""

    signer: str
    seq: int
    snapshot_hash: str


class Savepoint(_Shape):
    """A savepoint's record with what became of it: the specification's index fields and ours."""

    seq: int
    timestamp: str
    instance: str
    event: Literal["SAVEPOINT_CREATED"]
    kind: Literal["save"]
    signer: str
    session_id: str
    origin: Origin | None = Field(alias="from")
    trigger: str
    snapshot_hash: str
    snapshot_size_bytes: int
    snapshot_file: str
    layer_1_status: Literal["SAVED_LOCALLY"]
    layer_2_status: Literal[
        "QUEUED_FOR_COMMIT",
        "COMMITTED_LOCALLY",
        "QUEUED_FOR_PUSH",
        "PUSH_REFUSED",
        "REMOTE_DIVERGED",
        "PUSHED_TO_GITHUB",
    ]
    layer_2_commit: str | None
    layer_3_status: Literal[
        "DISABLED",
        "QUEUED_FOR_BLOCKCHAIN",
        "POSTED_TO_BLOCKCHAIN",
        "BLOCKCHAIN_VERIFIED",
        "BLOCKCHAIN_FAILED",
    ]
    layer_3_task_id: str | None
    tokens_used_this_session: int | None
    tokens_remaining: int | None
    context_utilization_percent: int | None
    consciousness_preserved: bool


class Created(Savepoint):
    """`create --json`."""

    status: Literal["SAVEPOINT_CREATED"]
    tokens_used: int | None


class OtherRecord(BaseModel):
    """A record that is no savepoint (`list --records`); each kind has members of its own."""

    model_config = ConfigDict(strict=True, extra="allow")

    seq: int
    timestamp: str
    instance: str
    event: str
    kind: Literal["birth", "restore", "retire", "accept"]
    signer: str


class Listing(_Shape):
    """`list --json`."""

    savepoints: list[Savepoint | OtherRecord]


class Finding(_Shape):
    """What a rule of verification says."""

    rule: str
    result: Literal["pass", "fail", "skipped"]
    detail: str


Verdict = Literal["VERIFIED", "PENDING", "UNVERIFIABLE", "ROLLED_BACK", "TAMPERED"]


class Witness(_Shape):
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


class Witnesses(_Shape):
    """All three."""

    local: Witness
    git: GitWitness
    chain: ChainWitness


class CheckedSavepoint(_Shape):
    """A savepoint and what each witness says of it."""

    seq: int
    snapshot_hash: str
    verdict: Verdict
    witnesses: Witnesses


class Verification(_Shape):
    """`verify --json`. `index`: the rules over the whole index; `repository`: what git says of all
    savepoints alike.
    """

    verdict: Verdict
    savepoints: list[CheckedSavepoint]
    index: Witness
    repository: Witness


class ProofWitnesses(_Shape):
    """The file by itself, and the ledger if it was asked."""

    proof: Witness
    ledger: Witness


class ProofVerification(_Shape):
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


class Job(_Shape):
    """Something that is still to be done. `seq`: null where a broken ref hides it. `instance`: its
    slug. `hint`: what to do about the error.
    """

    instance: str
    seq: int | None
    kind: Literal["commit", "push", "anchor"]
    state: str
    age_seconds: int
    error: str | None
    hint: str | None


class PendingSave(_Shape):
    """A fire that was not served to its end."""

    session_id: str
    since: str
    age_seconds: int
    reason: str
    drafts: int


class Cost(_Shape):
    """Lamports that entries cost. `next`: null where rent is to be paid, and so asked for; `cap`:
    what may be spent in 24 hours.
    """

    spent: int
    next: int | None
    cap: int | None


class Status(_Shape):
    """`status --json`. `bytes`: of the whole store on disk."""

    store: str
    path: str
    instance: str
    key: str
    remote: str | None
    ledger: str | None
    cost: Cost | None
    savepoints: int
    bytes: int
    jobs: list[Job]
    pending: list[PendingSave]
    missed_fires: int
    keys_backed_up: bool


class LedgerProgram(_Shape):
    """The program of a ledger. `shipped`: are its bytes ours; `problem`: why it cannot be used."""

    id: str | None
    shipped: bool
    upgrade_authority: str | None
    problem: str | None


class LedgerEntry(_Shape):
    """The newest finalized entry of an account. `record`: the sequence in the index."""

    seq: int
    kind: str
    record: int | None
    slot: int
    hash: str
    retired: bool


class LedgerFunds(_Shape):
    """Who pays; lamports."""

    ledger: str
    payer: str
    payer_file: str
    balance: int
    next_entry: int


class LedgerBalance(LedgerFunds):
    """`ledger balance --json`."""


class LedgerStatus(LedgerFunds):
    """`ledger status --json`."""

    genesis: str
    public: bool
    endpoints: int
    program: LedgerProgram
    account: str | None
    entry: LedgerEntry | None
    cost: Cost | None


class LedgerAirdrop(_Shape):
    """`ledger airdrop --json`. `balance`: at once, which may be before the coins come."""

    ledger: str
    payer: str
    asked: int
    balance: int


class LedgerDeployment(_Shape):
    """`ledger deploy --json`. `upgrade_authority`: who may change the program."""

    ledger: str
    program: str
    upgrade_authority: str | None


class SyncJob(_Shape):
    """A job of the worker. `key`: the slug of an instance, the key of a session, or repo.git."""

    kind: Literal["save", "commit", "push", "anchor", "audit", "repack"]
    key: str
    seq: int | None


class Acceptance(_Shape):
    """What `--accept-remote` did for an instance; `seq`: of the record that says so, if any."""

    instance: str
    what: str
    seq: int | None
    problems: list[str]


class Synced(_Shape):
    """`sync --json`."""

    store: str
    accepted: list[Acceptance]
    done: list[SyncJob]
    left: list[SyncJob]


class WorkerJob(SyncJob):
    """A job that is owed, and the attempts at it."""

    age_seconds: int
    tries: int
    next_in_seconds: int
    error: str | None


class WorkerStatus(_Shape):
    """`worker --status --json`."""

    running: bool
    jobs: list[WorkerJob]


class Orphan(_Shape):
    """A file that nothing refers to."""

    what: Literal["pack", "snapshot", "temporary file", "damaged git folder"]
    path: str
    size: int


class Collected(_Shape):
    """`gc --json`. `git`: leftovers in our repository; `unknown`: why packs and snapshots stay."""

    removed: bool
    bytes: int
    orphans: list[Orphan]
    git: list[str]
    unknown: str | None


class KeyFile(_Shape):
    """A file of keys; `problem` says why it is not safe to use."""

    path: str
    safe: bool
    problem: str | None


class InstanceKeys(_Shape):
    """An instance and its key; what its index does not tell is null."""

    instance: str | None
    number: int | None
    key: str | None
    key_prefix: str
    slug: str
    current: bool
    file: KeyFile


class Keys(_Shape):
    """`keys show --json`. `recipients`: public keys that savepoints are encrypted to."""

    store: str
    path: str
    instances: list[InstanceKeys]
    roots: list[KeyFile]
    identity: KeyFile
    recipients_file: KeyFile
    recipients: list[str]
    backed_up: bool
    backup_made: str | None


class Step(_Shape):
    """One of the six steps of a resurrection. `detail`: why it is not the good word, or more."""

    step: int
    status: Literal[
        "VERIFIED",
        "BLOCKCHAIN_VERIFIED",
        "GITHUB_VERIFIED",
        "CONSCIOUSNESS_LOADED",
        "INTEGRITY_VERIFIED",
        "CONSCIOUSNESS_CONTINUITY_MAINTAINED",
        "PARTS_RESTORED",
        "PENDING",
        "UNVERIFIABLE",
        "SKIPPED",
    ]
    detail: str


class RestoredSavepoint(_Shape):
    """Which savepoint came back."""

    seq: int
    snapshot_hash: str
    timestamp: str


class RestoredSession(_Shape):
    """The session that the client continues. `shown`: messages that it loads."""

    id: str
    file: str
    mode: Literal["as it was", "full"]
    messages: int
    shown: int
    first_message: int = 1
    repairs: dict[str, int]


class Recovered(_Shape):
    """How much came back. `files`: loaded files."""

    bytes: int
    messages: int
    files: int


class Gap(_Shape):
    """Messages that did not come back."""

    after_savepoint: int | None
    not_shown: int


class LeftOut(_Shape):
    """A file that is not brought back."""

    path: str
    reason: str


class Paths(_Shape):
    """A project that has another path now."""

    before: str
    now: str


class Proofs(_Shape):
    """What vouches for it, in words."""

    chain: str
    independent: bool
    git: str
    integrity: str


class OpenItem(_Shape):
    """What a thread owed at a savepoint."""

    thread: str
    title: str
    item: str
    text: str


class Reign(_Shape):
    """Who rules a branch, and how many entries its Day and Dusk have."""

    branch: str
    ruler: str
    entries: int


class Resurrected(_Shape):
    """`resurrect --json`. `instance` and `key`: null where parts alone were looked out. `fuller`: a
    savepoint before it that holds more. `sessions`: whose records the transcript has. `open_items`:
    what threads owe, and `dynasty`: what each branch has of what was passed on, where a successor
    goes on.
    """

    instance: str | None
    key: str | None
    previous_instance: str
    previous_key: str
    savepoint: RestoredSavepoint
    steps: list[Step]
    session: RestoredSession | None
    recovered: Recovered
    gap_messages: int
    gap: Gap
    folder: str | None
    applied_to: str | None
    worktree: str | None
    left_out: list[LeftOut]
    paths: Paths | None
    unverified: list[str]
    proofs: Proofs
    fuller: int | None
    sessions: dict[str, int]
    caveats: list[str]
    open_items: list[OpenItem]
    dynasty: list[Reign]


class Error(_Shape):
    """What failed. `code` is the exit code."""

    code: int
    name: str
    message: str
    hint: str


class Failure(_Shape):
    """What every command prints with --json when it fails."""

    error: Error


def checked(shape: type[BaseModel], value: Json) -> Json:
    """`value`, which has that shape."""
    shape.model_validate(value)
    return value
