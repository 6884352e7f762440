"""The dynasty: what was learned, carried through all later sessions within a small budget.

    SessionStart   at_start   the briefing
    Stop           at_stop    references and sessions are counted; is a succession due?
                   note       observations from the savepoint that this Stop made
                   run        the eight steps (steps.py), written as one (journal.py)

Each finds the store by the request, and does nothing in a project that remembers nothing. Nothing
is imported before it is needed: PreCompact needs none of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from succession.dynasty.running import Ran
    from succession.dynasty.session.observe import Covering
    from succession.dynasty.session.stop import Turn


def at_start(request: Request, source: str, *, resurrected: bool = False) -> str:
    """What a session is told as it starts; empty where nothing is remembered.

    source: of SessionStart's payload; a compaction, resume, clear or fork is no session of its own,
    unless it is a resurrected one. Raises NoStoreError, UnverifiableError (which branch?),
    MalformedError (dynasty.json), BusyError, DiskError.
    """
    from succession.dynasty.session import start

    return start.at_start(request, source, resurrected=resurrected)


def at_stop(request: Request) -> Turn:
    """Count what the turn touched. Where `due` of the result is not empty a succession is to run
    now, with that reason, once a savepoint covers what there is. Raises as `at_start`.
    """
    from succession.dynasty.session import stop

    return stop.at_stop(request)


def note(request: Request, covering: Covering) -> None:
    """Observations from the savepoint that this Stop made. Raises as `at_start`."""
    from succession.dynasty import running

    running.note(request, covering)


def run(request: Request, covering: Covering | None, reason: str, *, dry: bool = False) -> Ran:
    """Run a succession. covering: a savepoint that holds the state before it; None: there is none.
    dry: nothing is written. Raises as `at_start`.
    """
    from succession.dynasty import running

    return running.run(request, covering, reason, dry=dry)
