"""What a fire of the hook, or a person, asks to be saved."""

from __future__ import annotations

from savepoint.capture.agents import Window
from savepoint.capture.stillness import AT_ONCE, Stillness
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Request(NamedTuple):
    """One save. Times: `now` in Unix seconds, `deadline` as of time.monotonic()."""

    home: str  # $SAVEPOINT_HOME
    project: str  # the folder that the store is found by
    cwd: str  # whose git state is taken, if it is of the same repository
    config_dir: str  # the agent's own folder (~/.claude)
    session_id: str  # empty: the transcript tells
    transcript: str  # empty: looked for by session id, or, for a person, the newest of the project
    trigger: str
    now: int
    deadline: float
    environment: Mapping[str, str]  # what git may see of it, allow-listed
    scope: str = "main"  # main | subagent | unknown
    still: Stillness = AT_ONCE
    window: Window = Window()
    utilization: int | None = None  # percent of the context, as the caller tells it
    notes: tuple[str, ...] = ()  # what the caller wants said in the snapshot
    even_if_unchanged: bool = False  # a person asked: there is always a savepoint
