"""`savepoint init`: a store for this project, or this folder for an existing store."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.doctor import git
from savepoint.core import limits
from savepoint.core.errors import (
    MalformedError,
    OutputExistsError,
    SavepointError,
    SelectorError,
    UsageError,
)
from savepoint.core.spelling import Instance
from savepoint.store import begin, birth, config, durable, registry, savepoints
from savepoint.store.files import read_bounded
from savepoint.store.fsck import regain
from savepoint.store.keys import safekeeping
from savepoint.store.locks import Lock
from savepoint.store.session import missed
from savepoint.work import follow

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config
    from savepoint.store.layout import Home, Store


class _Begun(NamedTuple):
    store: Store
    what: str  # created | adopted | there
    moved: tuple[Store, ...] = ()  # stores that may have been this folder's
    before: str = ""  # the instance that was the current one, if another is now


def init(
    instance: Annotated[
        str,
        typer.Option(
            "--instance",
            metavar="'NAME #N'",
            help="The agent's identity.",
            show_default=begin.DEFAULT_INSTANCE,
            callback=options.text,
        ),
    ] = "",
    adopt: Annotated[
        str,
        options.value(
            "--adopt", "ID", "Give this folder to that store; also where its config is lost."
        ),
    ] = "",
    remote: Annotated[
        str, options.written("--remote", "URL", "Where savepoints are pushed to.")
    ] = "",
    lineage: Annotated[
        str,
        options.written("--lineage", "TEXT", "Who came before, as a text that nobody verifies."),
    ] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Make a store for this project, with a key of its own.

    What the hook missed is caught up. Where there is a store already, the instance that --instance
    names becomes its current one, and is born if it is new; nothing else changes.
    """
    where = place.folder(project)
    begun = _begin(place.home(), where, _instance(instance), adopt)
    at = place.find(where)
    if lineage:
        _keep_lineage(at, lineage)
    others = _use_remote(at, remote) if remote else []
    caught, lost = ([], 0) if begun.moved else _catch_up(at)
    if begun.what == "adopted":
        caught += _bring_along(at)
    if as_json:
        terminal.document(_document(at, begun, caught, lost))
    else:
        _print(at, begun)
    for store in begun.moved:
        terminal.note(
            f"this folder was perhaps moved from store {store.id}; "
            f"`savepoint init --adopt {store.id[:8]}` continues that one"
        )
    if others:
        terminal.note(git.told(others))
    if caught or lost:
        gone = f"; of {lost} more the transcript is gone" if lost else ""
        terminal.note(f"{terminal.counted(len(caught), 'missed session')} caught up{gone}")


def _keep_lineage(at: place.Place, before: str) -> None:
    """The ancestors of the current instance stand in its state from now on, and in that of its
    successors. Raises OutputExistsError: it has others.
    """
    data = f"{before} → {at.instance}\n".encode()
    if durable.create_exclusive(at.paths.lineage, data):
        return
    if read_bounded(at.paths.lineage, limits.STATE_FILE_BYTES) != data:
        raise OutputExistsError(f"{at.paths.lineage} exists and differs", hint="edit that file")


def _use_remote(at: place.Place, url: str) -> list[str]:
    """Push to `url` from now on; what it holds of others. One that is silent is still used."""
    from savepoint.cli import config as chosen

    chosen.choose_remote(at, url)
    try:
        return git.strangers(place.find(at.folder))
    except SavepointError as failure:
        terminal.note(f"the remote does not answer yet: {failure.message}")
        return []


def _instance(text: str) -> Instance | None:
    try:
        return Instance.parse(text) if text else None
    except MalformedError as failure:
        raise UsageError(failure.message, hint="write it like 'Gabriel #215'") from None


