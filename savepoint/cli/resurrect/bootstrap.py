"""`savepoint bootstrap`: a successor on a machine that has nothing but a remote and the keys."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.capture import surroundings
from savepoint.cli import options, passphrase, place, terminal
from savepoint.cli.ledger import chain, config
from savepoint.cli.resurrect import report as resurrection_report
from savepoint.cli.resurrect import resurrect
from savepoint.cli.verify import verify as verifying
from savepoint.core import limits
from savepoint.core.errors import (
    MalformedError,
    NoStoreError,
    OutputExistsError,
    RemoteUnreachableError,
    RolledBackError,
    SavepointError,
    SelectorError,
    UnverifiableError,
)
from savepoint.gitlayer.remote import remote_url, shallow
from savepoint.store import registry
from savepoint.store.config import EMBEDDED
from savepoint.store.fsck import garbage
from savepoint.store.keys import backup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.verdicts import Report
    from savepoint.gitlayer.remote.remote_url import RemoteUrl
    from savepoint.resurrect.bootstrap import Fetched
    from savepoint.resurrect.steps import Asked, Done
    from savepoint.resurrect.successor import Parent
    from savepoint.store.keys.backup import Backup

_AGAIN = "run the same again when the remote answers; nothing was written here"
_LATER = (
    "leave out --apply; then `savepoint resurrect --only files --apply --force` replaces them, "
    "with a copy kept"
)
_IMPORT = (
    "`savepoint resurrect SELECTOR --only memory` of an older savepoint writes a folder, and "
    "`savepoint succession import FOLDER --force` puts in place what is whole in it"
)
_KEYS = "--keys FILE names what `savepoint keys backup` made"
_AWAY = "embedded ledger stays on its machine"
_CAVEAT = (
    "no ledger could be asked: a rollback of the remote to any state after the backup's heads "
    "cannot be excluded"
)


def bootstrap(
    remote: Annotated[str, typer.Option("--remote", metavar="URL", help="Where savepoints are.")],
    *,
    keys: Annotated[
        str,
        options.value(
            "--keys", "FILE", "What `keys backup` made. Without it, nothing is brought back."
        ),
    ] = "",
    passphrase_file: passphrase.File = "",
    ledger: Annotated[str, options.value("--ledger", "NAME", options.LEDGERS, "the backup's")] = "",
    full: options.Full = False,
    output: options.OutputFolder = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Put the loaded files into the project, too.")
    ] = False,
    allow_unverified: options.AllowUnverified = False,
    instance: Annotated[
        str,
        options.written(
            "--instance", "NAME", "Whose: its slug or 'NAME #N'.", "the newest of the backup's line"
        ),
    ] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Bring the newest one back on a machine that has nothing.

    Without --keys it says what can be verified, since nothing can be opened.
    """
    folder = place.folder(project)
    url = remote_url.parse(remote, os.getcwd())
    if not keys:
        with _without_store(folder):
            _only_verify(url, instance, ledger)
        return
    garbage.sweep(place.home(), time.time())
    kept = _opened(keys, passphrase_file)
    _refuse_store(folder, kept)
    tell = resurrection_report.steps(as_json=as_json)
    from savepoint.resurrect.bootstrap import fetched
    from savepoint.resurrect.selection import Part

    around = place.around().environment
    with _without_store(folder), fetched(place.home(), kept, url, instance, around) as found:
        at = _place(found, folder, ledger)
        report = _verified(at, found)
        asked = resurrect.request(at, found.savepoint, None, output)._replace(
            part=Part(full),
            apply=apply,
            allow_unverified=allow_unverified,
            target=folder,
            caveats=(_CAVEAT,) if at.config.ledger in (None, EMBEDDED) else (),
        )
        asked = asked._replace(caveats=(*asked.caveats, *resurrect.unseen(asked)))
        done = _run(at, found, report, asked, tell, kept)
    there = place.find(folder)
    resurrect.afterwards(there, done)
    place.note_absent(there)
    resurrection_report.tell(done.report, there.store, as_json=as_json)


@contextmanager
def _without_store(folder: str) -> Iterator[None]:
    """As long as there is no store, no hint leads to a command that needs one."""
    try:
        yield
    except (RemoteUnreachableError, MalformedError, RolledBackError, OutputExistsError) as failure:
        if registry.is_known(place.home(), folder):
            raise
        raise type(failure)(failure.message, hint=_way_out(failure)) from failure


def _way_out(failure: SavepointError) -> str:
    if isinstance(failure, OutputExistsError):
        return _LATER if "--force" in failure.hint else failure.hint
    if "`savepoint " not in failure.hint:
        return failure.hint
    return _AGAIN if isinstance(failure, RemoteUnreachableError) else shallow.OLDER


