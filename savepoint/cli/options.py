"""The options and arguments that several commands share, worded once."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

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


def value(flag: str, metavar: str, told: str, default: str | bool = False) -> Any:  # noqa: ANN401
    """An option that takes a value. told: its help; default: what help says is meant without it."""
    return typer.Option(flag, metavar=metavar, help=told, show_default=default)


def written(flag: str, metavar: str, told: str, default: str | bool = False) -> Any:  # noqa: ANN401
    """As `value`, for what is written down: it is text."""
    return typer.Option(flag, metavar=metavar, help=told, show_default=default, callback=text)


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
LEDGERS = "embedded, localnet, devnet, testnet, mainnet-beta, or a URL."
LedgerName: TypeAlias = Annotated[
    str,
    value(
        "--ledger",
        "NAME",
        LEDGERS,
        "the config's",
    ),
]
ProgramId: TypeAlias = Annotated[
    str, value("--program", "KEY", "The id of the program there, in base58.", "the config's")
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
OutputFile: TypeAlias = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="The file to make.")
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace a file that is there and differs.")
]
AllowUnverified: TypeAlias = Annotated[
    bool, typer.Option("--allow-unverified", help="Go on where something cannot be checked.")
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Ask neither remote nor ledger: UNVERIFIABLE.")
]
