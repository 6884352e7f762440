"""Starting a worker from a hook or a command: detached, with no descriptor or lock of ours."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Surroundings


# A shell that starts the worker and ends: the worker is then nobody's child, and a long-lived
# process that saves has no dead ones to bury.
_ORPHANED = ("/bin/sh", "-c", '"$@" &', "sh")


def start(store: Store, around: Surroundings) -> None:
    """Start a worker for the store and do not wait for it. It outlives us and our terminal.

    around: all that it may see of the machine. A failure is left to the next start: nothing that
    the worker does is lost by not doing it now.
    """
    program = (sys.executable, "-I", "-m", "savepoint.cli.worker.process")
    command = [*_ORPHANED, *program, store.home, store.id, around.config_dir]
    silent = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        shell = os.posix_spawn(
            _ORPHANED[0],
            command,
            dict(around.environment),
            file_actions=silent,
            setsid=True,
            setsigmask=[],
        )
        os.waitpid(shell, 0)
    except (OSError, NotImplementedError):
        return