def _refuse_store(folder: str, kept: Backup) -> None:
    """A folder has one store. Its own, of which there are but the keys, is finished."""
    try:
        store = registry.find(place.home(), folder)
    except NoStoreError:
        return
    if store.id != kept.store:
        raise OutputExistsError(
            f"{folder} belongs to another store, {store.id}",
            hint="--project DIR names another folder",
        )


def _opened(keys: str, passphrase_file: str) -> Backup:
    sealed = backup.read(keys)
    secret = passphrase.get(passphrase_file, twice=False)
    with terminal.busy("decrypting"):
        return backup.parse(backup.unseal(sealed, secret, keys))


def _place(found: Fetched, folder: str, ledger: str) -> place.Place:
    chosen = found.config
    if ledger:
        chosen = chosen._replace(ledger=config.choice_of(ledger))
        chosen.save(found.store)
    name = found.savepoint.instance
    return place.Place(folder, found.store, chosen, found.paths, name)


def _verified(at: place.Place, found: Fetched) -> Report:
    """By all witnesses; the embedded ledger stays on the machine that is gone."""
    if at.config.ledger != EMBEDDED:
        return resurrect.verified(at, found.savepoint, offline=False)
    from anchor_service import witness

    alone = at._replace(config=at.config._replace(ledger=None))
    return witness.off(resurrect.verified(alone, found.savepoint, offline=False), EMBEDDED, _AWAY)


def _run(
    at: place.Place,
    found: Fetched,
    report: Report,
    asked: Asked,
    tell: resurrection_report.Tell,
    kept: Backup,
) -> Done:
    from savepoint.resurrect import bootstrap as making
    from savepoint.resurrect.steps import Resurrection

    parent = resurrect.parent_of(at, found.savepoint, report)
    parent = parent._replace(commit=parent.commit or found.commit)

    def publish() -> Parent:
        fresh = found._replace(config=at.config)
        _bring_threads(found)
        _bring_dynasty(found)
        published = making.publish(fresh, place.home(), kept, at.folder)
        if published.aside:
            terminal.note(f"what stood in the store's place, without savepoints: {published.aside}")
        return parent._replace(paths=published.store.instance(found.paths.slug))

    shown = remote_url.parse(at.config.remote or "", "/").shown
    with Resurrection(parent, report, asked, found.known, tell) as going:
        return going.run(shown, publish=publish)


def _bring_threads(found: Fetched) -> None:
    """What threads owe is in the store when that gets its place. A log that was damaged when it was
    saved keeps nothing else from coming back.
    """
    from succession.handoff import saved

    try:
        data = saved.held_by(found.paths, found.savepoint)
        if data is not None:
            saved.put_back(found.store, data)
    except SavepointError as failure:
        terminal.note(f"what threads owe does not come back: {failure.message}")


def _bring_dynasty(found: Fetched) -> None:
    """What was passed on, of all branches, is in the store as well. What is damaged stays out."""
    from succession import bundles
    from succession.dynasty.joining import bundle

    try:
        data = bundles.held_by(found.paths, found.savepoint, "succession")
        left = bundle.put_back(found.store, data, "", force=False).left if data is not None else ()
    except SavepointError as failure:
        left = (failure.message,)
    for one in left:
        terminal.note(f"of what was passed on, not all comes back: {one}")
    if left:
        terminal.note(_IMPORT)


def _only_verify(url: RemoteUrl, instance: str, ledger: str) -> None:
    """Without the keys: what can be verified, and what cannot be opened."""
    from savepoint.gitlayer.witness import alone, witness
    from savepoint.gitlayer.witness.witness import Look

    scratch = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # a random name in it, for us alone
    env = surroundings.for_children(os.environ)
    deadline = time.monotonic() + limits.COMMAND_SECONDS
    with _of_whom(), alone.opened(url, instance, scratch, env, deadline) as it:
        report = alone.report(it, lambda saves: saves[-1:])
        report = witness.verify(it.repo, it.paths, report, Look())
        report = chain.verify(it.config, it.repo, it.paths, report, chain.Wanted(ledger))
        for one in report.savepoints:
            verifying.print_savepoint(one, in_full=True)
        title = place.title(it.paths)
    terminal.say(f"{report.verdict}: {title} at {url.shown}")
    raise UnverifiableError(
        f"what {title} has saved cannot be opened without its keys",
        hint=_KEYS,
    )


@contextmanager
def _of_whom() -> Iterator[None]:
    """Which instance is meant matters less than that nothing comes back without keys."""
    try:
        yield
    except SelectorError as failure:
        told = f"without --keys nothing is brought back, and to verify it {failure.message}"
        raise SelectorError(told, hint=f"{_KEYS}; to verify alone: {failure.hint}") from failure
