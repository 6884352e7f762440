"""`savepoint verify`: prove that savepoints are whole and unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core.errors import UsageError
from savepoint.core.verdicts import Verdict
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.verdicts import CheckedSavepoint, Finding, Report

_COLOURS = {Verdict.VERIFIED: "green", Verdict.PENDING: "yellow", Verdict.UNVERIFIABLE: "yellow"}


def verify(
    selector: options.Selector = "",
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
    raise typer.Exit(report.exit_code)


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
