"""`savepoint fsck`: recompute everything of the store, and repair what can be."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import chain
from savepoint.core import limits
from savepoint.core.errors import MalformedError

if TYPE_CHECKING:
    from savepoint.core.errors import SavepointError
    from savepoint.core.strict_json import Json
    from savepoint.gitlayer.repair.mend import Mended
    from savepoint.store.fsck.fsck import Checked
    from savepoint.store.fsck.items import Item
    from savepoint.store.layout import Store

_AGAIN = "its signing key was derived from the root seed again"
_VERDICTS = {  # of the worst item's exit code; what nobody could look at is not damaged
    0: "no damage",
    21: "NOT ALL CHECKED",
    22: "ROLLED BACK",
    23: "NEWER FORMAT",
}
_COLOURS = {"damage": "red", "unchecked": "yellow", "warning": "yellow"}
_UNCHECKED = 21  # exit code of an item that nobody could look at


def fsck(
    repair: Annotated[
        bool, typer.Option("--repair", help="Bring back what is lost; accept what nobody has.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Recompute everything, and list what is wrong.

    Damage sets the exit code, and what a repair could not do; warnings and notes do not.
    """
    from savepoint.gitlayer.repair import mend
    from savepoint.gitlayer.witness import findings
    from savepoint.store.fsck import fsck as checker
    from savepoint.store.keys import rekey

    store = place.store_of(place.folder(project))  # also one whose config is damaged
    repo = place.repository(store)
    outcome = mend.Outcome((), ())
    if repair:
        deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
        again = [mend.Mended(one.slug, None, _AGAIN) for one in rekey.restore_lost(store, deadline)]
        outcome = mend.mend(repo, store, int(time.time()), deadline)
        outcome = outcome._replace(done=(*again, *outcome.done))
        _push(store)
    with terminal.progress("checking") as progress:
        found = checker.fsck(store, time.time(), progress)
        git = findings.find(repo, store, found.instances)
    counts = {**found.counts, "commits": git.commits}
    ledger = chain.fsck(repo, store, found.instances)
    items = (*found.items, *git.items, *ledger, *_threads(store), *_dynasty(store))
    found = found._replace(items=items, counts=counts)
    code = next(filter(None, [found.exit_code, *(one.exit_code for one in outcome.problems)]), 0)
    if as_json:
        repaired: list[Json] = [
            {"instance": one.slug or None, "seq": one.seq, "what": one.what} for one in outcome.done
        ]
        problems: list[Json] = [
            {"message": one.message, "hint": one.hint} for one in outcome.problems
        ]
        told: dict[str, Json] = {"exit_code": code, "repaired": repaired, "problems": problems}
        terminal.document({**found.to_json(), **told})
    else:
        copied = git.commits > 0 or _has_remote(store)
        hint = _way_out(found, repaired=repair, copied=copied)
        _print(found, outcome.done, outcome.problems, hint)
    raise typer.Exit(code)


def _threads(store: Store) -> list[Item]:
    """The log of threads: its chain, its signatures, and what one line may say after another."""
    from savepoint.core.errors import SavepointError, UnverifiableError
    from savepoint.store.fsck.items import damage
    from succession.handoff import log

    try:
        log.read(store)
    except SavepointError as failure:
        return [damage(failure.message, failure.exit_code, failure.hint)]
    unseen = log.unseen(store)
    return [damage(unseen, UnverifiableError.exit_code, log.COMPARE)] if unseen else []


def _dynasty(store: Store) -> list[Item]:
    """Its files: what no command could read, or finish."""
    from savepoint.cli.succession import dynasty
    from savepoint.core.errors import BusyError, UnverifiableError
    from savepoint.store.fsck.items import damage

    unchecked = {BusyError.exit_code: UnverifiableError.exit_code}
    return [
        damage(one.message, unchecked.get(one.exit_code, one.exit_code), one.hint)
        for one in dynasty.damage(store)
    ]


def _push(store: Store) -> None:
    """A worker tells the remote what was repaired, as after a save."""
    from savepoint.core.errors import SavepointError
    from savepoint.work import start
    from savepoint.work.kinds.push import Push

    around = place.around()
    with suppress(SavepointError):  # a damaged config: what is owed is found by the next worker
        if Push(lambda _done, _total: None).owed(store, around):
            start.start(store, around)


def _way_out(found: Checked, *, repaired: bool, copied: bool) -> str:
    """The hint; of damage: what brings it back, and what to do where nothing here does. copied: git
    has a commit of the store, or the remote may have one.
    """
    code, known = MalformedError.exit_code, found.hint
    open_ones = [one for one in found.items if one.exit_code == code and not one.hint]
    if known not in ("", MalformedError.default_hint) or not open_ones:
        return known
    if copied and not repaired:
        return "`savepoint fsck --repair` brings back from git what git has"
    lost = "git does not have it" if copied else "it was not committed to git"
    rest = "`savepoint verify --all` says which savepoints are whole"
    return f"{lost}: put these files back from a copy of your own; {rest}"


def _has_remote(store: Store) -> bool:
    from savepoint.core.errors import SavepointError
    from savepoint.store import config

    try:
        return config.load(store).remote is not None
    except SavepointError:  # a damaged config is listed
        return False


def _print(
    found: Checked, done: tuple[Mended, ...], problems: tuple[SavepointError, ...], hint: str
) -> None:
    for one in done:
        record = "" if one.seq is None else f" (record {one.seq})"
        terminal.say(f"repaired  {one.slug + ': ' if one.slug else ''}{one.what}{record}")
    for problem in problems:
        terminal.say(f"not repaired: {problem.message}", "red")
        if problem.hint:
            terminal.advise(problem.hint)
    for item in found.items:
        rule = f"{item.rule}: " if item.rule else ""
        word = "unchecked" if item.exit_code == _UNCHECKED else item.severity
        terminal.say(f"{word:8}  {rule}{item.detail}", _COLOURS.get(word))
        if item.hint:
            terminal.say(f"          {terminal.arrow()} {item.hint}")
    counts = ", ".join(f"{name} {count}" for name, count in found.counts.items())
    verdict = _VERDICTS.get(found.exit_code, "DAMAGED")
    terminal.say(f"{verdict} in store {found.store.id}: {counts}")
    if hint:
        terminal.advise(hint)
