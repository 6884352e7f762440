"""Long histories in short time: the real code of a save, with nothing waited for on the disk."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from savepoint.capture.request import Request
from savepoint.save import save_consciousness_state
from savepoint.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.world import Home, Transcript, World


def grow(world: World, home: Home, of: Transcript, saves: int, step: int) -> None:
    """So many savepoints of a session that grows by `step` bytes before each.

    No git is found, so that none is waited for: the state of the project is then `unknown`.
    """
    with _unsynced():
        for _ in range(saves):
            of.grow(step)
            save_consciousness_state(_request(world, home, of))


def _request(world: World, home: Home, of: Transcript) -> Request:
    return Request(
        home=home.path,
        project=world.project,
        cwd=world.project,
        config_dir=world.config_dir,
        session_id=of.session.id,
        transcript=of.path,
        trigger="manual",
        now=int(time.time()),
        deadline=time.monotonic() + 3600,
        environment={"PATH": ""},
    )


@contextlib.contextmanager
def _unsynced() -> Iterator[None]:
    real = durable._sync  # noqa: SLF001  # the one place through which all syncing goes
    durable._sync = lambda fd: None  # noqa: SLF001, ARG005
    try:
        yield
    finally:
        durable._sync = real  # noqa: SLF001
