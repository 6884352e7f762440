"""`savepoint config`: what the owner chose for a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import config as ledger_config
from savepoint.core import limits
from savepoint.core.errors import SavepointError, UsageError
from savepoint.gitlayer.remote import remote_url
from savepoint.store import config as chosen
from savepoint.store import savepoints
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config

_PROGRAM = (
    "`savepoint ledger deploy` puts the program there, once, or `savepoint config program ID` "
    "names one that is there"
)
_OWN = ("instance", "exclude", "projects", "remote", "push_wait", "threshold")
_KEYS = (*_OWN, *ledger_config.KEYS)
_DEFAULTS = {
    key: f"`savepoint config {key} {value}` is what it is where nothing was chosen"
    for key, value in (("threshold", chosen.THRESHOLD), ("push_wait", limits.PUSH_WAIT_SECONDS))
}
_UNSET = ("exclude", "remote", *ledger_config.KEYS)


def config(
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help=f"{', '.join(_KEYS)}.", show_default=False),
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE...",
            help="An instance; globs of files to exclude; the URL to push to; seconds; a ledger.",
            show_default=False,
            callback=options.texts,
        ),
    ] = None,
    unset: Annotated[
        bool, typer.Option("--unset", help="Remove these globs from exclude, or all; the value.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Real money may be spent: ledger mainnet-beta.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show or change what was chosen.

    instance: whose savepoints new sessions belong to. exclude: globs of files that are never
    captured. remote: where savepoints are pushed to, a path, ssh or https. push_wait: seconds that
    a save waits for its push. projects: the folders of the store, only shown. threshold: percent of
    what a session can use until its agent compacts, at which it is saved; or off.

    ledger: where entries are anchored; embedded, localnet, devnet, testnet, mainnet-beta or the URL
    of an RPC endpoint (several with a blank between them); --unset turns it off. program: its id
    there. payer: the Solana keypair file that pays. spend: lamports that may be spent in 24 hours.
    """
    if key and key not in _KEYS:
        raise UsageError(f"no key {key!r}", hint=f"the keys are {', '.join(_KEYS)}")
    if unset and key not in _UNSET:
        raise UsageError(f"--unset goes with {' and '.join(_UNSET)}", hint=_DEFAULTS.get(key, ""))
    at = place.find(project)
    if values or unset:
        agreed_to = ledger_config.agreed(at, key, values or [], yes=yes)
        with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
            _change(at, key, values or [], unset=unset, agreed_to=agreed_to)
        at = place.find(project)
        _look(at, key)
    shown = {name: value for name, value in _shown(at).items() if key in {"", name}}
    if as_json:
        terminal.document(shown)
    else:
        _print(shown, bare=bool(key))


def _look(at: place.Place, key: str) -> None:
    """What can be said at once of what was chosen. A path that is no repository was perhaps
    misspelt; that asks no network, and a disk that is away for now is as good.
    """
    if key == "ledger" and at.config.ledger is not None:
        from savepoint.cli.ledger import chain

        if chain.program_of(at.config, at.config.ledger) is None:
            terminal.note(f"nothing is anchored yet: {_PROGRAM}")
    if key != "remote" or at.config.remote is None:
        return
    if remote_url.parse(at.config.remote, "/").kind in ("path", "file"):
        from savepoint.cli.doctor import git

        try:
            git.strangers(at)
        except SavepointError as failure:
            terminal.note(f"the remote does not answer yet: {failure.message}")


def choose_remote(at: place.Place, url: str) -> None:
    """Push to `url` from now on. Raises UsageError."""
    with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        _change(at, "remote", [url], unset=False, agreed_to=None)


def _change(
    at: place.Place, key: str, values: list[str], *, unset: bool, agreed_to: str | None
) -> None:
    before = chosen.load(at.store)
    if key == "projects":
        raise UsageError("projects are not set here", hint="run `savepoint init --adopt ID` there")
    if key == "exclude":
        after = before._replace(exclude=_excluded(before, values, unset=unset))
    elif unset:
        if values:
            raise UsageError(f"--unset takes no value with {key}")
        after = _without(before, key)
    elif key in ledger_config.KEYS:
        after = ledger_config.changed(at, before, key, _only(key, values), agreed_to)
    else:
        after = _with(at, before, key, _only(key, values))
    if after.remote != before.remote:
        from savepoint.cli.remote import remotes

        remotes.leave(at, before.remote)
    if (after.ledger, after.program) != (before.ledger, before.program):
        ledger_config.leave(at, after)
    after.save(at.store)


def _without(before: Config, key: str) -> Config:
    if key == "remote":
        return before._replace(remote=None)
    return ledger_config.without(before, key)


def _excluded(before: Config, values: list[str], *, unset: bool) -> tuple[str, ...]:
    if unset:
        return tuple(glob for glob in before.exclude if values and glob not in values)
    after = tuple(dict.fromkeys([*before.exclude, *values]))
    if any(len(glob) > limits.EXCLUDE_GLOB_CHARS for glob in values):
        raise UsageError(f"a glob has at most {limits.EXCLUDE_GLOB_CHARS} characters")
    if len(after) > limits.EXCLUDE_GLOBS:
        raise UsageError(f"exclude has at most {limits.EXCLUDE_GLOBS} globs")
    return after


def _only(key: str, values: list[str]) -> str:
    if len(values) == 1:
        return values[0]
    if key == "instance":
        raise UsageError("an instance has one name", hint="write it like 'Gabriel #215'")
    raise UsageError(f"{key} has one value")


def _with(at: place.Place, before: Config, key: str, value: str) -> Config:
    if key == "instance":
        return before._replace(instance=savepoints.instance_named(at.store, value).slug)
    if key == "remote":
        return before._replace(remote=remote_url.parse(value, at.folder).text)
    if key == "threshold":
        return before._replace(threshold=_threshold(value))
    if not (value.isascii() and value.isdigit() and int(value) <= limits.SAVE_AND_PUSH_SECONDS):
        most = int(limits.SAVE_AND_PUSH_SECONDS)
        raise UsageError(f"push_wait is a number of seconds from 0 to {most}")
    return before._replace(push_wait=int(value))


def _threshold(value: str) -> int | None:
    if value == chosen.OFF:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= 100):
        raise UsageError(f"threshold is a percentage from 1 to 100, or {chosen.OFF}")
    return int(value)


def _shown(at: place.Place) -> dict[str, Json]:
    remote = at.config.remote
    return {
        "instance": at.instance,
        "exclude": list(at.config.exclude),
        "projects": [one.path for one in at.config.projects],
        "remote": remote and remote_url.parse(remote, at.folder).shown,
        "push_wait": at.config.push_wait,
        "threshold": chosen.OFF if at.config.threshold is None else at.config.threshold,
        **ledger_config.shown(at.config),
    }


def _print(shown: dict[str, Json], *, bare: bool) -> None:
    for name, value in shown.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                terminal.say(str(one) if bare else f"{name} = {one}")
