"""`savepoint proof`: one file that shows a third party what was anchored of a savepoint."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import chain
from savepoint.cli.verify import verify
from savepoint.core import limits, spelling, verify_proof
from savepoint.core import proof as proofs
from savepoint.core.errors import (
    MalformedError,
    NoStoreError,
    OutputExistsError,
    UnverifiableError,
    UsageError,
)
from savepoint.core.verdicts import CheckedSavepoint, Report, Verdict, Witness
from savepoint.store import durable, savepoints
from savepoint.store.config import EMBEDDED, MAINNET
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.core.entry import Account
    from savepoint.core.proof import Proof
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.core.verify_proof import Offline
    from savepoint.store.layout import Store

app = typer.Typer(
    help="Prove to somebody else what was anchored of a savepoint.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_ONLY_ONLINE = (
    "that the ledger has the entry, and since when by its clock",
    "that it is final, and that no later state of the ledger lacks it",
    "which program keeps the account, and who may change that program",
    "whether the cluster is a known public one",
)
_NAMES = (EMBEDDED, "localnet", "devnet", "testnet", MAINNET)
_MARKS = (b'"account_data":', b'"birth":', b'"genesis":')  # of a proof, and of little else
_KINDS = (  # what a snapshot has not, and what it is
    (b'"conversation_history":[', "what `savepoint export` made, with everything inlined"),
    (_MARKS[0], "a proof"),
    (b"age-encryption.org/", "encrypted, as a backup of keys is"),
)
_MADE = "name the file as `proof export` made it"
_AGAIN = "it is not as it was made: ask for the file again"
_NOT_ASKED = "not asked: --online asks it"
_AWAY = "an embedded ledger stays on the machine that made the proof, which is not this one"
_NAME_IT = "verify it there, or name the ledger that it is of with --ledger"


@app.command("export")
def export(
    selector: options.Selector = "latest",
    *,
    output: options.OutputFile,
    force: options.Force = False,
    ledger: options.LedgerName = "",
    program: options.ProgramId = "",
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write the proof of a savepoint that is anchored."""
    from anchor_service import proving

    at = place.find(project, instance)
    one = savepoints.find(at.paths, selector)
    target = place.output(output)
    choice = ledger or at.config.ledger
    if choice is None or (choice == EMBEDDED and not os.path.exists(at.store.ledger_db)):
        hint = "`savepoint status` shows whether it is on its way"
        raise UnverifiableError(f"savepoint {one.seq} is not anchored", hint=hint)
    known = chain.key("--program", program) or chain.program_of(at.config, choice)
    asked = chain.opened(choice, at.store, known)
    if known is None:
        raise UsageError(f"no program at {asked.name} is known", hint=chain.NO_PROGRAM)
    with terminal.busy(f"asking {asked.name}"):
        made = proving.export(asked, known, place.repository(at.store), at.paths, one)
    data = made.to_bytes()
    _write(target, data, force=force)
    if as_json:
        digest = hashlib.sha256(data).hexdigest()
        terminal.document({"seq": one.seq, "file": target, "bytes": len(data), "sha256": digest})
        return
    terminal.say(f"proof of savepoint {one.seq} of {at.title} in {target}: {len(data)} bytes")
    terminal.say("`savepoint proof verify FILE` needs nothing but this file")
    snapshot = os.path.join(at.paths.path, one.snapshot_file)
    terminal.say(f"with --snapshot it compares what was saved as well: {snapshot}")


