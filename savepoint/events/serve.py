"""One event of the agent, served: a store if there is none, a savepoint if it is due, a line in the
log, and at the start of a session a few facts for the agent.
"""

from __future__ import annotations

import os

from savepoint.capture import unchanged
from savepoint.capture.agents import claude
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store import begin, journal, registry
from savepoint.store.layout import Home, session_key
from savepoint.store.session import pending, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from savepoint.events.due import Due
    from savepoint.save import Saved
    from savepoint.store.layout import Store


_NOTHING = "nothing new"


class Fire(NamedTuple):
    """An event, as the agent told of it."""

    event: str
    source: str  # of a SessionStart: startup, resume, clear, compact, fork
    session_id: str
    transcript: str
    started: float  # time.monotonic()


class Served(NamedTuple):
    """What became of an event."""

    store: Store
    saved: Saved | None  # the savepoint that it made
    failure: SavepointError | None = None  # of the save: the session is to be greeted all the same


def serve(fire: Fire, request: Request, user: str) -> Served:
    """Serve it. user: the user's own folder. Raises SavepointError: there is no store."""
    home = Home(request.home)
    made = begin.ensure(home, request.project, request.now, request.deadline, user)
    if made is not None:
        tell(home, fire, request.project, request.now, f"{begin.MADE}{made.id}")
    store = registry.find(home, request.project)
    try:
        return Served(store, _serve(store, fire, request))
    except SavepointError as failure:
        return Served(store, None, failure)


def _serve(store: Store, fire: Fire, request: Request) -> Saved | None:
    if fire.event == "SessionStart":
        _begin_session(store, fire, request)
    saved, said = (None, _NOTHING) if _is_idle(store, request) else _save(store, fire, request)
    if saved is None:
        _log(store, fire, request, said)
    return saved


def tell(home: Home, fire: Fire, project: str, now: int, reason: str) -> None:
    """A line in hook.log: a fire that made no savepoint, or the store. Raises DiskError."""
    journal.hook(
        home,
        now,
        {
            "event": journal.printable(fire.event),
            "session_id": journal.printable(fire.session_id),
            "transcript": journal.printable(fire.transcript),
            "project": journal.printable(project),
            "reason": journal.printable(reason),
        },
    )


def _is_idle(store: Store, request: Request) -> bool:
    """Is nothing new, and nothing left over by an earlier fire? True only where that is certain.
    Most fires find it so, and little is imported to answer.
    """
    key = session_key(request.session_id)
    return unchanged.is_unchanged(store, key, request, claude) and not pending.keys(store)


def _begin_session(store: Store, fire: Fire, request: Request) -> None:
    """What a session starts with is kept; what other sessions left is looked for."""
    from savepoint.capture import guidance
    from savepoint.events import catch_up

    if fire.source != "compact":
        guidance.note_start(store, session_key(request.session_id), request)
    if catch_up.note_unsaved(store, request):
        from savepoint.work import start
        from savepoint.work.jobs import Surroundings

        start.start(store, Surroundings(request.environment, request.config_dir))


def _save(store: Store, fire: Fire, request: Request) -> tuple[Saved | None, str]:
    """Save if it is time; and what to log of a fire that saves nothing."""
    from savepoint.capture import window
    from savepoint.events import due

    request = _resolved(request)
    key = session_key(request.session_id)
    request = window.known(store, key, request, claude)
    found = due.judge(fire.event, store, key, request)
    saved = _saved(store, key, fire, request, found) if found.trigger else None
    if fire.event != "UserPromptSubmit" and pending.keys(store):  # its user waits
        from savepoint import save
        from savepoint.work import follow

        for one in save.finish_pending(request):
            follow.behind(one, request)
    return saved, found.why or _NOTHING


def _resolved(request: Request) -> Request:
    """With transcript and session filled in as far as they can be known; mostly they are, and the
    file is named after its session.
    """
    path = request.transcript
    is_named = os.path.basename(path) == f"{request.session_id}.jsonl"
    if request.session_id and is_named and os.path.isabs(path) and os.path.isfile(path):
        return request
    from savepoint.capture import session

    return session.resolve(request, claude)


def _saved(store: Store, key: str, fire: Fire, request: Request, found: Due) -> Saved | None:
    from savepoint import save

    saved = save.save_consciousness_state(request._replace(trigger=found.trigger))
    if found.compactions is not None:
        from savepoint.store.session import context

        context.save_alarm(store, key, found.compactions)
    if saved is not None:
        _follow(fire, saved, request)
    return saved


def _follow(fire: Fire, saved: Saved, request: Request) -> None:
    """The push is waited for where an agent compacts: then the copy elsewhere is there first."""
    from savepoint.work import follow
    from savepoint.work.jobs import Surroundings

    around = Surroundings(request.environment, request.config_dir)
    is_waited_for = fire.event == "PreCompact"
    follow.follow(saved, around, fire.started, wait=is_waited_for, ending=True)


def _log(store: Store, fire: Fire, request: Request, said: str) -> None:
    """The fire's line, in the log of the instance that the session belongs to."""
    last = sessions.load(store, session_key(request.session_id))
    if last is None:
        from savepoint.store import config

        slug = config.load(store).instance
    else:
        slug = last.instance
    told = f"{fire.event} ({fire.source})" if fire.source else fire.event
    try:
        journal.continuity(store.instance(slug), request.now, f"{told}: {said}")
    except SavepointError:
        return  # for people, and this fire had nothing to save
