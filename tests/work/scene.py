"""A project whose savepoints are pushed by real worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from savepoint.capture import surroundings
from savepoint.gitlayer import cursor
from savepoint.gitlayer.remote import pushed
from savepoint.store import config
from savepoint.work import outbox, worker
from savepoint.work.jobs import Surroundings
from savepoint.work.kinds import for_git
from tests.gitlayer.remotes import Bare
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.jobs import Job, Kind
    from savepoint.work.worker import Done
    from tests.cli.scene import Scene

SECONDS = 30
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(PROJECT)!r}); "
    "from savepoint.cli.worker.process import main; sys.exit(main())"
)


def around() -> Surroundings:
    """What a hook would give the worker."""
    return Surroundings(surroundings.for_children(os.environ), surroundings.config_dir(os.environ))


def command(store: Store) -> list[str]:
    """The worker's process, of this checkout."""
    return [sys.executable, "-I", "-c", PROGRAM, store.home, store.id, around().config_dir]


def start(store: Store, *before: str) -> subprocess.Popen[bytes]:
    """Begin a worker, as `work.start` does; `before`: what runs it."""
    return subprocess.Popen(
        [*before, *command(store)],
        env=around().environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run(store: Store, *before: str) -> subprocess.CompletedProcess[bytes]:
    """A worker until it ends by itself."""
    return subprocess.run(
        [*before, *command(store)],
        env=around().environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )


def owed(store: Store, kinds: Sequence[Kind] | None = None) -> list[Job]:
    """All jobs."""
    found = for_git() if kinds is None else kinds
    return [job for kind in found for job in kind.owed(store, around())]


def work_once(store: Store, kinds: Sequence[Kind] | None = None) -> list[Done]:
    """Do in this process what is owed."""
    until = time.monotonic() + SECONDS
    found = for_git() if kinds is None else kinds
    return worker.try_now(store, found, around(), until=until, tell=lambda _: None)


def failures(store: Store, *jobs: Job) -> list[str]:
    """Error names of the last attempts."""
    return [one.name for one in outbox.attempts(store, list(jobs)) if one is not None]


class Working(NamedTuple):
    """A project, its store and its remote."""

    scene: Scene
    bare: Bare

    @classmethod
    def new(cls, scene: Scene, remote: Path) -> Working:
        scene.good("init", "--instance", "Gabriel #215")
        scene.say("hello", "world")
        one = cls(scene, Bare.new(remote))
        config.load(one.store)._replace(remote=str(remote)).save(one.store)
        return one

    @property
    def paths(self) -> InstancePaths:
        return self.scene.paths

    @property
    def store(self) -> Store:
        return self.paths.store

    def is_pushed(self) -> bool:
        """Has the remote all that is committed, and does the store know it?"""
        repo = around().repository(self.store)
        at, sent = cursor.read(repo, self.paths.slug), pushed.read(repo, self.paths.slug)
        return at is not None and at == sent and self.bare.tip(self.paths.slug) == at.commit

    def check_pushed(self, seq: int) -> None:
        """Up to the savepoint of that sequence."""
        assert self.is_pushed()
        at = cursor.read(around().repository(self.store), self.paths.slug)
        assert at is not None
        assert at.seq == seq


def created(work: Working) -> int:
    """A savepoint more; its sequence."""
    work.scene.say(f"more {time.monotonic_ns()}")
    seq = work.scene.created()["seq"]
    assert isinstance(seq, int)
    return seq
