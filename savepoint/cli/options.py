"""The options and arguments that several commands share, worded once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Project: TypeAlias = Annotated[
    str,
    typer.Option("-C", "--project", metavar="DIR", help="The project's folder.", show_default="."),
]
InstanceName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--instance",
        metavar="NAME",
        help="An instance of the store: its slug or 'NAME #N'.",
        show_default="the current one",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Selector: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SELECTOR",
        help="latest, a sequence number, 8 or more digits of a snapshot hash, or @TIME.",
    ),
]
