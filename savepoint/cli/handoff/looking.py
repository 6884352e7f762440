"""`savepoint handoff status`, `needed`, `ready` and `verify`: looks, and changes nothing."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.capture import surroundings
from savepoint.capture.agents import claude
from savepoint.capture.guidance import guidance
from savepoint.cli import options, place, terminal
from savepoint.cli.handoff import place as handoff_place
from savepoint.cli.handoff.place import ThreadName
from savepoint.core import limits
from savepoint.core.errors import UnverifiableError, UsageError
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded
from succession.handoff import boundary, check, create, go, owner, trigger
from succession.handoff.ledger import AWAITED, LEFT, OPEN, SETTLED, Ledger

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store
    from succession.handoff.ledger import Item, Thread
    from succession.handoff.turn import Reason

_NOT_READY = 1  # exit code


def status(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show the threads, and what each owes."""
    at = place.find(project)
    known = handoff_place.known(at) or Ledger()
    threads = [_thread(known, one) for one in known.threads.values()]
    if as_json:
        terminal.document({"threads": list(threads)})
        return
    if not threads:
        terminal.say("no threads: `savepoint handoff thread TITLE` opens one")
    for one in known.threads.values():
        terminal.say(f"{one.row}  {one.id}  {one.title}: {_state(known, one)}")
        for item in known.owed(one.id):
            terminal.say(f"    {_line(item)}")
        for name, text in one.holds.items():
            terminal.say(f"    {name} {text}")
        for name, (text, _) in one.actions.items():
            terminal.say(f"    {name} {text}")
        for candidate in known.unresolved(one.id) if one.state == OPEN else []:
            terminal.say(f"    {candidate.id} {candidate.what}: {candidate.text}")


def needed(
    thread: ThreadName = "", as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Say whether guidance has changed, and what that calls for."""
    at = place.find(project)
    known = handoff_place.ledger(at)
    own = handoff_place.chosen(at, known, thread)
    create.refuse_unless_open(known, own)
    found = _changes(at, own)
    value: dict[str, Json] = {
        "thread": own.id,
        "needed": any(one.calls_for == trigger.SUCCESSOR for one in found),
        "reread": any(one.calls_for == trigger.REREAD for one in found),
        "changes": [dict(one._asdict()) for one in found],
    }
    if as_json:
        terminal.document(value)
        return
    for one in found:
        terminal.say(f"{one.calls_for}: {one.path} ({one.kind}) {one.change}")
    if value["needed"]:
        terminal.say("a successor is needed: what this session was started with is stale")
    else:
        terminal.say("a reread is enough" if value["reread"] else "nothing is stale")


def ready(
    thread: ThreadName = "", as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Say whether the thread may be handed off now."""
    at = place.find(project)
    known = handoff_place.ledger(at)
    own = handoff_place.chosen(at, known, thread)
    create.refuse_unless_open(known, own)
    transcript = handoff_place.transcript(own.session, at)
    until = time.monotonic() + limits.STILL_WAIT_SECONDS
    found = boundary.reasons(at.store, known, own, transcript, until)
    if as_json:
        reasons: list[Json] = [dict(one._asdict()) for one in found]
        terminal.document({"thread": own.id, "ready": not found, "reasons": reasons})
    else:
        tell_reasons(found)
        terminal.say("not ready" if found else f"ready: {own.id} may be handed off")
    if found:
        raise typer.Exit(_NOT_READY)


def verify(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="handoff/<thread>/<N>")],
    as_json: options.AsJson = False,
) -> None:
    """Check a handoff offline: 0 complete, 3 partial, 20 invalid."""
    where = os.path.realpath(folder)
    if not os.path.isdir(where):
        hint = "`savepoint handoff create` says where it wrote one"
        raise UsageError(f"{folder} is no folder", hint=hint)
    parent = os.path.dirname(os.path.dirname(where))
    found = check.check(
        read_bounded(os.path.join(where, "receipt.json"), limits.SMALL_DOCUMENT_BYTES),
        read_bounded(os.path.join(where, "handoff.md"), limits.SMALL_DOCUMENT_BYTES),
        read_bounded(os.path.join(parent, "log.jsonl"), limits.HANDOFF_LOG_BYTES),
    )
    if as_json:
        terminal.document(found.to_json())
    else:
        for one in found.findings:
            terminal.say(f"{one.rule} {one.verdict}: {one.detail}")
        by = f", signed by {found.signer}" if found.signer else ""
        terminal.say(f"{found.verdict}{by}")
    raise typer.Exit(check.EXIT_CODES[found.verdict])


