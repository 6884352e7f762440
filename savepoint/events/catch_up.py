"""Sessions of a project that no event has saved to their end: an agent that is killed fires none,
and many do not at their end (claude-code#17885, #6428).
"""

from __future__ import annotations

import os

from savepoint.capture.agents import claude_places
from savepoint.core import limits
from savepoint.store.layout import session_key
from savepoint.store.session.pending import Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from savepoint.store.layout import Store


def note_unsaved(store: Store, request: Request) -> int:
    """Leave to the worker what was written since the store began and has come to rest; how many
    sessions that are. Not the session of `request`. Raises DiskError.
    """
    try:
        begun = os.stat(store.root_seed).st_mtime_ns
    except OSError:  # without the key nothing can be signed; doctor says so
        return 0
    rested = (request.now - limits.STOP_INTERVAL_SECONDS) * 10**9
    noted = 0
    written = claude_places.written(request.config_dir, request.project)
    since = [(when, path) for when, path in written if when >= begun]
    for when, path in sorted(since, reverse=True):
        session_id = os.path.basename(path).removesuffix(".jsonl")
        if noted >= limits.CATCH_UP_SESSIONS:
            break
        key = session_key(session_id)
        if session_id == request.session_id or not _saved_at(store, key) < when < rested:
            continue
        if claude_places.is_session_of(path, request.project):
            _note(request, session_id, path).save(store, key)
            noted += 1
    return noted


def _saved_at(store: Store, key: str) -> int:
    """When a session was last saved, or is about to be, in ns; 0 for never."""
    when = 0
    for path in (store.session(key), store.pending_note(key)):
        try:
            when = max(when, os.stat(path).st_mtime_ns)
        except OSError:
            continue
    return when


def _note(request: Request, session_id: str, path: str) -> Note:
    return Note(
        session_id=session_id,
        transcript=path,
        project=request.project,
        cwd=request.project,
        trigger="sweep",
        since=request.now,
        reason="no event of the agent had it saved",
    )
