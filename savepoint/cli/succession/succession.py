"""`savepoint succession`: what the dynasty remembers, and what people and agents tell it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from savepoint.cli import options, terminal
from savepoint.cli.succession import dynasty, importing, run
from savepoint.core import limits
from savepoint.core.errors import UsageError

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from succession.dynasty.files.entry import Entry

_SETTINGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help="What is remembered through all sessions.",
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
vault_app = typer.Typer(
    help="What holds for good, and what waits for room there.",
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
deviants_app = typer.Typer(
    help="Where the vault and Dusk speak of the same file.",
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
app.add_typer(vault_app, name="vault")
app.add_typer(deviants_app, name="deviants")
app.command("run")(run.run)
app.command("import")(importing.import_)

_ENTRY_HELP = "Its title, or 6 or more digits of its id."
EntryName = Annotated[str, typer.Argument(metavar="ENTRY", help=_ENTRY_HELP, callback=options.text)]
Resolution = Literal["fixed", "vault-updated", "accepted", "dismissed"]


@app.command("status")
def status(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show who rules, how full the tiers are, and what is suggested."""
    with dynasty.opened(dynasty.here(project)) as held:
        value = dynasty.status_json(held)
    if as_json:
        terminal.document(value)
    else:
        _print_status(value)


@app.command("record")
def record(
    kind: Annotated[
        Literal["decision", "observation"],
        typer.Argument(metavar="KIND", help="decision or observation."),
    ],
    title: Annotated[str, typer.Option("--title", help="One line.", callback=options.text)],
    why: Annotated[
        str,
        typer.Option(
            "--why",
            help="Of a decision; kept verbatim, further lines indented.",
            show_default=False,
        ),
    ] = "",
    what: Annotated[
        str, typer.Option("--what", help="How, or what was observed.", show_default=False)
    ] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Record a decision or an observation in Day.

    Without --why and --what the text is read from stdin; of a decision it is `Why: …`, which goes
    on up to a line `What: …` or the end. An observation whose title there is gets a number.
    """
    from succession.dynasty import record as recording

    one = _entry(kind, title, why, what)
    where = dynasty.here(project)
    with dynasty.opened(where, whole=True) as held:
        done = recording.record(held.state, one, int(time.time()), dynasty.session())
        dynasty.write(held, done)
    one = done.recorded or one
    if as_json:
        terminal.document(dynasty.entry_json(one, "day"))
    else:
        terminal.say(f"recorded in the Day of {done.state.meta.title()}: {one.id[:8]} {one.title}")


@app.command("day")
def day(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Print the current Day."""
    _show("day", project, as_json=as_json)


@app.command("dusk")
def dusk(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Print Dusk, the wisdom of earlier Days in three layers."""
    _show("dusk", project, as_json=as_json)


@app.command("dawn")
def dawn(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Print Dawn, what is staged for the next Day."""
    _show("dawn", project, as_json=as_json)


@app.command("briefing")
def briefing(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Print what a session is told as it starts."""
    _show("briefing", project, as_json=as_json)


@vault_app.callback()
def vault(
    context: typer.Context, as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Print the vault, and the entries that wait for room in it."""
    if context.invoked_subcommand is not None:
        return
    with dynasty.opened(dynasty.here(project)) as held:
        state = held.state
    waiting = [one for one in state.dusk_page.entries if one.candidate]
    if as_json:
        candidates: list[Json] = [dynasty.entry_json(one, "dusk") for one in waiting]
        terminal.document({"text": state.vault, "candidates": candidates})
        return
    _page(state.vault, "the vault")
    for one in waiting:
        terminal.note(f"waits for room: {one.id[:8]} {one.title}")


@vault_app.command("promote")
def promote(
    entry: EntryName, as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Put an entry into the vault."""
    from succession.dynasty import record as recording

    with dynasty.opened(dynasty.here(project)) as held:
        dynasty.write(held, recording.promote(held.state, entry))
    _tell("it is in the vault", {"promoted": entry}, as_json=as_json)


@deviants_app.callback()
def deviants(
    context: typer.Context, as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Print the conflicts that were filed."""
    from succession.dynasty.files import deviants as filed

    if context.invoked_subcommand is not None:
        return
    with dynasty.opened(dynasty.here(project)) as held:
        text = held.state.deviants
    if as_json:
        found: list[Json] = [dict(one._asdict()) for one in filed.parse(text)]
        terminal.document({"deviants": found})
    else:
        _page(text, "the list of deviants")


@deviants_app.command("file")
def file_deviant(
    description: Annotated[
        str, typer.Option("--description", help="What conflicts.", callback=options.text)
    ],
    vault_ref: Annotated[
        str, typer.Option("--vault", help="A text in the vault.", callback=options.text)
    ],
    dusk_ref: Annotated[
        str, typer.Option("--dusk", help="A text in Dusk or Day.", callback=options.text)
    ],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """File a conflict by hand."""
    from succession.dynasty.files import deviants as filed
    from succession.dynasty.record import Done

    with dynasty.opened(dynasty.here(project)) as held:
        before = held.state.deviants
        _must_stand(vault_ref, "the vault", held.state.vault)
        _must_stand(dusk_ref, "Dusk or Day", f"{held.state.dusk}\n{held.state.day}")
        text = filed.filed(before, description, (vault_ref, dusk_ref), int(time.time()))
        if text == before:
            hint = "set its `Status:` to unresolved in deviants.md to open it again"
            raise UsageError("that conflict was filed before", hint=hint)
        dynasty.write(held, Done(held.state._replace(deviants=text)))
    number = len(filed.parse(text))
    _tell(f"filed as deviant {number}", {"deviant": number}, as_json=as_json)


@deviants_app.command("resolve")
def resolve_deviant(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Its place in the list, from 1.")],
    resolution: Annotated[
        Resolution,
        typer.Option(
            "--as",
            help="The code was fixed, the vault was updated, it is accepted as debt, or dismissed.",
        ),
    ],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Say how a conflict was resolved."""
    from succession.dynasty.files import deviants as filed
    from succession.dynasty.record import Done

    with dynasty.opened(dynasty.here(project)) as held:
        text = filed.resolved(held.state.deviants, number, resolution)
        dynasty.write(held, Done(held.state._replace(deviants=text)))
    value: dict[str, Json] = {"deviant": number, "resolution": resolution}
    _tell(f"deviant {number} is resolved: {resolution}", value, as_json=as_json)


@app.command("lineage")
def lineage(
    search: Annotated[str, options.value("--search", "TERM", "Only what has this text.")] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Print what has left the tiers, or search it."""
    from succession.dynasty import search as searching

    with dynasty.opened(dynasty.here(project), whole=True) as held:
        state = held.state
    found = searching.search(state, search)
    if as_json:
        entries: list[Json] = [dynasty.entry_json(one.entry, one.where) for one in found]
        terminal.document({"entries": entries})
        return
    for one in found:
        dynasty.page(f"# {one.where}\n{one.entry.block}\n")
    if not found:
        empty = "nothing that was ever recorded has this text"
        terminal.note(empty if search else "the lineage is empty")


@app.command("decree")
def decree(
    entry: EntryName, as_json: options.AsJson = False, project: options.Project = "."
) -> None:
    """Make a decision in Dusk a decree, which stays as it is."""
    from succession.dynasty import record as recording

    with dynasty.opened(dynasty.here(project)) as held:
        dynasty.write(held, recording.decree(held.state, entry))
    _tell("it is a decree", {"decree": entry}, as_json=as_json)


@app.command("decline")
def decline(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Decline the succession that is suggested."""
    from succession.dynasty import record as recording

    with dynasty.opened(dynasty.here(project)) as held:
        done = recording.decline(held.state)
        dynasty.write(held, done)
    value: dict[str, Json] = {"declined": list(done.state.meta.declined)}
    _tell("declined, until another reason comes", value, as_json=as_json)


def _entry(kind: str, title: str, why: str, what: str) -> Entry:
    """The entry that the options tell, or stdin. Raises UsageError."""
    from succession.dynasty.files import entry

    if why or what:
        return entry.make(kind, title, options.text(why), options.text(what))
    data, most = b"", limits.DYNASTY_ENTRY_BYTES
    if sys.stdin is not None and not sys.stdin.isatty():
        data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        hint = "keep the text in a file, and name its path"
        raise UsageError(f"an entry has at most {most} bytes, and stdin has more", hint=hint)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("stdin is not UTF-8", hint="write it in UTF-8") from None
    return entry.make_of(kind, title, text)


def _must_stand(text: str, where: str, there: str) -> None:
    """Raises UsageError where no such text is, whatever blanks and line ends are in it."""
    if not text.strip() or " ".join(text.split()) not in " ".join(there.split()):
        hint = "`savepoint succession vault`, `dusk` and `day` show what there is"
        raise UsageError(f"{where} has no {text!r}", hint=hint)


def _tell(line: str, value: dict[str, Json], *, as_json: bool) -> None:
    if as_json:
        terminal.document(value)
    else:
        terminal.say(line)


def _show(field: str, project: str, *, as_json: bool) -> None:
    where = dynasty.here(project)
    with dynasty.opened(where) as held:
        state = held.state
    text = str(getattr(state, field))
    if as_json:
        kept = {"day": "day", "dusk": "dusk "}.get(field)
        every = dynasty.entries_json(state)
        entries: list[Json] = [
            one
            for one in every
            if kept and isinstance(one, dict) and str(one["where"]).startswith(kept)
        ]
        terminal.document({"text": text, "entries": entries})
    else:
        name = f"the {field}" if field == "briefing" else field.capitalize()
        _page(text, name, dynasty.others(where))


def _page(text: str, name: str, others: str = "") -> None:
    dynasty.page(text)
    if not text.strip():
        terminal.note(f"{name} is empty{others}")


def _print_status(value: dict[str, Json]) -> None:
    match value:
        case {"day": dict(day_), "dusk": [*layers], "vault": dict(held)}:
            terminal.say(f"{value['ruler']} rules {value['branch']}")
            _tier("Day", f"{_entries(day_['entries'])}, {day_['stale']} of them stale", None)
            for number, layer in enumerate(layers, 1):
                if isinstance(layer, dict):
                    _tier(
                        f"Dusk {number}",
                        f"{layer['lines']}/{layer['limit']} lines, {_entries(layer['entries'])}, "
                        f"{layer['decrees']} of them decrees",
                        (layer["lines"], layer["limit"]),
                    )
            used = (held["lines"], held["limit"])
            _tier("Vault", f"{held['lines']}/{held['limit']} lines", used)
    terminal.say(terminal.counted(int(str(value["deviants"])), "unresolved deviant"))
    sessions = terminal.counted(int(str(value["sessions_since_succession"])), "session")
    terminal.say(f"{sessions} since the last succession")
    if value["last_reason"]:
        terminal.say(f"the last succession ran for this reason: {value['last_reason']}")
    if value["suggestion"]:
        terminal.say(f"Succession suggested: {value['suggestion']}", "yellow")
    elif value["declined"] and value["triggers"]:
        terminal.say("a succession was declined")


def _entries(count: Json) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _tier(name: str, told: str, full: tuple[Json, Json] | None) -> None:
    picture = ""
    if sys.stdout is not None and sys.stdout.isatty():
        match full:
            case (int(used), int(most)):
                picture = dynasty.bar(used, most) + "  "
    terminal.say(f"  {name:7} {picture}{told}")
