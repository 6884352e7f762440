"""What the commands of `savepoint succession` share: the dynasty of a folder, and its output."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from savepoint.cli import place, terminal
from savepoint.core import limits, spelling
from savepoint.core.errors import DynastyError, SavepointError
from savepoint.store.layout import session_key
from succession.dynasty import branch, constants, keep
from succession.dynasty.files import deviants, tiers, vault
from succession.dynasty.session import triggers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from succession.dynasty.branch import Branch
    from succession.dynasty.files.entry import Entry
    from succession.dynasty.keep import Held
    from succession.dynasty.record import Done
    from succession.dynasty.state import State

_BAR_CELLS = 20
_BY_HAND = (
    "no savepoint has it whole: mend it by hand, or move it away; "
    "`savepoint succession import DIR` takes over pages that lie elsewhere, without a dynasty.json"
)


class Here(NamedTuple):
    """The folder of a command, and the branch that it is on."""

    at: place.Place
    branch: Branch


def here(project: str) -> Here:
    """Raises NoStoreError, UnverifiableError (which branch?), SavepointError (the clock)."""
    if not 0 <= time.time() <= spelling.LAST_TIME:  # no time of an entry could be written down
        raise SavepointError("the clock of this machine is out of range", hint="set it")
    at = place.find(project)
    asked = place.request(at, "manual")
    return Here(at, branch.current(asked.project, asked.cwd, asked.environment))


@contextmanager
def opened(where: Here, *, whole: bool = False) -> Iterator[Held]:
    """The dynasty, under its lock; whole: with lineage and archive. Raises BusyError,
    DynastyError, UnsupportedFormatError, DiskError.
    """
    deadline, now = time.monotonic() + limits.LOCK_WAIT_SECONDS, int(time.time())
    store = where.at.store
    with (
        way_back(store, where.branch.folder),
        keep.opened(store, where.branch, now, deadline, whole=whole) as held,
    ):
        tell_aside(held.aside)
        yield held


@contextmanager
def way_back(store: Store, folder: str) -> Iterator[None]:
    """Where a file of the dynasty is damaged, which savepoint it comes back from. folder: of the
    branch.
    """
    try:
        yield
    except DynastyError as failure:
        raise DynastyError(failure.message, hint=hint(store, folder, failure)) from None


def damage(store: Store) -> list[SavepointError]:
    """What cannot be read of the dynasty of a store, with what to do about it; for `fsck` and
    `doctor`, which go on.
    """
    from succession.dynasty import whole

    try:
        found = whole.damage(store, time.monotonic() + limits.LOCK_WAIT_SECONDS)
    except SavepointError as failure:
        found = [("", failure)]
    for folder, one in found:
        one.hint = hint(store, folder, one)
    return [one for _, one in found]


def reigns(store: Store) -> list[Json]:
    """What each branch has, for a session that goes on. What cannot be read is said, and takes
    nothing else away.
    """
    from succession.dynasty import whole

    try:
        return [dict(one._asdict()) for one in whole.reigns(store)]
    except SavepointError as failure:
        terminal.note(f"what was passed on cannot be read: {failure.message}")
        return []


def others(where: Here) -> str:
    """What other branches have: a folder that is on none of them has nothing."""
    held = [one for one in reigns(where.at.store) if isinstance(one, dict) and one["entries"]]
    named = [str(one["branch"]) for one in held if one["branch"] != where.branch.name]
    return f" on {where.branch.name}; there are entries on {', '.join(named)}" if named else ""


def hint(store: Store, folder: str, failure: SavepointError) -> str:
    """What to do about it; folder: of the branch, empty for what all branches share."""
    if failure.hint != DynastyError.default_hint:
        return failure.hint
    from savepoint.store import savepoints
    from succession.dynasty import whole

    found = whole.newest(store, folder)
    if found is None:
        return _BY_HAND
    chosen = f" --instance {found.paths.slug}" if len(savepoints.instances(store)) > 1 else ""
    return (
        f"`savepoint resurrect {found.record.seq}{chosen} --only memory` writes the newest that is "
        "whole to a folder, and `savepoint succession import FOLDER --force` puts it back"
    )


def write(held: Held, done: Done) -> None:
    """What a command did to the dynasty."""
    tell_aside(held.write(done.state, held.seen, archive=done.archive))


def session() -> str:
    """The key of the agent's session that runs this command; empty for a person."""
    given = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
    return session_key(given) if given else ""


def tell_aside(paths: tuple[str, ...] | list[str]) -> None:
    """People's edits that came between are kept beside the file."""
    for path in paths:
        terminal.note(f"an edit that came in between is kept as dynasty/{path}")


def page(text: str) -> None:
    """A file of the dynasty: as it is into a pipe, without control characters on a terminal."""
    data = text.encode("utf-8", "surrogateescape")
    if sys.stdout is not None and sys.stdout.isatty():
        shown = "".join(one if _is_harmless(one) else f"\\x{ord(one):02x}" for one in text)
        data = shown.encode("utf-8", "backslashreplace")
    terminal.write(data)


def entry_json(one: Entry, place_: str) -> dict[str, Json]:
    """An entry for programs. Bytes that are no UTF-8 go out as escapes."""
    return {
        "id": one.id,
        "type": one.kind,
        "title": one.title,
        "why": one.why or None,
        "text": one.body or None,
        "ref": one.ref,
        "decree": one.decree,
        "vault_candidate": one.candidate,
        "where": place_,
    }


def entries_json(state: State) -> list[Json]:
    """Every entry of the tiers."""
    found: list[Json] = [entry_json(one, "day") for one in state.day_page.entries]
    for number in (1, 2, 3):
        layer = state.dusk_page.layer(number)
        found += [entry_json(one, f"dusk layer {number}") for one in layer]
    return found


def status_json(held: Held) -> dict[str, Json]:
    """What `status` tells."""
    state = held.state
    meta, day = state.meta, state.day_page.entries
    asked = meta.suggestion
    fired = triggers.fired(day, meta)
    layers: list[Json] = []
    for number, most in enumerate(constants.LAYERS_MAX, 1):
        layer = state.dusk_page.layer(number)
        used = sum(tiers.lines(one, number) for one in layer)
        decrees = sum(one.decree for one in layer)
        layers.append({"entries": len(layer), "decrees": decrees, "lines": used, "limit": most})
    return {
        "ruler": meta.title(),
        "branch": meta.branch,
        "exists": held.exists,
        "day": {"entries": len(day), "stale": sum(triggers.is_stale(one, meta) for one in day)},
        "dusk": layers,
        "vault": {"lines": vault.line_count(state.vault), "limit": constants.VAULT_MAX_LINES},
        "deviants": sum(one.is_open for one in deviants.parse(state.deviants)),
        "sessions_since_succession": meta.sessions_since_succession,
        "last_reason": meta.reason,
        "suggestion": asked.reason if asked else None,
        "triggers": [one.reason for one in fired],
        "declined": list(meta.declined),
    }


def bar(used: int, most: int) -> str:
    """How full something is, on a terminal that can show it."""
    filled = min(_BAR_CELLS, -(-used * _BAR_CELLS // most))
    full, empty = ("█", "░") if terminal.speaks("█░") else ("#", ".")
    return f"[{full * filled}{empty * (_BAR_CELLS - filled)}]"


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\t\u200d"
