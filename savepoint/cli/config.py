"""`savepoint config`: what the owner chose for a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.core import limits
from savepoint.core.errors import UsageError
from savepoint.store import config as chosen
from savepoint.store import savepoints
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

_KEYS = ("instance", "exclude", "projects")


def config(
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help="instance, exclude or projects.", show_default=False),
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE...",
            help="An instance; or globs of files to exclude.",
            show_default=False,
        ),
    ] = None,
    unset: Annotated[
        bool, typer.Option("--unset", help="Remove these globs, or all, from exclude.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show or change what was chosen: the instance, files to exclude. Projects are only shown."""
    if key and key not in _KEYS:
        raise UsageError(f"no key {key!r}", hint=f"the keys are {', '.join(_KEYS)}")
    if unset and key != "exclude":
        raise UsageError("--unset goes with exclude")
    at = place.find(project)
    if values or unset:
        with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
            _change(at, key, values or [], unset=unset)
        at = place.find(project)
    shown = {name: value for name, value in _shown(at).items() if key in {"", name}}
    if as_json:
        terminal.document(shown)
    else:
        _print(shown, bare=bool(key))


def _change(at: place.Place, key: str, values: list[str], *, unset: bool) -> None:
    before = chosen.load(at.store)
    if key == "projects":
        raise UsageError("projects are not set here", hint="run `savepoint init --adopt ID` there")
    if key == "instance":
        if len(values) != 1:
            raise UsageError("an instance has one name", hint="write it like 'Gabriel #215'")
        after = before._replace(instance=savepoints.instance_named(at.store, values[0]).slug)
    elif unset:
        kept = [glob for glob in before.exclude if values and glob not in values]
        after = before._replace(exclude=tuple(kept))
    else:
        after = before._replace(exclude=tuple(dict.fromkeys([*before.exclude, *values])))
    after.save(at.store)


def _shown(at: place.Place) -> dict[str, Json]:
    return {
        "instance": at.instance,
        "exclude": list(at.config.exclude),
        "projects": [one.path for one in at.config.projects],
    }


def _print(shown: dict[str, Json], *, bare: bool) -> None:
    for name, value in shown.items():
        for one in value if isinstance(value, list) else [value]:
            terminal.say(str(one) if bare else f"{name} = {one}")
