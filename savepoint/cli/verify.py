"""`savepoint verify`: prove that savepoints are whole and unchanged."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits
from savepoint.core.errors import DiskError, UsageError
from savepoint.core.verdicts import Verdict
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.verdicts import CheckedSavepoint, Finding, Report

_COLOURS = {Verdict.VERIFIED: "green", Verdict.PENDING: "yellow", Verdict.UNVERIFIABLE: "yellow"}


def verify(
    selector: Annotated[
        str, typer.Argument(metavar="SELECTOR", help=options.SELECTORS, show_default="latest")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All savepoints of the instance.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check a fresh clone of the remote.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the remote: UNVERIFIABLE at best.")
    ] = False,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Prove that savepoints are whole and unchanged."""
    from savepoint.gitlayer import witness
    from savepoint.store.witness import verify_local

    if every and selector:
        raise UsageError("a selector and --all exclude each other")
    if deep and offline:
        raise UsageError("--deep and --offline exclude each other")
    at = place.find(project, instance)
    wanted = savepoints.criterion(selector or "latest")

    def chosen(saves: list[Record]) -> list[Record]:
        found = wanted.choose(reversed(saves))
        return [] if found is None else [found]

    with terminal.progress("verifying") as progress:
        report = verify_local(at.paths, None if every else chosen, progress)
        look = witness.Look(offline=offline, deep=deep, whole=every)
        repo = place.repository(at.store)
        report = witness.verify(repo, at.paths, report, look)
    if not report.savepoints and report.verdict is Verdict.VERIFIED:
        raise savepoints.nothing(at.paths, selector or "latest")  # nothing is proved by nothing
    if as_json:
        from savepoint.cli import shapes

        terminal.document(shapes.checked(shapes.Verification, report.to_json()))
    else:
        _print(at, report)
    with suppress(DiskError):  # what cannot be read is in the report
        _note_the_rest(at, report, every=every)
    raise typer.Exit(report.exit_code)


def _note_the_rest(at: place.Place, report: Report, *, every: bool) -> None:
    """What is whole and unchanged need not be all that there was, nor all that there is."""
    checked = {one.seq for one in report.savepoints}
    saves = [one for one in savepoints.records(at.paths).saves if one.seq in checked]
    lacking = [str(one.seq) for one in saves if not one.body["consciousness_preserved"]]
    if lacking:
        shown = ", ".join(lacking[: limits.LISTED])
        more = f" and {len(lacking) - limits.LISTED} more" if len(lacking) > limits.LISTED else ""
        why = f"`savepoint show {lacking[0]}` says what could not be saved, and why"
        terminal.note(f"incomplete when they were made: {shown}{more}; {why}")
    others = savepoints.told(savepoints.others(at.paths)) if every else ""
    if others:
        terminal.note(f"other instances of this store were not looked at: {others}")


def _print(at: place.Place, report: Report) -> None:
    for one in report.savepoints:
        _print_savepoint(one, in_full=len(report.savepoints) == 1)
    told = {finding for one in report.savepoints for finding in _findings(one)}
    rest = [one for one in (*report.chain.findings, *report.git.findings) if one not in told]
    _print_findings([one for one in rest if one.result != "pass" or not report.savepoints])
    count = terminal.counted(len(report.savepoints), "savepoint")
    colour = _COLOURS.get(report.verdict, "red")
    terminal.say(f"{report.verdict}: {count} of {at.title}", colour)
    remote = at.config.remote
    if remote is None:
        terminal.say("git has no remote, and chain is OFF: only this disk was asked")
    else:
        terminal.say("chain is OFF: not configured")
    if report.hint:
        terminal.advise(report.hint)


def _print_savepoint(one: CheckedSavepoint, *, in_full: bool) -> None:
    told = []
    for name, witness in one.witnesses.items():
        reason = f" ({witness.off})" if witness.off else ""
        told.append(f"{name} {witness.verdict}{reason}")
    terminal.say(f"{one.seq}  {one.snapshot_hash}")
    terminal.say(f"    {', '.join(told)}")
    _print_findings([f for f in _findings(one) if in_full or f.result != "pass"])


def _findings(one: CheckedSavepoint) -> list[Finding]:
    return [finding for witness in one.witnesses.values() for finding in witness.findings]


def _print_findings(found: list[Finding]) -> None:
    for one in found:
        colour = None if one.result == "pass" else "red"
        terminal.say(f"    {one.rule} {one.result}: {one.detail}", colour)
