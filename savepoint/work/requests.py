"""What the worker asks to be saved, where no fire of the agent does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.capture.request import Request
from savepoint.core.errors import NoStoreError
from savepoint.store import config

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from savepoint.work.jobs import Surroundings


def of_worker(store: Store, around: Surroundings, deadline: float) -> Request:
    """A request in the store's first folder, of no session yet. Raises NoStoreError (the store has
    no folder), MalformedError, DiskError.
    """
    projects = config.load(store).projects
    if not projects:
        raise NoStoreError(f"store {store.id} belongs to no folder")
    return Request(
        home=store.home,
        project=projects[0].path,
        cwd=projects[0].path,
        config_dir=around.config_dir,
        session_id="",
        transcript="",
        trigger="sweep",
        now=int(time.time()),
        deadline=deadline,
        environment=around.environment,
    )
