"""`savepoint handoff gather`, `create`, `accept` and `go`: a thread passes its work on."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from savepoint.capture import surroundings
from savepoint.cli import create as saving
from savepoint.cli import options, place, terminal
from savepoint.cli.handoff import place as handoff_place
from savepoint.cli.handoff.place import ThreadName
from savepoint.cli.ledger import chain
from savepoint.cli.resurrect import resurrect
from savepoint.core import limits
from savepoint.core.errors import HandoffError
from savepoint.resurrect.admission import Admission
from savepoint.store import savepoints
from succession.handoff import accept as accepting
from succession.handoff import boundary, cover, log, running
from succession.handoff import create as creating
from succession.handoff import gather as gathering
from succession.handoff import go as going
from succession.handoff.create import Standing
from succession.handoff.ledger import AWAITED, OPEN, SETTLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.handoff_log import Author
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths
    from succession.handoff.accept import Accepted, Offered
    from succession.handoff.ledger import Item, Ledger, Thread

Selector = Annotated[
    str, options.written("--savepoint", "SELECTOR", options.SELECTORS, "a new one is made")
]


class Stood(NamedTuple):
    """A savepoint that was verified, and whose it is."""

    paths: InstancePaths
    standing: Standing
    pending: list[str]  # witnesses that wait for a push or an entry

    @property
    def document(self) -> dict[str, Json]:
        """What the savepoint holds. Raises TamperedError, MalformedError, DiskError."""
        return savepoints.open_snapshot(self.paths, self.standing.record).document

    @property
    def author(self) -> Author:
        """Who signs what stands on it. Raises KeyFileError."""
        return handoff_place.author_of(self.paths)


def gather(
    savepoint: Selector = "",
    thread: ThreadName = "",
    allow_unverified: options.AllowUnverified = False,
    offline: options.Offline = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Draw what the thread may owe from a savepoint."""
    at = place.find(project)
    own = _own(at, thread)
    stood = _stood(at, own, savepoint, offline=offline, allow_unverified=allow_unverified)
    with log.opened(at.store, _deadline()) as held:
        _draw(at, held, own, stood)
        left = held.ledger.unresolved(own.id)
    if as_json:
        found: list[Json] = [dict(one._asdict()) for one in left]
        terminal.document({"thread": own.id, "unresolved": found})
        return
    for one in left:
        where = "" if one.offset is None else f" (byte {one.offset} of the transcript)"
        terminal.say(f"{one.id} {one.what}: {one.text}{where}")
    terminal.say(f"{terminal.counted(len(left), 'candidate')} to be mapped or dismissed")
    if left:
        terminal.advise(boundary.ANSWER)


