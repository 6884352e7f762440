"""Long histories in short time: the real code of a save, with nothing waited for on the disk."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING
from unittest import mock

from savepoint.capture.git import repository as project
from savepoint.capture.request import Request
from savepoint.gitlayer import repository
from savepoint.save import save_consciousness_state
from savepoint.store import durable
from savepoint.work.jobs import Surroundings
from savepoint.work.kinds.repack import Repack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.world import Home, Transcript, World
    from savepoint.store.layout import Store

_SECONDS = 3600.0


def grow(world: World, home: Home, of: Transcript, saves: int, step: int, *, commits: bool) -> None:
    """So many savepoints of a session that grows by `step` bytes before each, with the commits of
    our own repository, joined as the worker does, or without: then no git is found.

    Git is not asked about the project, so that it is not waited for.
    """
    path = os.environ["PATH"] if commits else ""
    request = _request(world, home, of, {"PATH": path, "HOME": world.folder})
    with _unsynced():
        for _ in range(saves):
            of.grow(step)
            saved = save_consciousness_state(request._replace(now=int(time.time())))
            if saved is not None and commits:
                _repack(saved.paths.store, Surroundings(request.environment, request.config_dir))


def _repack(store: Store, around: Surroundings) -> None:
    repack = Repack()
    for job in repack.owed(store, around):
        repack.do(store, job, around, time.monotonic() + _SECONDS)


def _request(world: World, home: Home, of: Transcript, environment: dict[str, str]) -> Request:
    return Request(
        home=home.path,
        project=world.project,
        cwd=world.project,
        config_dir=world.config_dir,
        session_id=of.session.id,
        transcript=of.path,
        trigger="manual",
        now=0,
        deadline=time.monotonic() + _SECONDS,
        environment=environment,
    )


@contextlib.contextmanager
def _unsynced() -> Iterator[None]:
    options = tuple(one.replace("core.fsync=all", "core.fsync=none") for one in repository.OPTIONS)
    with (
        mock.patch.object(durable, "_sync", return_value=None),
        mock.patch.object(repository, "OPTIONS", options),
        mock.patch.object(project, "current_worktree", return_value=None),
    ):
        yield
