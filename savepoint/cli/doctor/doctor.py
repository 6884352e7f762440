"""`savepoint doctor`: is everything set up as it must be, and what is to be done if not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from savepoint.capture import surroundings
from savepoint.cli import options, place, terminal
from savepoint.cli.doctor import (
    agent as agent_checks,
)
from savepoint.cli.doctor import (
    git,
    ledger,
    store,
)
from savepoint.cli.doctor import (
    hooks as hook_checks,
)
from savepoint.cli.doctor import (
    machine as machine_checks,
)
from savepoint.core.errors import NoStoreError, SavepointError

if TYPE_CHECKING:
    from savepoint.cli.doctor.checks import Check

_COLOURS = {"warn": "yellow", "fail": "red"}


def doctor(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Check the set-up, and say what to do about what is wrong."""
    where = place.folder(project)
    hooks = hook_checks.run(surroundings.config_dir(os.environ), where)
    runs = any(one.name == "agent" and one.result == "ok" for one in hooks)
    machine = machine_checks.run(place.home(), installed=runs)
    found = [*machine, *hooks, *_of_the_store(where, installed=runs)]
    if as_json:
        terminal.document({"checks": [one.to_json() for one in found]})
    else:
        for one in found:
            _print(one)
    if any(one.result == "fail" for one in found):
        raise typer.Exit(1)


def _of_the_store(where: str, *, installed: bool) -> list[Check]:
    try:
        at = place.find(where)
    except NoStoreError:
        return store.without(place.home(), where, installed=installed)
    except SavepointError as failure:
        return [store.broken(failure)]
    agent = agent_checks.run(surroundings.config_dir(os.environ), where, at, installed=installed)
    return [
        *store.run(place.home(), at),
        *agent,
        *git.run(at),
        *ledger.run(at),
    ]


def _print(one: Check) -> None:
    terminal.say(f"{one.result:4}  {one.name}: {one.detail}", _COLOURS.get(one.result))
    if one.todo:
        terminal.say(f"      {terminal.arrow()} {one.todo}")
