"""Serving one command line: whatever fails becomes one error, one hint, one exit code."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import typer

from savepoint import gitcmd
from savepoint.cli import terminal
from savepoint.core.errors import DiskError, SavepointError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERRUPTED = 130


def program(run: Callable[[list[str]], int]) -> NoReturn:
    """Run a program on its own arguments, and end with the exit code that it returns."""
    terminal.prepare()
    try:
        code = run(sys.argv[1:])
    finally:
        gitcmd.end_all()
    if code == terminal.PIPE_CLOSED:
        os._exit(code)  # an orderly exit would flush into the closed pipe, and complain
    sys.exit(code)


def serve(
    app: typer.Typer,
    name: str,
    arguments: list[str],
    exit_code: Callable[[SavepointError], int] = lambda failure: failure.exit_code,
) -> int:
    """The exit code of one command line of the program `name`; never raises.

    --debug may stand anywhere. --json counts wherever it stands: a line that cannot be parsed is
    answered in JSON as well.
    """
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in own
    if debug:
        arguments.remove("--debug")
    try:
        _refuse_empty(arguments, own)
        code = app(args=arguments, prog_name=name, standalone_mode=False) or 0
        terminal.flush()
        return int(code)
    except SystemExit as stop:
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BaseException as failure:  # noqa: BLE001  # no traceback reaches a person unasked
        if debug:
            traceback.print_exc()
        told = _named(failure)
        if told.hint == UsageError.default_hint:
            told.hint = f"see `{_command(app, name, arguments)} --help`"
        _report(told, as_json="--json" in own)
        return exit_code(told)


def _refuse_empty(arguments: list[str], own: list[str]) -> None:
    """A variable that was not set must not mean what leaving the option out means."""
    if "" in arguments or any(one.startswith("--") and one.endswith("=") for one in own):
        raise UsageError("an argument is empty")


def _command(app: typer.Typer, name: str, arguments: list[str]) -> str:
    """The command that the arguments name, as it is typed."""
    known = typer.main.get_command(app)
    for one in arguments:
        if one in getattr(known, "commands", {}):
            known = known.commands[one]  # type: ignore[attr-defined]  # a group has it
            name += f" {one}"
    return name


_NOISE = "Value error, "  # of what checks the arguments, in the middle of its sentence


def _named(failure: BaseException) -> SavepointError:
    """The failure as one of our errors."""
    if isinstance(failure, SavepointError):
        return failure
    if isinstance(failure, typer.TyperException):
        message = failure.format_message().rstrip(".").replace(_NOISE, "")
        context = getattr(failure, "ctx", None)
        hint = f"see `{context.command_path} --help`" if context else ""
        return UsageError(message[:1].lower() + message[1:], hint=hint)
    if isinstance(failure, OSError):
        return DiskError.of(failure)
    if isinstance(failure, MemoryError) or "failed to map segment" in str(failure):
        hint = "free some, or raise the limit (`ulimit -v`), then run the same again"
        return SavepointError("there is not enough memory", hint=hint)
    return SavepointError(
        f"internal error: {type(failure).__name__}: {failure}",
        hint="this is a defect; run the same with --debug and report what it prints",
    )


def _report(failure: SavepointError, *, as_json: bool) -> None:
    """Tell it where it can be told; the exit code says it in any case."""
    if as_json:
        with suppress(OSError, DiskError, SystemExit):  # a full disk, or nobody reads
            _print(failure)
            return
    with suppress(OSError, DiskError, SystemExit):
        terminal.complain(failure.message, failure.hint)


def _print(failure: SavepointError) -> None:
    terminal.document(
        {
            "error": {
                "code": failure.exit_code,
                "name": failure.name,
                "message": failure.message,
                "hint": failure.hint,
            }
        }
    )