def tell_reasons(found: list[Reason]) -> None:
    """Each with its evidence."""
    for one in found:
        at = "" if one.offset is None else f" (byte {one.offset} of the transcript)"
        terminal.say(f"{one.what}: {one.evidence}{at}")


def newest(store: Store, session: str | None) -> tuple[InstancePaths, Record] | None:
    """The newest savepoint of a session, whichever instance it belongs to. Raises DiskError."""
    if session is None:
        return None
    found = [
        (paths, last[0])
        for paths in savepoints.instances(store)
        if (last := index.last_of_session(paths, session)) is not None
    ]
    return max(found, key=lambda one: one[1].timestamp, default=None)


def _changes(at: place.Place, own: Thread) -> list[trigger.Change]:
    """Raises UnverifiableError where nobody knows what the session started with."""
    found = newest(at.store, own.session)
    document = savepoints.open_snapshot(*found).document if found else {}
    if "guidance" not in document:
        raise UnverifiableError(
            f"what the session of {own.id} started with is in no savepoint",
            hint="the hook keeps it as a session starts (`savepoint install claude-code`): it is "
            "known of the next session on, and not of this one",
        )
    config_dir = surroundings.config_dir(os.environ)
    loaded = savepoints.listed(at.store, document, ("loaded_files",))
    return trigger.changes(
        document,
        loaded if isinstance(loaded, dict) else {},
        guidance(at.project, config_dir),
        _skills(at.store, document),
        trigger.kinds(owner.load(at.store).kinds),
        trigger.Roots(at.project, config_dir),
    )


def _skills(store: Store, document: dict[str, Json]) -> list[str]:
    """The skills that the session used."""
    scan = claude.Scan.empty()
    for one in savepoints.files(store, document):
        if one.part == "conversation":
            for piece in savepoints.content(store, one):
                scan.feed(piece)
    return list(scan.end().skills)


def _thread(known: Ledger, one: Thread) -> dict[str, Json]:
    own: list[Json] = [_item(item) for item in known.owed(one.id)]
    candidates: list[Json] = [dict(c._asdict()) for c in known.unresolved(one.id)]
    return {
        "row": one.row,
        "thread": one.id,
        "project": one.project,
        "title": one.title,
        "state": one.state,
        "session": one.session,
        "predecessor": one.predecessor,
        "successor": one.successor,
        "handoff": one.number or None,
        "savepoint": one.savepoint,
        "may_start_new_work": one.state == OPEN and not known.waiting(one),
        "items": own,
        "open_offers": [item.id for item in go.open_offers(known, one)],
        "holds": dict(one.holds),
        "actions": {name: text for name, (text, _) in one.actions.items()},
        "unresolved": candidates,
    }


def _item(item: Item) -> dict[str, Json]:
    return {
        "item": item.id,
        "kind": item.kind,
        "text": item.text,
        "state": item.state,
        "note": item.note or None,
        "begun": bool(item.begun),
        "binding": dict(item.binding._asdict()) if item.binding else None,
        "value": item.value,
    }


def _state(known: Ledger, one: Thread) -> str:
    if one.state == SETTLED:
        return f"settled, its successor is {one.successor}"
    if one.state == AWAITED:
        return f"offered by {one.predecessor}, not accepted yet"
    waiting = known.waiting(one)
    if waiting:
        return f"accepted, has still to take over {', '.join(item.id for item in waiting)}"
    return "open, new work may start"


def _line(item: Item) -> str:
    note = f" (left behind: {item.note})" if item.state == LEFT else ""
    return f"{item.id} {item.text}{' (begun)' if item.begun else ''}{note}"
