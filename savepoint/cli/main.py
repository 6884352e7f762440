"""`savepoint`: the commands."""

from __future__ import annotations

import importlib
from typing import Annotated, NoReturn

import typer

from savepoint import __version__
from savepoint.cli import serving, terminal
from savepoint.core.errors import UsageError

COMMANDS = {  # as help lists them: the module below this folder, and what it calls the command
    "init": "init.init",
    "install": "agent.install.install",
    "uninstall": "agent.install.uninstall",
    "create": "create.create",
    "list": "view.list.list_savepoints",
    "show": "view.show.show",
    "status": "view.status.status",
    "verify": "verify.verify.verify",
    "fsck": "verify.fsck.fsck",
    "resurrect": "resurrect.resurrect.resurrect",
    "bootstrap": "resurrect.bootstrap.bootstrap",
    "export": "view.export.export",
    "doctor": "doctor.doctor.doctor",
    "config": "config.config",
    "sync": "remote.sync.sync",
    "sweep": "sweep.sweep",
    "worker": "worker.worker.worker",
    "gc": "gc.gc",
    "keys": "keys.app",
    "succession": "succession.succession.app",
    "handoff": "handoff.handoff.app",
    "ledger": "ledger.ledger.app",
    "proof": "ledger.proof.app",
}


def main() -> NoReturn:
    """The program."""
    serving.program(run)


def run(arguments: list[str]) -> int:
    """Serve one command line; returns the exit code, whatever happens."""
    named = next((one for one in arguments if not one.startswith("-")), "")
    return serving.serve(program(named), "savepoint", arguments)


def program(name: str = "") -> typer.Typer:
    """All commands; that of `name` alone where there is one, since each loads much of its own."""
    made = typer.Typer(
        add_completion=False,
        invoke_without_command=True,
        rich_markup_mode=None,  # help for every terminal and every pipe alike
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(savepoint)
    for one in [name] if name in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[one].rpartition(".")
        found = getattr(importlib.import_module(f"savepoint.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            made.add_typer(found, name=one)
        else:
            made.command(one)(found)
    return made


def _show_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"savepoint {__version__}")
        raise typer.Exit


def savepoint(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback has served it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[  # noqa: ARG001  # serving looks for it itself: it holds for wrong use as well
        bool, typer.Option("--debug", help="Print a traceback when something fails.")
    ] = False,
) -> None:
    """Save the whole state of an AI coding agent, and prove later that nothing of it was lost."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(UsageError.exit_code)
