"""`savepoint verify`: prove that savepoints are whole and unchanged."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from savepoint.capture import surroundings
from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import chain
from savepoint.core import limits
from savepoint.core.errors import DiskError, UsageError
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer.witness.witness import Look
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.verdicts import CheckedSavepoint, Finding, Report
    from savepoint.store.layout import InstancePaths
    from savepoint.store.witness.examine import Select

_COLOURS = {Verdict.VERIFIED: "green", Verdict.PENDING: "yellow", Verdict.UNVERIFIABLE: "yellow"}


def verify(
    selector: Annotated[
        str, typer.Argument(metavar="SELECTOR", help=options.SELECTORS, show_default="latest")
    ] = "",
    *,
    every: Annotated[bool, typer.Option("--all", help="All savepoints of the instance.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check a fresh clone of the remote.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask neither remote nor ledger: UNVERIFIABLE at best.")
    ] = False,
    ledger: options.LedgerName = "",
    program: options.ProgramId = "",
    account: Annotated[str, options.value("--account", "KEY", "The account that it must be.")] = "",
    repository: Annotated[
        str,
        options.value(
            "--repository", "URL", "Only this remote, or clone of one, and the ledger; no store."
        ),
    ] = "",
    lineage: Annotated[
        bool, typer.Option("--lineage", help="The line that the instance comes of.")
    ] = False,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Prove that savepoints are whole and unchanged."""
    if lineage and (selector or every or deep or repository):
        raise UsageError(
            "--lineage is of a whole instance: no selector, --all, --deep, --repository"
        )
    if every and selector:
        raise UsageError("a selector and --all exclude each other")
    if (deep or repository) and offline:
        raise UsageError(f"{'--deep' if deep else '--repository'} and --offline exclude each other")
    if deep and repository:
        raise UsageError("--repository looks at nothing but a fresh clone: leave out --deep")
    asked = chain.Wanted(ledger, program, account, offline)
    if lineage:
        from savepoint.cli.verify import lineage as line

        raise typer.Exit(line.verify(place.find(project, instance), asked, as_json=as_json))
    chosen = None if every else _choice(selector or "latest")
    if repository:
        shown = _of_repository(repository, instance, chosen, asked)
    else:
        look = Look(offline=offline, deep=deep, whole=every)
        shown = _of_store(place.find(project, instance), chosen, look, asked)
    report = shown.report
    if not report.savepoints and report.verdict is Verdict.VERIFIED:
        raise savepoints.nothing(shown.paths, selector or "latest")  # nothing is proved by nothing
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.verification import Verification

        terminal.document(shaped(Verification, report.to_json()))
    else:
        _print(shown)
    if not repository:
        with suppress(DiskError):  # what cannot be read is in the report
            _note_the_rest(shown.paths, report, every=every)
    raise typer.Exit(report.exit_code)


class _Shown(NamedTuple):
    """What was found, and of what."""

    report: Report
    paths: InstancePaths
    title: str
    remote: str | None


def _of_store(at: place.Place, chosen: Select | None, look: Look, asked: chain.Wanted) -> _Shown:
    from savepoint.gitlayer.witness import witness
    from savepoint.store.witness.witness import verify_local

    with terminal.progress("verifying") as progress:
        report = verify_local(at.paths, chosen, progress)
        repo = place.repository(at.store)
        report = witness.verify(repo, at.paths, report, look)
    report = chain.verify(at.config, repo, at.paths, report, asked)
    return _Shown(report, at.paths, at.title, at.config.remote)


def _of_repository(url: str, instance: str, chosen: Select | None, asked: chain.Wanted) -> _Shown:
    """For a verifier who has no store, and trusts none."""
    from savepoint.gitlayer.remote import remote_url
    from savepoint.gitlayer.witness import alone, witness

    where = remote_url.parse(url, os.getcwd())
    scratch = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # a random name in it, made for us alone
    env = surroundings.for_children(os.environ)
    deadline = time.monotonic() + limits.COMMAND_SECONDS
    with alone.opened(where, instance, scratch, env, deadline) as it:
        report = witness.verify(it.repo, it.paths, alone.report(it, chosen), Look(whole=True))
        report = chain.verify(it.config, it.repo, it.paths, report, asked)
        return _Shown(report, it.paths, place.title(it.paths), where.shown)


def _choice(selector: str) -> Select:
    wanted = savepoints.criterion(selector)

    def chosen(saves: list[Record]) -> list[Record]:
        found = wanted.choose(reversed(saves))
        return [] if found is None else [found]

    return chosen


def _note_the_rest(paths: InstancePaths, report: Report, *, every: bool) -> None:
    """What is whole and unchanged need not be all that there was, nor all that there is."""
    checked = {one.seq for one in report.savepoints}
    saves = [one for one in savepoints.records(paths).saves if one.seq in checked]
    lacking = [str(one.seq) for one in saves if not one.body["consciousness_preserved"]]
    if lacking:
        shown = ", ".join(lacking[: limits.LISTED])
        more = f" and {len(lacking) - limits.LISTED} more" if len(lacking) > limits.LISTED else ""
        why = f"`savepoint show {lacking[0]}` says what could not be saved, and why"
        terminal.note(f"incomplete when they were made: {shown}{more}; {why}")
    others = savepoints.told(savepoints.others(paths)) if every else ""
    if others:
        terminal.note(f"other instances of this store were not looked at: {others}")


def _print(shown: _Shown) -> None:
    report = shown.report
    for one in report.savepoints:
        print_savepoint(one, in_full=len(report.savepoints) == 1)
    told = {finding for one in report.savepoints for finding in _findings(one)}
    rest = [one for one in (*report.chain.findings, *report.git.findings) if one not in told]
    _print_findings([one for one in rest if one.result != "pass" or not report.savepoints])
    count = terminal.counted(len(report.savepoints), "savepoint")
    so = sum(one.verdict is report.verdict for one in report.savepoints)
    if 0 < so < len(report.savepoints):
        count = f"{so} of {count}"
    colour = _COLOURS.get(report.verdict, "red")
    terminal.say(f"{report.verdict}: {count} of {shown.title}", colour)
    chain.tell(report, shown.remote)
    if report.hint:
        terminal.advise(report.hint)


def print_savepoint(one: CheckedSavepoint, *, in_full: bool) -> None:
    """What each witness says of a savepoint; in_full: also the rules that hold."""
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
    """Neighbours that say the same are one line, as the rules of a ledger that was not asked."""
    for (result, detail), alike in groupby(found, lambda one: (one.result, one.detail)):
        rules = list(dict.fromkeys(one.rule for one in alike))  # one can count for all, too
        named = rules[0] if len(rules) == 1 else f"{rules[0]} to {rules[-1]}"
        terminal.say(f"    {named} {result}: {detail}", None if result == "pass" else "red")
