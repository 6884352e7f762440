"""`savepoint sweep`: save the sessions of the agent that no event has saved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from savepoint.capture import surroundings
from savepoint.capture.agents import claude_places
from savepoint.cli import options, place, terminal
from savepoint.core.errors import NoStoreError, SavepointError
from savepoint.store import config, registry
from savepoint.work import follow

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


_FAILED = 1


class Session(NamedTuple):
    """A session as the agent keeps it."""

    path: str  # of its transcript
    project: str  # where it was begun

    @property
    def id(self) -> str:
        """Its id."""
        return os.path.basename(self.path).removesuffix(".jsonl")


class Swept(NamedTuple):
    """What became of one."""

    session: Session
    seq: int | None  # None: nothing new
    error: str
    named: str = ""  # the savepoint, for people


def sweep(
    project: Annotated[
        str,
        typer.Option(
            "-C",
            "--project",
            metavar="DIR",
            help="The sessions of this project only.",
            show_default="all projects",
        ),
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Save the sessions that no event has saved.

    All that the agent still has, as far as something of them is new. The agent deletes old ones by
    itself (cleanupPeriodDays, by default after 30 days). Those of projects without a store are
    counted: `savepoint init` there makes one.
    """
    where = place.folder(project) if project else ""
    done: list[Swept] = []
    homeless: dict[str, int] = {}
    with terminal.busy("saving"):
        for one in sessions(surroundings.config_dir(os.environ), where):
            try:
                done.append(save(one))
            except NoStoreError:
                homeless[one.project] = homeless.get(one.project, 0) + 1
    if as_json:
        terminal.document(_document(done, homeless))
    else:
        _print(done, homeless)
    if any(one.error for one in done):
        raise typer.Exit(_FAILED)


def sessions(config_dir: str, project: str = "") -> list[Session]:
    """The sessions below the agent's folder, of one project or of all. The oldest come first: they
    are the first to be deleted.
    """
    written = claude_places.all_written(config_dir)
    if project:
        written = claude_places.written(config_dir, project)
    known = ((path, claude_places.begun_in(path)) for _, path in sorted(written))
    return [
        Session(path, where)
        for path, where in known
        if where is not None and (not project or os.path.realpath(where) == project)
    ]


def save(session: Session) -> Swept:
    """Save it, if anything of it is new. Raises NoStoreError."""
    from savepoint.save import save_consciousness_state

    at = _place_of(session.project)
    asked = place.request(at, "sweep")
    try:
        saved = save_consciousness_state(
            asked._replace(session_id=session.id, transcript=session.path)
        )
        if saved is not None:
            follow.behind(saved, asked)
    except SavepointError as failure:
        return Swept(session, None, failure.message)
    if saved is None:
        return Swept(session, None, "")
    seq = saved.record.seq
    return Swept(session, seq, "", place.numbered(saved.paths, seq, at.paths.slug))


def _place_of(where: str) -> place.Place:
    """Where a session is saved from: its own folder or, as worktrees go, another of its store."""
    store = registry.find(place.home(), where)
    folders = (where, *(one.path for one in config.load(store).projects))
    there = next(filter(os.path.isdir, folders), None)
    if there is None:
        raise NoStoreError(f"the folders of store {store.id} are gone")
    return place.find(there)


def _document(done: list[Swept], homeless: dict[str, int]) -> dict[str, Json]:
    return {
        "saved": [
            {"seq": one.seq, "session_id": one.session.id, "project": one.session.project}
            for one in done
            if one.seq is not None
        ],
        "failed": [
            {"session_id": one.session.id, "project": one.session.project, "error": one.error}
            for one in done
            if one.error
        ],
        "unchanged": sum(one.seq is None and not one.error for one in done),
        "without_store": dict(homeless),
    }


def _print(done: list[Swept], homeless: dict[str, int]) -> None:
    for one in done:
        if one.seq is not None:
            terminal.say(f"{one.named}: session {one.session.id} of {one.session.project}")
    saved = sum(one.seq is not None for one in done)
    unchanged = sum(one.seq is None and not one.error for one in done)
    terminal.say(f"{terminal.counted(saved, 'session')} saved, {unchanged} had nothing new")
    for one in done:
        if one.error:
            terminal.note(f"session {one.session.id} of {one.session.project}: {one.error}")
    for project, count in sorted(homeless.items()):
        terminal.note(
            f"{terminal.counted(count, 'session')} of {project}, which has no store: "
            "`savepoint init` there makes one"
        )
