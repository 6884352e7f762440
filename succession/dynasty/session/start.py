"""SessionStart: what the session is told; and which sessions are none."""

from __future__ import annotations

from savepoint.core.errors import DiskError
from savepoint.store import registry
from savepoint.store.layout import Home, session_key
from succession.dynasty import branch, keep
from succession.dynasty.files.seen import NOT_A_SESSION, Session
from succession.dynasty.state import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from succession.dynasty.keep import Held


def at_start(request: Request, source: str, *, resurrected: bool) -> str:
    """The briefing; see `succession.dynasty.at_start`. It needs no disk that can be written to."""
    store = registry.find(Home(request.home), request.project)
    if not keep.is_there(store):
        return ""
    here = branch.current(request.project, request.cwd, request.environment)
    key = session_key(request.session_id)
    with keep.opened(store, here, request.now, request.deadline) as held:
        text = brief(held.state, key)
        if key in held.seen.sessions:
            return text
        try:
            _note(held, key, counts=resurrected or source not in NOT_A_SESSION)
        except DiskError as failure:
            if not text:
                raise
            return f"{text}\n(That it was told cannot be noted: {failure.message})"
    return text


def _note(held: Held, key: str, *, counts: bool) -> None:
    """It is a session, and knows what is suggested."""
    held.remember(held.seen.with_session(key, Session(counts=counts)))
    if counts:
        _surface(held, key)


def _surface(held: Held, key: str) -> None:
    """A suggestion of another session has been told to this one: the next one's first turn runs it.
    Nothing is written where there is none.
    """
    meta = held.state.meta
    asked = meta.suggestion
    if asked is None or asked.surfaced is not None or asked.session == key:
        return
    told = meta._replace(suggestion=asked._replace(surfaced=key))
    held.write(held.state._replace(meta=told), held.seen)
