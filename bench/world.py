"""A made-up user: a home, a project, sessions, and the commands that are run for them."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from bench import material
from bench.measure import Command
from savepoint.core.spelling import Instance
from savepoint.store import begin, birth, config, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.store.layout import Store

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, ".venv", "bin")
PYTHON = os.path.join(BIN, "python")
_POLL_SECONDS = 0.01
_LOGS = ("hook.log", "precompact-status.jsonl", "consciousness_continuity.log")


class World:
    """One folder with all of it. A *home* is a $SAVEPOINT_HOME with one store of the project."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.project = os.path.join(folder, "project")
        self.config_dir = os.path.join(folder, "agent")
        os.mkdir(self.project)
        self.paths = material.make_project(self.project)
        self._homes = 0
        self._sessions = 0

    def new_home(self, *, anchors: bool = False) -> Home:
        """A home with a store in which nothing is saved yet. anchors: on the embedded ledger, as
        each store does whose owner did not turn it off.
        """
        home = self.no_home()
        instance = Instance.parse(begin.DEFAULT_INSTANCE)
        store = birth.create_store(layout.Home(home.path), self.project, instance, int(time.time()))
        if not anchors:
            config.load(store)._replace(ledger=None).save(store)
        return home

    def no_home(self) -> Home:
        """Where one could be."""
        self._homes += 1
        return Home(self, os.path.join(self.folder, f"home-{self._homes}"))

    def clear(self) -> None:
        """Without homes and sessions: the next case finds what it would find alone."""
        for path in (*glob.glob(os.path.join(self.folder, "home-*")), self.config_dir):
            shutil.rmtree(path, ignore_errors=True)
        self._homes = self._sessions = 0

    def new_session(self, size: int) -> Transcript:
        """A session whose transcript has at least `size` bytes."""
        self._sessions += 1
        one = Transcript(self, material.Session(self.project, self.paths, self._sessions))
        one.grow(size)
        return one

    def instead(self, of: Transcript) -> dict[str, Command]:
        """What a user would pick instead: a copy of the transcript, committed; restic, if it is
        installed. Each is ready, and has saved nothing yet.
        """
        copies, env = os.path.join(self.folder, "copies"), self.environment()
        subprocess.run(["git", "init", "-q", copies], check=True)
        identity = "-c user.name=Bench -c user.email=bench@example.invalid"
        script = f'cp "$1" . && git add -A && git {identity} commit -qm save'
        found = {"`cp`, `git add`, `git commit`": Command(_shell(script, of.path), env, copies)}
        if shutil.which("restic"):
            env |= {"RESTIC_PASSWORD": "bench", "RESTIC_REPOSITORY": f"{self.folder}/restic"}
            subprocess.run(["restic", "init", "-q"], env=env, check=True)
            args = ("restic", "backup", "-q", of.path)
            found["`restic backup`"] = Command(args, env, self.folder)
        return found

    def environment(self, home: str = "") -> dict[str, str]:
        """What a hook gets of it."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": self.folder,
            "CLAUDE_CONFIG_DIR": self.config_dir,
            "SAVEPOINT_HOME": home,
        }

    def python(self, *args: str) -> Command:
        """The bare interpreter of the environment that the hook is run in."""
        return Command((PYTHON, "-I", *args), self.environment(), self.project)


class Transcript:
    """A session's file, where the agent keeps it."""

    def __init__(self, world: World, session: material.Session) -> None:
        folder = world.project.replace("/", "-")
        self.session = session
        self.path = os.path.join(world.config_dir, "projects", folder, f"{session.id}.jsonl")

    def grow(self, size: int) -> bytes | int:
        """The agent goes on for at least `size` bytes; returns how many it wrote."""
        return self.session.grow(self.path, size)


class Home:
    """Commands for one store, and what they leave on the disk."""

    def __init__(self, world: World, path: str) -> None:
        self.path = path
        self._world = world

    def hook(self, of: Transcript, trigger: str = "manual") -> Command:
        """The hook as the agent runs it before a compaction."""
        return self.fire("PreCompact", of, trigger=trigger)

    def fire(self, event: str, of: Transcript, **fields: object) -> Command:
        """The hook as the agent runs it at an event, with the event's own fields in the payload."""
        payload = {
            "session_id": of.session.id,
            "transcript_path": of.path,
            "cwd": self._world.project,
            "hook_event_name": event,
            **fields,
        }
        args = (PYTHON, "-I", os.path.join(BIN, "savepoint-hook"), event)
        env = self._world.environment(self.path)
        return Command(args, env, self._world.project, json.dumps(payload).encode())

    def savepoint(self, *args: str, code: int | None = 0) -> Command:
        """The command line as a person runs it, that must end with this exit code."""
        args = (PYTHON, "-I", os.path.join(BIN, "savepoint"), *args)
        return Command(args, self._world.environment(self.path), self._world.project, code=code)

    def saves(self) -> int:
        """Savepoints in its store."""
        count = 0
        for path in self.files():
            if path.endswith("/precompact-savepoint.jsonl"):
                with open(path, "rb") as file:
                    count += file.read().count(b'"kind":"save"')
        return count

    def timed(self, command: Command, *, new: int = 1) -> float:
        """Seconds that a command takes. Stops everything unless it made `new` savepoints: a hook
        that fails is fast, and exits 0.
        """
        before = self.saves()
        seconds = command.seconds()
        made = self.saves() - before
        if made != new:
            raise SystemExit(f"bench: error: {made} savepoints where {new} belong: {command.args}")
        return seconds

    @property
    def store(self) -> Store:
        """The only one."""
        (path,) = glob.glob(os.path.join(self.path, "stores", "*", ""))
        return layout.Home(self.path).store(os.path.basename(os.path.dirname(path)))

    def rest(self) -> None:
        """Wait until the worker that a save has started, which works beside it, is done."""
        while any(self.path.encode() in one for one in _command_lines()):
            time.sleep(_POLL_SECONDS)

    def files(self) -> dict[str, int]:
        """Every file of its store with its size, without logs."""
        return dict(self._files())

    def _files(self) -> Iterator[tuple[str, int]]:
        for folder, _, names in os.walk(os.path.join(self.path, "stores")):
            for name in names:
                if name not in _LOGS:
                    path = os.path.join(folder, name)
                    yield path, os.stat(path).st_size


def _shell(script: str, *args: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script, "sh", *args)


def settle(seconds: float, *homes: Home) -> None:
    """Let what was prepared reach the disk, workers end, and transcripts come to rest."""
    for home in homes:
        home.rest()
    os.sync()
    time.sleep(seconds)


def _command_lines() -> Iterator[bytes]:
    """Of all processes but this."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if int(pid) != os.getpid():
                    yield file.read()
        except OSError:
            continue