@app.command("verify")
def verify_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The proof.")],
    *,
    snapshot: Annotated[
        str, options.value("--snapshot", "FILE", "The savepoint's snapshot file.")
    ] = "",
    online: Annotated[bool, typer.Option("--online", help="Ask the ledger as well.")] = False,
    ledger: Annotated[
        str, options.value("--ledger", "NAME", "With --online: which.", "the proof's")
    ] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Check a proof, which needs no store.

    What it shows by itself; with --online also what only the ledger can tell.
    """
    if ledger and not online:
        raise UsageError("--ledger goes with --online")
    given = _parse(file)
    one = given.records[0]
    bytes_of = _snapshot(snapshot, one) if snapshot else None
    found = verify_proof.offline(given, bytes_of)
    witness = _asked(given, found, ledger, project) if online else Witness((), off=_NOT_ASKED)
    checked = CheckedSavepoint(
        one.seq,
        str(one.body.get("snapshot_hash")),
        {"proof": Witness(found.findings), "ledger": witness},
    )
    report = Report(Witness((), off="a proof has no index"), (checked,))
    told = _told(given, found, report)
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.verification import ProofVerification

        terminal.document(shaped(ProofVerification, told))
    else:
        _print(checked, report, told)
    raise typer.Exit(report.exit_code)


def _asked(given: Proof, found: Offline, choice: str, project: str) -> Witness:
    """What the ledger says of the proof."""
    from anchor_service import proving

    if found.account is None:
        return Witness((), off="the proof has no entry that can be read")
    if not choice and given.ledger not in _NAMES:
        # Whoever made the file would choose who answers for it, and could answer with any genesis.
        hint = "name the ledger that you trust with --ledger"
        raise UsageError("the proof names endpoints of its own, which prove nothing", hint=hint)
    choice = choice or given.ledger
    store = _store(project) if choice == EMBEDDED else None
    if choice == EMBEDDED and store is None:
        # Nobody signs the name of the ledger: who changes it to this one is not believed by that.
        return Witness(tuple(proving.not_asked(_AWAY, _NAME_IT)))
    asked = chain.opened(choice, store, given.program)
    if store is not None and asked.genesis() != given.genesis:
        return Witness(tuple(proving.not_asked(_AWAY, _NAME_IT)))
    with terminal.busy(f"asking {asked.name}"):
        return Witness(tuple(proving.ask(asked, given, found.account)))


def _store(project: str) -> Store | None:
    """The store here, if it has an embedded ledger."""
    try:
        found = place.store_of(place.folder(project))
    except NoStoreError:
        return None
    return found if os.path.exists(found.ledger_db) else None


def _told(given: Proof, found: Offline, report: Report) -> dict[str, Json]:
    """The document of `proof verify --json`."""
    (one,) = report.savepoints
    key = spelling.base58(given.birth.signer)
    last, account = given.records[-1], spelling.base58(given.account)
    holds = one.witnesses["proof"].verdict is Verdict.VERIFIED
    return {
        "verdict": str(report.verdict),
        "instance": given.birth.instance,
        "signer": key,
        "seq": one.seq,
        "snapshot_hash": one.snapshot_hash,
        "anchored_by": last.seq,
        "ledger": given.ledger,
        "account": account,
        "witnesses": {name: witness.to_json() for name, witness in one.witnesses.items()},
        "proves": _proves(given, found.account) if holds and found.account else [],
        "only_online": list(_ONLY_ONLINE),
    }


def _proves(given: Proof, read: Account) -> list[Json]:
    """What follows from the rules that hold without a ledger, in words."""
    one, last = given.records[0], given.records[-1]
    who = f"the key {spelling.base58(given.birth.signer)} of {given.birth.instance}"
    place_of = f"{spelling.base58(given.account)} of program {spelling.base58(given.program)}"
    genesis = spelling.base58(given.genesis)
    return [
        f"{who} signed record {one.seq}, with snapshot {one.snapshot_hash}",
        f"records {one.seq} to {last.seq} lead from it to the one that the entry names",
        f"it signed entry {read.seq} for account {place_of}, genesis {genesis}, and no other place",
    ]


def _print(checked: CheckedSavepoint, report: Report, told: dict[str, Json]) -> None:
    verify.print_savepoint(checked, in_full=True)
    terminal.say(f"{report.verdict}: {told['instance']}, savepoint {checked.seq}")
    proves, only = told["proves"], told["only_online"]
    assert isinstance(proves, list)  # noqa: S101  # _told; for the type checker
    assert isinstance(only, list)  # noqa: S101  # as above
    for heading, lines in (
        ("shown by the file alone", proves),
        ("told by the ledger alone (--online)", only),
    ):
        terminal.say(f"{heading}:" if lines else f"{heading}: nothing")
        for line in lines:
            terminal.say(f"    {line}")
    if not any(one.rule == "VERIFY-5" for one in checked.witnesses["proof"].findings):
        terminal.note(
            "no --snapshot was given: what the snapshot holds was not compared; `proof export` "
            "says where that file lies"
        )
    if report.hint:
        terminal.advise(_AGAIN if report.exit_code == MalformedError.exit_code else report.hint)


def _parse(path: str) -> Proof:
    """The proof of a file that a person names. A damaged one is evidence of something; a file that
    never was one is not. Raises UsageError, MalformedError, UnsupportedFormatError, DiskError.
    """
    data = _read(path, limits.PROOF_BYTES)
    try:
        return proofs.parse(data)
    except MalformedError as failure:
        if not any(mark in data for mark in _MARKS):
            raise UsageError(f"{path} is no proof: {failure.message}", hint=_MADE) from None
        raise MalformedError(failure.message, hint=_AGAIN) from failure


def _snapshot(path: str, one: Record) -> bytes:
    """The snapshot of the proof's savepoint. Another file of ours in its place is no changed one.
    Raises UsageError, DiskError.
    """
    name = os.path.basename(one.snapshot_file)
    hint = f"the snapshot is {name}: `proof export` and `show --json` say where it lies"
    data = _read(path, limits.SNAPSHOT_BYTES, hint)
    kind = next((kind for mark, kind in _KINDS if mark in data), None)
    if kind is not None and hashlib.sha256(data).hexdigest() != one.snapshot_hash:
        raise UsageError(f"{path} is no snapshot: it is {kind}", hint=hint)
    return data


def _read(path: str, limit: int, hint: str = _MADE) -> bytes:
    """A file that a person names. Raises UsageError, DiskError."""
    try:
        data = read_bounded(os.path.realpath(path), limit)
    except MalformedError as failure:  # a folder, a pipe, too large: nothing of it was read
        raise UsageError(failure.message, hint=hint) from None
    if data is None:
        raise UsageError(f"there is no file {path}", hint=hint)
    return data


def _write(target: str, data: bytes, *, force: bool) -> None:
    """A file that differs is never replaced unasked (deja-vu#725)."""
    folder, name = os.path.split(target)
    with durable.NewFile(folder) as new:
        new.write(data)
        if force:
            new.replace(name)
        elif not new.create(name) and read_bounded(target, limits.PROOF_BYTES) != data:
            raise OutputExistsError(f"{target} exists and differs")
    durable.sync_directory(folder)