def create(
    savepoint: Selector = "",
    thread: ThreadName = "",
    allow_unverified: options.AllowUnverified = False,
    offline: options.Offline = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Hand the thread off: a page for people and a signed receipt. It starts no thread."""
    at = place.find(project)
    own = _own(at, thread)
    stood = _stood(at, own, savepoint, offline=offline, allow_unverified=allow_unverified)
    asked = place.request(at, "handoff")
    changed = cover.changed(at.store, stood.document, asked, at.config.exclude) if savepoint else []
    transcript = handoff_place.transcript(own.session, at)
    until = time.monotonic() + limits.STILL_WAIT_SECONDS
    with log.opened(at.store, _deadline()) as held:
        creating.refuse_unless_open(held.ledger, held.ledger.threads[own.id])
        _draw(at, held, own, stood)
        own = held.ledger.threads[own.id]._replace(session=own.session)
        reasons = [
            *boundary.in_flight(at.store, own, transcript, until),
            *cover.reasons(at.store, stood.document, transcript),
            *changed,
        ]
        now = int(time.time())
        made = creating.create(held, stood.author, now, own, stood.standing, reasons)
        heir = held.ledger.threads[made.receipt.successor]
    value: dict[str, Json] = {
        "thread": own.id,
        "folder": made.folder,
        "receipt": made.receipt.hash,
        "savepoint": made.receipt.body["savepoint"],
        "witnesses": made.receipt.body["witnesses"],
        "successor": {"thread": heir.id, "title": heir.title},
        "items": list(made.receipt.items),
    }
    if as_json:
        terminal.document(value)
        return
    terminal.say(f"{own.id} is settled; its successor is {heir.id} ({heir.title})")
    terminal.say(f"  {os.path.join(made.folder, creating.PAGE)}")
    terminal.say(f"  open: {', '.join(made.receipt.items) or 'nothing'}")
    terminal.say("No thread was started: that is the owner's to say.")
    terminal.say("The session that goes on takes it over with `savepoint handoff accept`.")


def accept(
    thread: ThreadName = "",
    session: Annotated[
        str,
        options.written("--session", "ID", "The successor's session.", "this one, or the newest"),
    ] = "",
    allow_unverified: options.AllowUnverified = False,
    offline: options.Offline = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Take over what a thread passed on, item by item."""
    at = place.find(project)
    key = handoff_place.session_named(at, session)
    if key is None:
        raise HandoffError("the successor has no session yet", hint="name it: --session ID")
    known = handoff_place.ledger(at)
    offer = accepting.offered(at.store, known, _handed_off(at, known, thread, key))
    if not offline:
        resurrect.bring(at._replace(paths=offer.paths), offer.record)
    _verified(offer.paths, offer.record, at, offline=offline, allow_unverified=allow_unverified)
    author = handoff_place.author_of(at.paths)
    drivers = handoff_place.known_drivers(at)
    done = accepting.accept(at.store, author, int(time.time()), offer, key, drivers)
    value = _outcome(handoff_place.ledger(at), offer, done)
    if as_json:
        terminal.document(value)
        return
    terminal.say(f"{done.heir.id} ({done.heir.title}) takes over from {offer.thread.id}")
    for word, items in (("taken", done.taken), ("left", done.left), ("closed", done.closed)):
        for one in items:
            note = f": {one.note}" if one.note else ""
            terminal.say(f"  {word} {one.id} {one.text}{note}")
    if any(one.binding and one.binding.driver != "none" for one in done.left):
        terminal.say("`savepoint handoff accept` tries again what was left: put that right first")


def go(
    item: Annotated[
        str,
        typer.Argument(metavar="ID", help="The offer.", show_default="the only open one"),
    ] = "",
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Act on an offer, if the ledger still shows it open."""
    with handoff_place.desk(project) as at:
        own = at.thread(thread)
        creating.refuse_unless_open(at.held.ledger, own)
        found = going.go(at.held, at.author, at.now, own, item)
    if as_json:
        terminal.document({"item": found.id, "text": found.text})
        return
    terminal.say(f"{found.id} {found.text}")


def _own(at: place.Place, name: str) -> Thread:
    """The thread that is to be handed off. Raises HandoffError where it was already."""
    known = handoff_place.ledger(at)
    own = handoff_place.chosen(at, known, name)
    creating.refuse_unless_open(known, own)
    return own


def _handed_off(at: place.Place, known: Ledger, name: str, key: str) -> Thread:
    """The settled thread that this session accepts, or has accepted; its heir's name will do."""
    if name:
        found = handoff_place.named(known, name)
        before = known.threads.get(found.predecessor or "")
        return before if found.state != SETTLED and before else found

    def offered(one: Thread) -> bool:
        heir = known.threads.get(one.successor or "")
        return heir is not None and (heir.state == AWAITED or heir.session == key)

    threads = handoff_place.of_project(at, known)
    settled = [one for one in threads if one.state == SETTLED and one.number]
    return handoff_place.only([*filter(offered, settled)] or settled)


def _stood(
    at: place.Place, own: Thread, selector: str, *, offline: bool, allow_unverified: bool
) -> Stood:
    """A savepoint of the thread's session, new if none was chosen, that may be built on."""
    if selector:
        paths, one = at.paths, savepoints.find(at.paths, selector)
        if own.session is not None and one.body["session_id"] != own.session:
            raise HandoffError(f"savepoint {one.seq} is of another session than {own.id}")
    else:
        paths, one = _save(at, own)
    return _verified(paths, one, at, offline=offline, allow_unverified=allow_unverified)


def _save(at: place.Place, own: Thread) -> tuple[InstancePaths, Record]:
    if handoff_place.transcript(own.session, at) is None:
        raise HandoffError(
            f"the session of {own.id} is not there any more",
            hint="take a savepoint of it: --savepoint SELECTOR",
        )
    asked = place.request(at, "handoff")._replace(
        session_id=own.session or "", even_if_unchanged=True
    )
    saved, _ = saving.save_now(asked)
    for warning in saved.warnings:
        terminal.note(warning)
    return saved.paths, saved.record


def _verified(
    paths: InstancePaths, one: Record, at: place.Place, *, offline: bool, allow_unverified: bool
) -> Stood:
    """What the witnesses say of a savepoint. Raises what forbids to build on it (DESIGN 9)."""
    from savepoint.gitlayer.witness import witness
    from savepoint.store.witness.witness import verify_local

    repo = place.repository(at.store)
    with terminal.progress("verifying") as progress:
        report = verify_local(paths, lambda _: [one], progress)
        report = witness.verify(repo, paths, report, witness.Look(offline=offline))
    report = chain.verify(at.config, repo, paths, report, chain.Wanted(offline=offline))
    admission = Admission(report, allow_unverified=allow_unverified)
    admission.raise_worst()
    (checked,) = report.savepoints
    verdicts = {name: str(found.verdict) for name, found in checked.witnesses.items()}
    pending = [name for name, verdict in verdicts.items() if verdict == "PENDING"]
    if pending:
        named = place.numbered(paths, one.seq, at.paths.slug)
        terminal.note(f"{named}: {', '.join(pending)} PENDING")
    return Stood(paths, Standing(one, verdicts, admission.unverified), pending)


def _draw(at: place.Place, held: log.Log, own: Thread, stood: Stood) -> None:
    """Candidates of that savepoint, of what runs and of the branches, as far as they are new."""
    one = stood.standing.record
    document = stood.document
    env = surroundings.for_children(os.environ)
    found = [
        *gathering.of_savepoint(at.store, document),
        *gathering.of_running(running.kept(at.store, own.session) if own.session else None),
        *gathering.of_branches(at.store, at.project, at.folder, env),
    ]
    thread = held.ledger.threads[own.id]
    gathering.write(held, stood.author, int(time.time()), thread, one.origin(), found)


def _outcome(known: Ledger, offer: Offered, done: Accepted) -> dict[str, Json]:
    def told(items: list[Item]) -> Iterator[Json]:
        return ({"item": one.id, "note": one.note or None, "value": one.value} for one in items)

    heir = done.heir
    return {
        "thread": heir.id,
        "title": heir.title,
        "session": heir.session,
        "predecessor": offer.thread.id,
        "taken": list(told(done.taken)),
        "left": list(told(done.left)),
        "closed": list(told(done.closed)),
        "may_start_new_work": heir.state == OPEN and not known.waiting(heir),
    }


def _deadline() -> float:
    return time.monotonic() + limits.LOCK_WAIT_SECONDS
