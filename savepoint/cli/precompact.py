"""The specification's own way in (scripts/precompact_skill.py): one savepoint, its exit codes.

0  saved, and nothing that is configured is pending
1  saved; commit, push or anchor is pending, or something after the savepoint failed
2  not saved
"""

from __future__ import annotations

import re
from typing import Annotated, NoReturn

import typer

from savepoint.cli import create, options, place, serving
from savepoint.cli.ledger import layer3
from savepoint.core import spelling
from savepoint.core.errors import MalformedError, SelectorError, UsageError
from savepoint.store import savepoints

_PARTLY, _NOT_SAVED = 1, 2
_TRIGGER = "context_limit_approaching"
_PERCENT = re.compile(r"([0-9]{1,3})(\.[0-9]*)? *%?")

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def precompact(
    instance: Annotated[
        str,
        typer.Option(
            "--instance",
            metavar="'NAME #N'",
            help="Whose state it is.",
            show_default="the current one",
        ),
    ] = "",
    timestamp: Annotated[
        str, options.value("--timestamp", "TIME", "As 2026-11-30T13:26:49Z.", "now")
    ] = "",
    utilization: Annotated[
        str,
        options.value(
            "--context-utilization",
            "PERCENT",
            "Of the context, where the transcript does not tell it.",
        ),
    ] = "",
    project: Annotated[
        str,
        typer.Option(
            "-C",
            "--project",
            metavar="DIR",
            envvar="CLAUDE_PROJECT_DIR",
            help="The project's folder.",
            show_default=".",
        ),
    ] = ".",
) -> None:
    """Save the state of the project's newest session before its context is compacted."""
    at = place.find(project)
    if instance and savepoints.instance_named(at.store, instance) != at.paths:
        hint = f"`savepoint config instance '{instance}'` makes it the current one"
        raise SelectorError(f"{instance} is not the current instance", hint=hint)
    asked = place.request(at, _TRIGGER)._replace(even_if_unchanged=True)
    if timestamp:
        asked = asked._replace(now=_seconds(timestamp))
    if utilization:
        asked = asked._replace(utilization=_percent(utilization))
    saved, git = create.save_now(asked)
    chain = create.layer_3(saved, at)
    with create.told(saved, at):
        create.print_layers(saved, git, chain)
    create.finish_pending(asked, at)
    is_done = git.status in create.DONE and chain.status in layer3.DONE
    if saved.warnings or not is_done:
        raise typer.Exit(_PARTLY)


def main() -> NoReturn:
    """The program."""
    serving.program(run)


def run(arguments: list[str]) -> int:
    """Serve one call; returns the specification's exit code."""
    return serving.serve(app, "precompact_skill.py", arguments, lambda _: _NOT_SAVED)


def _seconds(text: str) -> int:
    try:
        return spelling.time_seconds(text)
    except MalformedError as failure:
        raise UsageError(failure.message) from None


def _percent(text: str) -> int:
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no percentage", hint="write it like 85")
    return int(found[1])
