"""What a session is told of what was learned before it, and what its turns add to that.

Only where something is remembered, and late: a project without a dynasty pays one look for it. A
session that starts only reads, and imports nothing of what saves.
"""

from __future__ import annotations

from savepoint.core import record, spelling
from savepoint.core.errors import SavepointError
from savepoint.store import registry
from savepoint.store.layout import Home, session_key
from savepoint.store.lines import line_at
from savepoint.store.session import sessions
from succession import dynasty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from savepoint.save import Saved
    from savepoint.store.layout import Store
    from succession.dynasty.session.observe import Covering


def briefing(request: Request, source: str) -> str:
    """For the context of a session that starts. What cannot be read takes nothing else away."""
    try:
        return dynasty.at_start(request, source, resurrected=_is_brought_back(request))
    except SavepointError as failure:
        return f"What was learned before cannot be read: {failure.message}"


def _is_brought_back(request: Request) -> bool:
    """Does the session go on from another instance's savepoint, with none in between? The client
    calls its start a resumption, but to the dynasty it is a session. Raises SavepointError.
    """
    store = registry.find(Home(request.home), request.project)
    last = sessions.load(store, session_key(request.session_id))
    if last is None:
        return False
    one = record.parse(line_at(store.instance(last.instance), last.offset))
    origin = one.body.get("from")
    return isinstance(origin, dict) and spelling.key_bytes(str(origin["signer"])) != one.signer


def after_turn(store: Store, request: Request, saved: Saved | None) -> None:
    """Count what the turn touched, draw observations from the savepoint that it made, and run the
    succession that is due, covered by a savepoint. What does not fit into the hook's time is done
    by a later turn. Raises SavepointError.
    """
    turn = dynasty.at_stop(request)
    if turn.due:
        dynasty.run(request, _covering(store, request, saved), turn.due)
    elif saved is not None:
        from succession.dynasty.session.observe import Covering

        dynasty.note(request, Covering.of(saved.paths, saved.record))


def _covering(store: Store, request: Request, saved: Saved | None) -> Covering | None:
    """A savepoint that holds what there is: this turn's, one made now, or the newest where nothing
    is new since.
    """
    from savepoint import save
    from savepoint.work import follow
    from succession.dynasty.session.observe import Covering

    if saved is None:
        saved = save.save_consciousness_state(request._replace(trigger="succession"))
        if saved is not None:
            follow.behind(saved, request)
    if saved is not None:
        return Covering.of(saved.paths, saved.record)
    last = sessions.load(store, session_key(request.session_id))
    if last is None:
        return None
    paths = store.instance(last.instance)
    return Covering.of(paths, record.parse(line_at(paths, last.offset)))
