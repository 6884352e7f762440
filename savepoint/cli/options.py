"""The options and arguments that several commands share, worded once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from savepoint.core.errors import UsageError


def text(given: str) -> str:
    """The callback of what is written down as text: bytes that are none could not be, and a name
    that is changed for the sake of it would be another one. Raises UsageError.
    """
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{given} is not UTF-8", hint="write it in UTF-8") from None
    return given


def texts(given: list[str] | None) -> list[str] | None:
    """As `text`, for each of several. Raises UsageError."""
    for one in given or []:
        text(one)
    return given


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
        callback=text,
    ),
]
LedgerName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="NAME",
        help="embedded, localnet, devnet, testnet, mainnet-beta, or a URL.",
        show_default="the config's",
    ),
]
ProgramId: TypeAlias = Annotated[
    str,
    typer.Option(
        "--program",
        metavar="KEY",
        help="The id of the program there, in base58.",
        show_default="the config's",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
SELECTORS = "latest, a sequence number, 8 or more digits of a snapshot hash, or @TIME."
Selector: TypeAlias = Annotated[str, typer.Argument(metavar="SELECTOR", help=SELECTORS)]
Full: TypeAlias = Annotated[
    bool, typer.Option("--full", help="The conversation from before its last compaction.")
]
OutputFolder: TypeAlias = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="The folder to make for files, state and changes.",
        show_default="one in the store",
    ),
]
AllowUnverified: TypeAlias = Annotated[
    bool, typer.Option("--allow-unverified", help="Go on where something cannot be checked.")
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Ask neither remote nor ledger: UNVERIFIABLE.")
]
