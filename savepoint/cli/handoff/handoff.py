"""`savepoint handoff`: what the threads of a project owe, written down as it arises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from savepoint.cli import options, terminal
from savepoint.cli.handoff import config, importing, looking, passing, place
from savepoint.cli.handoff.place import SETTINGS, Text, ThreadName
from savepoint.core.errors import HandoffError, UsageError
from savepoint.core.handoff_log import Draft
from succession.handoff import create, drivers, running, titles
from succession.handoff.ledger import BINDING, CLOSED, OFFER, WORK, Binding

if TYPE_CHECKING:
    from savepoint.cli.handoff.place import Desk
    from savepoint.core.strict_json import Json
    from succession.handoff.ledger import Ledger

app = typer.Typer(
    help="What threads owe, and how it is passed on.",
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
_HELP = {
    "offer": "Offers to the owner, each open until it is closed.",
    "item": "Work that is owed, and candidates that were gathered.",
    "hold": "Evaluations; no handoff while one goes on.",
    "action": "External actions, and processes: no handoff while one is pending.",
}
offer_app, item_app, hold_app, action_app = (
    typer.Typer(help=text, rich_markup_mode=None, context_settings=SETTINGS)
    for text in _HELP.values()
)
for _name, _app in zip(_HELP, (offer_app, item_app, hold_app, action_app), strict=True):
    app.add_typer(_app, name=_name)
app.add_typer(config.app, name="config")
app.command("status")(looking.status)
app.command("needed")(looking.needed)
app.command("ready")(looking.ready)
app.command("verify")(looking.verify)
app.command("import")(importing.import_threads)
app.command("gather")(passing.gather)
app.command("create")(passing.create)
app.command("accept")(passing.accept)
app.command("go")(passing.go)

Item = Annotated[str, typer.Argument(metavar="ITEM", help="Its id.", callback=options.text)]
Candidates = Annotated[
    list[str], typer.Argument(metavar="CANDIDATE...", help="Their ids.", callback=options.texts)
]
Evidence = Annotated[
    str,
    typer.Option("--evidence", metavar="TEXT", help="What shows it.", callback=options.text),
]
DriverName = Literal["registry", "schedule", "upstream", "command"]


@app.command("thread")
def thread(
    title: Annotated[
        str,
        typer.Argument(metavar="TITLE", help="What it is called.", callback=options.text),
    ],
    session: Annotated[
        str,
        options.written("--session", "ID", "The session that it is.", "this one, or the newest"),
    ] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Open a thread: from now on it is known what it owes."""
    with place.desk(project, make_it=True) as at:
        body: dict[str, Json] = {
            "project": at.at.project,
            "title": titles.fitting(title),
            "session": place.session_named(at.at, session),
        }
        new = create.new_thread()
        at.held.add(at.author, at.now, [Draft("open", new, body)])
        opened = at.held.ledger.threads[new]
    _tell({"thread": opened.id, "row": opened.row, "session": opened.session}, as_json=as_json)


