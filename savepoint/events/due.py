"""Whether an event is the time for a savepoint, and as what it is then made."""

from __future__ import annotations

from savepoint.capture.agents import claude
from savepoint.core import limits
from savepoint.core.named import NamedTuple
from savepoint.store import config
from savepoint.store.session import context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.progress import Progress
    from savepoint.capture.request import Request
    from savepoint.store.config import Config
    from savepoint.store.layout import Store

THRESHOLD = "context_limit_approaching"  # trigger, in the specification's words


class Due(NamedTuple):
    """What is to be done."""

    trigger: str  # of the savepoint; empty: none is to be made
    why: str  # for the log, where none is
    compactions: int | None = None  # that the session had when it reached its threshold


def judge(event: str, store: Store, key: str, request: Request) -> Due:
    """`request` is resolved, and knows its window. Raises MalformedError, DiskError."""
    if event == "PreCompact":
        return Due(request.trigger, "")
    from savepoint.capture import progress

    found = progress.progress(store, key, request, claude)
    if found is None:
        return Due("", "there is no transcript")
    if event == "SessionEnd":
        return Due(request.trigger, "")
    if event == "SessionStart":
        is_missing = found.messages != 0
        return Due(request.trigger if is_missing else "", "no message since the last savepoint")
    chosen = config.load(store)
    if is_reached(found, chosen) and context.is_armed(store, key, found.compactions):
        return Due(THRESHOLD, "", found.compactions)
    is_due = found.grown >= limits.STOP_GROWTH_BYTES or (
        found.grown > 0 and found.age >= limits.STOP_INTERVAL_SECONDS
    )
    return Due(request.trigger if is_due else "", f"not due: {found.grown} bytes are new")


def is_reached(found: Progress, chosen: Config) -> bool:
    """Has the session used so much of what it can until the agent compacts? (The specification's
    85 %, which it takes of the window: there the agent has compacted already.)
    """
    percent = found.tokens.percent
    return chosen.threshold is not None and percent is not None and percent >= chosen.threshold
