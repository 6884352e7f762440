"""`savepoint handoff config`: what re-points bindings, and which guidance is of which kind."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.handoff.place import SETTINGS
from savepoint.core.errors import UsageError
from succession.handoff import owner, trigger

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

app = typer.Typer(
    help="Commands that re-point bindings; kinds of guidance.",
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
_SHELL = "();<>|&"  # what a shell would do something for
_OF = ("rule", "scoped_rule", "imported_rule", "skill", "skill_body", "agent", "loaded")


@app.command("show")
def show(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show what was chosen."""
    chosen = owner.load(place.find(project).store)
    if as_json:
        pairs: dict[str, Json] = {
            name: {"set": list(one.set), "read": list(one.read)}
            for name, one in chosen.commands.items()
        }
        kinds: list[Json] = [dict(one._asdict()) for one in chosen.kinds]
        terminal.document({"commands": pairs, "kinds": kinds})
        return
    for name, one in chosen.commands.items():
        terminal.say(f"command {name}: set {shlex.join(one.set)}; read {shlex.join(one.read)}")
    for kind in chosen.kinds:
        terminal.say(f"kind {kind.of} {kind.path}: {kind.kind}")


@app.command("command")
def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of the pair.", callback=options.text)
    ],
    to_set: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="COMMAND",
            help="Gets key and value as its last two arguments.",
            callback=options.text,
        ),
    ],
    to_read: Annotated[
        str,
        typer.Option(
            "--read",
            metavar="COMMAND",
            help="Gets the key as its last argument, prints the value.",
            callback=options.text,
        ),
    ],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Choose the commands that set a binding and read it back.

    No shell runs them: what needs one is a script.
    """
    pair = owner.Pair(_words(to_set), _words(to_read))
    store = place.find(project).store
    chosen = owner.load(store)
    chosen._replace(commands={**chosen.commands, name: pair}).save(store)
    if as_json:
        terminal.document({"command": name, "set": list(pair.set), "read": list(pair.read)})


@app.command("kind")
def kind(
    of: Annotated[str, typer.Argument(metavar="OF", help=", ".join(_OF))],
    path: Annotated[
        str,
        typer.Argument(
            metavar="GLOB", help="Over project/…, user/… or a whole path.", callback=options.text
        ),
    ],
    of_kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(trigger.CALLS_FOR))],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Say of which kind a file of guidance is.

    What was said last comes first.
    """
    if of not in _OF:
        raise UsageError(f"{of} is none of {', '.join(_OF)}")
    if of_kind not in {*trigger.CALLS_FOR, "none"}:
        raise UsageError(f"{of_kind} is none of {', '.join(trigger.CALLS_FOR)}, none")
    store = place.find(project).store
    chosen = owner.load(store)
    new = trigger.Kind(of, path, of_kind)
    chosen._replace(kinds=(new, *(one for one in chosen.kinds if one[:2] != new[:2]))).save(store)
    if as_json:
        terminal.document(dict(new._asdict()))


def _words(line: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(line))
    except ValueError as failure:
        raise UsageError(f"{line!r}: {failure}") from None
    if not words:
        raise UsageError("a command is empty")
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    meant = sorted({one for one in lexer if not one.strip(_SHELL)})
    if meant:
        raise UsageError(
            f"{line!r} has {' '.join(meant)}, and no shell runs it",
            hint="put it into a script, or quote what is an argument",
        )
    return words
