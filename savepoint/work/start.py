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
    shell = _spawn((*_ORPHANED, *_worker(store, around)), around)
    if shell is not None:
        os.waitpid(shell, 0)


def leave_behind(store: Store, around: Surroundings) -> None:
    """As `start`, by a process that is about to end, as a hook is: the worker is nobody's child as
    soon as it does, and no shell has to be waited for.
    """
    _spawn(_worker(store, around), around)


def _worker(store: Store, around: Surroundings) -> tuple[str, ...]:
    program = (sys.executable, "-I", "-m", "savepoint.cli.worker.process")
    return (*program, store.home, store.id, around.config_dir)


def _spawn(command: tuple[str, ...], around: Surroundings) -> int | None:
    silent = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        return os.posix_spawn(
            command[0],
            command,
            dict(around.environment),
            file_actions=silent,
            setsid=True,
            setsigmask=[],
        )
    except (OSError, NotImplementedError):
        return None
