"""`savepoint succession run`: Day becomes Dusk, covered by a savepoint."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import create, options, place, terminal
from savepoint.cli.succession import dynasty
from savepoint.core import limits
from savepoint.core.errors import TranscriptError
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import Report
    from succession.dynasty.running import Ran
    from succession.dynasty.session.observe import Covering

_REASON = "manual trigger"
_FROM = f"Draw observations from this savepoint: {options.SELECTORS}"


def run(
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be; change nothing.")
    ] = False,
    source: Annotated[str, options.value("--from", "SELECTOR", _FROM, "one made now")] = "",
    allow_unverified: Annotated[
        bool,
        typer.Option("--allow-unverified", help="With --from: also one that cannot be checked."),
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Run a succession: Day becomes Dusk, Dawn becomes Day. A savepoint is made first."""
    from succession.dynasty import running

    where = dynasty.here(project)
    asked = place.request(where.at, "manual")
    drawn = _verified(where.at, source, allow=allow_unverified) if source else None
    with dynasty.opened(where):  # a damaged one is covered by no savepoint
        pass
    made = None if dry else _cover(where.at)
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    asked = asked._replace(session_id=dynasty.session(), deadline=deadline)
    with dynasty.way_back(where.at.store, where.branch.folder):
        ran = running.run(asked, drawn or made, _REASON, dry=dry)
    dynasty.tell_aside(ran.aside)
    if as_json:
        terminal.document(_document(ran, made, dry=dry))
    else:
        _print(ran, dry=dry)


def _cover(at: place.Place) -> Covering | None:
    """A savepoint of the state before, if the agent ever had a session here."""
    from succession.dynasty.session.observe import Covering

    try:
        saved, _ = create.save_now(place.request(at, "manual")._replace(even_if_unchanged=True))
    except TranscriptError as failure:
        terminal.note(f"no savepoint covers what was before: {failure.message}")
        return None
    named = place.numbered(saved.paths, saved.record.seq, at.paths.slug)
    terminal.note(f"{named} covers what was before")
    return Covering.of(saved.paths, saved.record)


def _verified(at: place.Place, selector: str, *, allow: bool) -> Covering:
    """The savepoint that a selector names, if it may be built on (DESIGN 9)."""
    from savepoint.resurrect.admission import Admission
    from succession.dynasty.session.observe import Covering

    one = savepoints.find(at.paths, selector)
    report = _report(at, one)
    Admission(report, allow_unverified=allow).raise_worst()
    terminal.note(f"savepoint {one.seq} is {report.verdict}")
    return Covering.of(at.paths, one)


def _report(at: place.Place, one: Record) -> Report:
    """What all witnesses say of it."""
    from savepoint.cli.ledger import chain
    from savepoint.gitlayer.witness import witness
    from savepoint.gitlayer.witness.witness import Look
    from savepoint.store.witness.witness import verify_local

    with terminal.progress("verifying") as progress:
        report = verify_local(
            at.paths, lambda saves: [it for it in saves if it.seq == one.seq], progress
        )
        repo = place.repository(at.store)
        report = witness.verify(repo, at.paths, report, Look())
    return chain.verify(at.config, repo, at.paths, report, chain.Wanted())


def _document(ran: Ran, made: Covering | None, *, dry: bool) -> Json:
    told = ran.succession
    moves: list[Json] = [
        {
            "id": one.entry.id,
            "title": one.entry.title,
            "from": one.source,
            "to": one.target,
            "why": one.why,
        }
        for one in told.moves
    ]
    return {
        "ruler": told.state.meta.title(),
        "reason": told.state.meta.reason,
        "dry_run": dry,
        "savepoint": made.seq if made else None,
        "moves": moves,
        "notes": list(told.notes),
        "report": told.report,
    }


def _print(ran: Ran, *, dry: bool) -> None:
    told = ran.succession
    if dry:
        terminal.say("DRY RUN: nothing is changed")
    for one in told.moves:
        terminal.say(f"{one.source} → {one.target}: {one.entry.title} ({one.why})")
    if not told.moves:
        terminal.say("No entry moves: Day has nothing to pass on")
    for line in told.report.rstrip("\n").split("\n"):
        terminal.say(line)
    for note in told.notes:
        terminal.note(note)