def _begin(home: Home, where: str, instance: Instance | None, adopt: str) -> _Begun:
    """The store of the folder, made or changed as asked, by one process at a time."""
    if not place.is_utf8(where):
        raise UsageError("the folder's path is not UTF-8", hint="rename the folder")
    durable.make_directories(home.path)
    with Lock(home.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        registry.rebuild(home)  # the cache may be older than a config
        if adopt:
            return _adopt(home, where, adopt)
        store = begin.own_store(home, where)
        if store is None:
            moved = tuple(registry.moved(home, where))
            chosen = instance or Instance.parse(begin.DEFAULT_INSTANCE)
            return _Begun(
                birth.create_store(home, where, chosen, int(time.time())), "created", moved
            )
        return _Begun(store, "there", before=_settle_instance(store, instance))


def _adopt(home: Home, where: str, prefix: str) -> _Begun:
    """The folder belongs to that store, and to no other. What the other one has stays there."""
    store = registry.store_with_id(home, prefix)
    own = registry.project_of(where)
    chosen = _config_of(store)
    if where in [one.path for one in chosen.projects]:
        return _Begun(store, "there")
    chosen._replace(projects=(*chosen.projects, own)).save(store)
    for other in registry.stores(home):
        if other.id != store.id:
            _take_from(other, where)
    registry.rebuild(home)
    return _Begun(store, "adopted")


def _config_of(store: Store) -> Config:
    """What was chosen for the store; where that is damaged or lost, what its records tell of it."""
    try:
        return config.load(store)
    except MalformedError as failure:
        found = regain.regain(store)
        kept = f"; it is {found.aside} now" if found.aside else ""
        terminal.note(f"{failure.message}{kept}. A new one is written")
    terminal.note("set anew what was chosen: `savepoint config remote URL`, `config exclude GLOB`")
    return found.config


def _take_from(other: Store, where: str) -> None:
    """That store no longer has the folder. One whose config is damaged names no folder."""
    try:
        before = config.load(other)
    except MalformedError:
        return
    kept = tuple(one for one in before.projects if one.path != where)
    if kept != before.projects:
        before._replace(projects=kept).save(other)
        terminal.note(f"store {other.id} no longer has this folder; it keeps its savepoints")


def _settle_instance(store: Store, wanted: Instance | None) -> str:
    """A store that exists: its key file is there, and the instance asked for is the current one.
    Which one was, if that was another.
    """
    chosen = config.load(store)
    current = store.instance(chosen.instance)
    if not os.path.lexists(current.authority):
        birth.restore_authority(current)
    if wanted is None or savepoints.name_of(current) == str(wanted):
        return ""
    try:
        paths = savepoints.instance_named(store, str(wanted))
    except SelectorError:
        paths, _ = birth.give_birth(store, wanted, int(time.time()))
    chosen._replace(instance=paths.slug).save(store)
    return savepoints.name_of(current) or current.slug


def _catch_up(at: place.Place) -> tuple[list[Json], int]:
    """Save the sessions whose fires found no store, as far as their transcripts are still there."""
    from savepoint.save import save_consciousness_state

    caught: list[Json] = []
    lost = 0
    for fire in missed.of_store(place.home(), at.store, savepoints.instances(at.store)):
        if not fire.can_be_caught_up:
            lost += 1
            continue
        asked = place.request(at, "sweep")._replace(
            session_id=fire.session_id,
            transcript=fire.transcript,
            notes=(f"{fire.event} at {fire.timestamp} made no savepoint: {fire.reason}",),
        )
        try:
            saved = save_consciousness_state(asked)
            if saved is not None:
                follow.behind(saved, asked)
        except SavepointError as failure:
            terminal.note(f"session {fire.session_id} is not caught up: {failure.message}")
            continue
        if saved is not None:
            caught.append(saved.record.seq)
    return caught, lost


def _bring_along(at: place.Place) -> list[Json]:
    """Save here the sessions of the folder that a store was made for meanwhile, or none had."""
    from savepoint.cli import sweep

    found = [sweep.save(one) for one in sweep.sessions(place.around().config_dir, at.folder)]
    for one in found:
        if one.error:
            terminal.note(f"session {one.session.id} is not caught up: {one.error}")
    return [one.seq for one in found if one.seq is not None]


def _document(at: place.Place, begun: _Begun, caught: list[Json], lost: int) -> dict[str, Json]:
    return {
        "store": at.store.id,
        "path": at.store.path,
        "instance": at.instance,
        "key": at.paths.slug[-8:],
        "result": begun.what,
        "previous_instance": begun.before or None,
        "perhaps_moved_from": [one.id for one in begun.moved],
        "caught_up": caught,
        "transcripts_gone": lost,
    }


def _print(at: place.Place, begun: _Begun) -> None:
    told = {
        "created": "Store made for",
        "adopted": "This folder now belongs to the store of",
        "there": "There is a store already for",
    }
    terminal.say(f"{told[begun.what]} {at.folder}")
    terminal.say(f"  instance  {at.title}")
    terminal.say(f"  store     {at.store.path}")
    terminal.say(f"  keys      {at.store.keys}")
    if begun.before:
        terminal.note(
            f"{at.instance} is the current instance from now on, with savepoints of its own; "
            f"`--instance '{begun.before}'` shows those of the one before"
        )
    if safekeeping.backed_up(at.store) is None:
        terminal.note(place.KEYS_NOTE)
