"""Stop: what the turn touched is counted, and whether a succession is due."""

from __future__ import annotations

import os

from savepoint.capture import transcript
from savepoint.core.errors import DiskError, TranscriptError
from savepoint.core.named import NamedTuple
from savepoint.store import registry
from savepoint.store.files import read_at
from savepoint.store.layout import Home, session_key
from succession.dynasty import branch, keep, record, scores
from succession.dynasty.constants import DECREE_SESSIONS, TRANSCRIPT_BYTES
from succession.dynasty.files import deviants
from succession.dynasty.session import calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from succession.dynasty.files.archive import Kept
    from succession.dynasty.files.meta import Life
    from succession.dynasty.files.seen import Seen, Session
    from succession.dynasty.state import State


class Turn(NamedTuple):
    """What a Stop found."""

    due: str = ""  # why a succession is to run now; empty if none is
    suggestion: str = ""  # why one is suggested


class Counted(NamedTuple):
    """A dynasty after a turn was counted."""

    state: State
    seen: Seen
    kept: tuple[Kept, ...]


def at_stop(request: Request) -> Turn:
    """Count the turn; see `succession.dynasty.at_stop`."""
    store = registry.find(Home(request.home), request.project)
    if not keep.is_there(store):
        return Turn()
    here = branch.current(request.project, request.cwd, request.environment)
    key = session_key(request.session_id)
    with keep.opened(store, here, request.now, request.deadline) as held:
        if not held.exists:
            return Turn()
        session = held.seen.session(key)
        read = _new_calls(request, session.offset)
        state, seen, kept = count(held.state, held.seen, key, here.folder, read, request.now)
        state = record.suggest(state, key)
        held.write(state, seen, archive=b"".join(one.line for one in kept))
    reason = state.meta.suggestion.reason if state.meta.suggestion else ""
    return Turn(reason if _is_due(state, seen.session(key), key) else "", reason)


class Progress(NamedTuple):
    """New calls of a session's transcript, and how far it is read with them."""

    read: calls.Read
    offset: int


def count(state: State, seen: Seen, key: str, folder: str, progress: Progress, now: int) -> Counted:
    """The dynasty after a turn of that session. folder: that of the branch's dynasty."""
    welcome = record.welcome(state, now)
    state, session = welcome.state, seen.session(key)
    known = frozenset(seen.calls)
    fresh = [one for one in progress.read.calls if one.key not in known]
    live = {one.id: one for one in (*state.dusk_page.entries, *state.day_page.entries)}
    entries = [(one, state.meta.lives[one.id]) for one in live.values()]
    points, hits = scores.score(entries, fresh, session.hits)
    session = session._replace(offset=progress.offset, hits=hits)
    if progress.read.answered and session.counts and folder not in session.counted_in:
        state = _counted(state, is_first=not session.counted_in)
        session = session._replace(counted_in=(*session.counted_in, folder))
    state = _referenced(state, points, key)
    keys = tuple(dict.fromkeys(one.key for one in fresh))
    return Counted(state, seen.with_session(key, session).with_calls(keys), welcome.kept)


def _counted(state: State, *, is_first: bool) -> State:
    """One more session; of the whole project only where it was counted on no other branch."""
    meta = state.meta._replace(
        sessions=state.meta.sessions + 1,
        sessions_since_succession=state.meta.sessions_since_succession + 1,
    )
    text = deviants.counted(state.deviants) if is_first else state.deviants
    return state._replace(meta=meta, deviants=text)


def _referenced(state: State, points: dict[str, int], key: str) -> State:
    """Scores in the headers, of copies as well, and in whose lives this session shows."""
    if not points:
        return state
    day, dusk, lives = state.day_page, state.dusk_page, dict(state.meta.lives)
    refs = {one.id: one.ref for one in (*dusk.entries, *day.entries)}
    refs = {one: refs[one] + more for one, more in points.items()}
    for one in points:
        lives[one] = _with_session(lives[one], key)
    meta = state.meta._replace(lives=lives)
    day, dusk = (page.with_refs(refs) for page in (day, dusk))
    return state._replace(meta=meta, day=day.raw, dusk=dusk.raw)


def _with_session(life: Life, key: str) -> Life:
    """The session that recorded an entry says nothing about how often it is needed."""
    is_known = key == life.origin or key in life.referenced
    if is_known or len(life.referenced) >= DECREE_SESSIONS:
        return life
    return life._replace(referenced=(*life.referenced, key))


def _is_due(state: State, session: Session, key: str) -> bool:
    """Was a session before this one told of the suggestion, and is this one a session?"""
    asked = state.meta.suggestion
    if asked is None or asked.surfaced is None or not session.counts or not session.counted_in:
        return False
    return key not in (asked.surfaced, asked.session)


def _new_calls(request: Request, offset: int) -> Progress:
    """What the transcript has behind `offset`; at most its last TRANSCRIPT_BYTES."""
    try:
        fd = transcript.open_transcript(request.transcript, request.home)
    except TranscriptError:
        return Progress(calls.Read((), False, 0), offset)  # noqa: FBT003  # answered
    try:
        size = os.fstat(fd).st_size
        start = 0 if size < offset else offset  # a file that was written anew
        start = max(start, size - TRANSCRIPT_BYTES)
        read = calls.read(read_at(fd, size - start, start), request.project)
    except OSError as failure:
        raise DiskError.of(failure, request.transcript) from failure
    finally:
        os.close(fd)
    return Progress(read, start + read.size)