@offer_app.command("open")
def open_offer(
    text: Text,
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write an offer down as it is made."""
    place.short(text)
    with place.desk(project) as at:
        _add(at, thread, OFFER, {"text": text}, as_json=as_json)


@item_app.command("add")
def add_item(
    text: Text,
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write down work that is owed."""
    place.short(text)
    with place.desk(project) as at:
        _add(at, thread, WORK, {"text": text}, as_json=as_json)


@app.command("bind")
def bind(
    text: Text,
    *,
    driver: Annotated[
        DriverName | None, typer.Option("--driver", help="How it is set.", show_default=False)
    ] = None,
    where: Annotated[
        str, options.written("--place", "PLACE", "A file, a branch, or a pair of the config.")
    ] = "",
    key: Annotated[str, options.written("--key", "KEY", "The row.")] = "",
    value: Annotated[
        str,
        options.written(
            "--value",
            "VALUE",
            "What stands there, with {thread}, {title}, {session} for the holder's.",
        ),
    ] = "",
    unbindable: Annotated[
        str,
        options.written(
            "--unbindable", "REASON", "Why nobody can re-point it: it will stay behind."
        ),
    ] = "",
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write down what names this thread elsewhere."""
    if bool(unbindable) == bool(driver):
        raise UsageError("give --driver with --place and --value, or --unbindable REASON")
    if driver and not (where and value):
        raise UsageError("--driver needs --place and --value")
    if driver not in (None, "upstream") and not key:
        raise UsageError(f"--driver {driver} needs --key")
    place.short(*filter(None, (text, where, key, value, unbindable)))
    bound = Binding(driver or "none", where, key, value, unbindable)
    with place.desk(project) as at:
        if driver:
            known = place.known_drivers(at.at)
            drivers.refuse_unlike(known, bound, at.thread(thread))
        body: dict[str, Json] = {"text": text, **bound._asdict()}
        _add(at, thread, BINDING, body, as_json=as_json)


@offer_app.command("close")
def close_offer(
    item: Item,
    evidence: Evidence,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Close an offer, with what shows that it is over.

    It was met, or is no longer wanted.
    """
    _close("offer", item, evidence, project, as_json=as_json)


@item_app.command("close")
def close_item(
    item: Item,
    evidence: Evidence,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Close what is over, with what shows it.

    Work that is done, or a binding that is no more.
    """
    _close("item", item, evidence, project, as_json=as_json)


def _close(verb: str, item: str, evidence: str, project: str, *, as_json: bool) -> None:
    place.short(evidence)
    with place.desk(project) as at:
        found = at.held.ledger.items.get(item)
        if found is None:
            raise HandoffError(f"there is no item {item}")
        right = "offer" if found.kind == OFFER else "item"
        if verb != right:
            raise UsageError(f"{item} is closed by `savepoint handoff {right} close`")
        body: dict[str, Json] = {"item": item, "evidence": evidence}
        at.held.add(at.author, at.now, [Draft("close", found.thread, body)])
    _tell({"closed": item}, as_json=as_json)


@item_app.command("map")
def map_candidates(
    item: Item,
    candidates: Candidates,
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Say which open item candidates are."""
    _answer("map", "item", item, candidates, thread, project, as_json=as_json)


@item_app.command("dismiss")
def dismiss(
    candidates: Candidates,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why.", callback=options.text)
    ],
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Say why candidates are nothing that is owed."""
    place.short(reason)
    _answer("dismiss", "reason", reason, candidates, thread, project, as_json=as_json)


@hold_app.command("begin")
def begin_hold(
    text: Text,
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """An evaluation begins whose guidance must not change under it."""
    place.short(text)
    _begin("hold", {"text": text}, thread, project, as_json=as_json)


@hold_app.command("end")
def end_hold(
    hold: Annotated[str, typer.Argument(metavar="HOLD", help="Its id.", callback=options.text)],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """The evaluation is over."""
    _end("hold_end", hold, project, as_json=as_json)


@action_app.command("begin")
def begin_action(
    text: Text,
    process: Annotated[
        int | None,
        typer.Option("--process", metavar="PID", help="Pending while it runs.", min=1),
    ] = None,
    thread: ThreadName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Say that something outside is under way.

    A deployment, a message that is being answered, a process.
    """
    place.short(text)
    registered: Json = None
    if process is not None:
        begun = running.begun(process)
        if begun is None:
            raise HandoffError(f"no process {process} runs")
        registered = {"pid": process, "begun": begun}
    body: dict[str, Json] = {"text": text, "process": registered}
    _begin("action", body, thread, project, as_json=as_json)


@action_app.command("end")
def end_action(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Its id.", callback=options.text)],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """It is over."""
    _end("action_end", action, project, as_json=as_json)


def _add(at: Desk, thread: str, kind: str, body: dict[str, Json], *, as_json: bool) -> None:
    item = at.held.ledger.next_id(kind)
    line = {OFFER: "offer", WORK: "work", BINDING: "bind"}[kind]
    drafts = [Draft(line, at.thread(thread).id, {"item": item, **body})]
    at.held.add(at.author, at.now, drafts)
    _tell({"item": item}, as_json=as_json)


def _answer(
    kind: str,
    member: str,
    answer: str,
    candidates: list[str],
    thread: str,
    project: str,
    *,
    as_json: bool,
) -> None:
    with place.desk(project) as at:
        own = at.thread(thread).id
        if kind == "map":
            _refuse_closed(at.held.ledger, answer)
        for one in candidates:
            if one not in at.held.ledger.threads[own].candidates:
                raise HandoffError(f"{own} has no candidate {one}")
        drafts = [Draft(kind, own, {"candidate": one, member: answer}) for one in candidates]
        at.held.add(at.author, at.now, drafts)
        left = len(at.held.ledger.unresolved(own))
    _tell({"answered": len(candidates), "unresolved": left}, as_json=as_json)


def _refuse_closed(known: Ledger, item: str) -> None:
    """What is closed owes nothing: a candidate that it answered would be open nowhere."""
    found = known.items.get(item)
    if found is not None and found.state == CLOSED:
        raise HandoffError(
            f"{item} is closed already: {found.note}",
            hint="if that answers it: `savepoint handoff item dismiss CANDIDATE --reason TEXT`",
        )


def _begin(kind: str, body: dict[str, Json], thread: str, project: str, *, as_json: bool) -> None:
    with place.desk(project) as at:
        stand = at.held.ledger.next_id(kind)
        draft = Draft(f"{kind}_begin", at.thread(thread).id, {"stand": stand, **body})
        at.held.add(at.author, at.now, [draft])
    _tell({kind: stand}, as_json=as_json)


def _end(kind: str, stand: str, project: str, *, as_json: bool) -> None:
    with place.desk(project) as at:
        threads = at.held.ledger.threads.values()
        holder = next((one.id for one in threads if stand in {*one.holds, *one.actions}), None)
        if holder is None:
            raise HandoffError(f"{stand} has not begun, or has ended")
        at.held.add(at.author, at.now, [Draft(kind, holder, {"stand": stand})])
    _tell({"ended": stand}, as_json=as_json)


def _tell(value: dict[str, Json], *, as_json: bool) -> None:
    if as_json:
        terminal.document(value)
        return
    terminal.say(", ".join(f"{name} {one}" for name, one in value.items() if one is not None))
