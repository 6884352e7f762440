"""How long a save waits for a transcript whose writer may not be done."""

from __future__ import annotations

import time

from savepoint.core import limits
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


class Stillness(NamedTuple):
    """How long a writer that flushes late is waited for (claude-code#15812: 100 ms behind)."""

    watched_since: float | None  # time.monotonic(); None: the file's own mtime decides
    give_up: float  # time.monotonic() after which what is there is taken

    def pause(self, seen: os.stat_result) -> float:
        """Seconds to sleep before the size is looked at again; 0 if it counts as still."""
        now = time.monotonic()
        if self.watched_since is not None:
            quiet = now - self.watched_since
        else:
            quiet = time.time() - seen.st_mtime
        if quiet < 0:  # a file of the future: its clock says nothing
            return 0.0
        return max(0.0, min(limits.STILL_SECONDS - quiet, self.give_up - now))


AT_ONCE = Stillness(None, 0.0)
