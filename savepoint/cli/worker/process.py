"""The worker's process, started by a save: `python -I -m` this module `HOME STORE CONFIG_DIR`.

It has no terminal and nobody who reads what it says: the store's logs tell what it did. No command
line is parsed, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from savepoint import gitcmd
from savepoint.capture import surroundings
from savepoint.cli.ledger import anchoring
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.store.layout import Home
from savepoint.work import log, worker
from savepoint.work.jobs import Surroundings

if TYPE_CHECKING:
    from types import FrameType


def main() -> int:
    """Work until nothing is due, or the time is over. 0, or the exit code of what ended it."""
    home, store_id, config_dir = sys.argv[1:4]
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _end)
    store = Home(home).store(store_id)
    around = Surroundings(surroundings.for_children(os.environ), config_dir)
    until = time.monotonic() + limits.WORKER_LIFE_SECONDS
    try:
        worker.run(
            store,
            anchoring.all_kinds(),
            around,
            until=until,
            tell=lambda done: anchoring.told(store, done, around),
        )
    except SavepointError as failure:
        log.ended(store, failure)
        return failure.exit_code
    finally:
        gitcmd.end_all()
    return 0


def _end(number: int, _frame: FrameType | None) -> None:
    """As an exception, so that git is ended, and what is half written removed, on the way out."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
