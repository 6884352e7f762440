"""`savepoint`: the commands."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from savepoint import __version__
from savepoint.cli import (
    bootstrap,
    config,
    create,
    doctor,
    export,
    fsck,
    gc,
    handoff,
    init,
    install,
    keys,
    ledger,
    proof,
    resurrect,
    serving,
    show,
    status,
    succession,
    sweep,
    sync,
    terminal,
    verify,
    worker,
)
from savepoint.cli import list as listing
from savepoint.core.errors import UsageError

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,  # help for every terminal and every pipe alike
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.init)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("create")(create.create)
app.command("list")(listing.list_savepoints)
app.command("show")(show.show)
app.command("status")(status.status)
app.command("verify")(verify.verify)
app.command("fsck")(fsck.fsck)
app.command("resurrect")(resurrect.resurrect)
app.command("bootstrap")(bootstrap.bootstrap)
app.command("export")(export.export)
app.command("doctor")(doctor.doctor)
app.command("config")(config.config)
app.command("sync")(sync.sync)
app.command("sweep")(sweep.sweep)
app.command("worker")(worker.worker)
app.command("gc")(gc.gc)
app.add_typer(keys.app, name="keys")
app.add_typer(succession.app, name="succession")
app.add_typer(handoff.app, name="handoff")
app.add_typer(ledger.app, name="ledger")
app.add_typer(proof.app, name="proof")


def _show_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"savepoint {__version__}")
        raise typer.Exit


@app.callback()
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


def main() -> NoReturn:
    """The program."""
    serving.program(run)


def run(arguments: list[str]) -> int:
    """Serve one command line; returns the exit code, whatever happens."""
    return serving.serve(app, "savepoint", arguments)
