"""Starting a worker from a hook or a command: detached, with no descriptor or lock of ours."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.store.layout import Store


def start(store: Store, environment: Mapping[str, str]) -> None:
    """Start a worker for the store and do not wait for it. It outlives us and our terminal.

    environment: all that it may see, allow-listed. A failure is left to the next start: nothing
    that the worker does is lost by not doing it now.
    """
    command = [sys.executable, "-I", "-m", "savepoint.cli.work", store.home, store.id]
    silent = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        os.posix_spawn(
            sys.executable,
            command,
            dict(environment),
            file_actions=silent,
            setsid=True,
            setsigmask=[],
        )
    except (OSError, NotImplementedError):
        return
