"""The syscall sweep: one fault at one file syscall of a save, and what the store looks like after.

A save is traced once; then it is run again from the same store for each syscall and fault, under
strace, which lets the n-th call of that name fail or kills the process there. After
`models/tessera_fault_test.go`, which does the same with an append to a log.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Self

import savepoint
from savepoint.core.errors import SavepointError
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.fault.scene import Fired

FAULTS = {
    "KILL": "signal=KILL",
    "EIO": "error=EIO",
    "ENOSPC": "error=ENOSPC",
    "SHORT": "retval=3",  # says that three bytes were written; none was: only the length tells
}
_WRITES = {"write", "pwrite64", "writev"}
_CHANGES = {"fdatasync", "fsync", "ftruncate", "link", "linkat", "mkdir", "mkdirat", "rename"}
_CHANGES |= {"renameat", "renameat2", "rmdir", "symlink", "symlinkat", "unlink", "unlinkat"}
_CHANGES |= {"utimensat", *_WRITES}
_LOOKS = {"access", "close", "flock", "getdents64", "ioctl", "lseek", "newfstatat", "openat"}
_LOOKS |= {"pread64", "read", "readlink", "statx"}
SYSCALLS = ",".join(f"?{name}" for name in sorted(_CHANGES | _LOOKS))  # ?: unknown elsewhere
_CODE = (sys.prefix, sys.base_prefix, os.path.dirname(savepoint.__file__))
_LINE = re.compile(r"(\w+)\(")


class Call(NamedTuple):
    """One syscall of a save: the n-th of its name in the process, counted from 1."""

    syscall: str
    number: int
    text: str  # its line in the trace

    @property
    def imports(self) -> bool:
        """Is it the interpreter that looks for a module, or reads one?"""
        return any(folder in self.text for folder in _CODE)

    def changes(self, folder: str) -> bool:
        """Does it change what is on disk below `folder`?"""
        creates = self.syscall == "openat" and "O_CREAT" in self.text
        changing = creates or self.syscall in _CHANGES
        return changing and folder in self.text


class Case(NamedTuple):
    """One fault at one syscall."""

    call: Call
    fault: str

    def __str__(self) -> str:
        return f"{self.fault} at {self.call.syscall} {self.call.number}: {self.call.text}"


class Sweep(NamedTuple):
    """A store with a savepoint, and a session that has gone on since; kept to start from."""

    scene: Scene
    base: Path  # a copy of what a save changes
    trace: Path
    command: str  # hook | create

    @classmethod
    def prepare(cls, folder: Path, command: str = "hook") -> Self:
        """Make it below `folder`."""
        scene = Scene.make(folder / "scene")
        scene.say(20)
        assert scene.fire().is_quiet
        assert scene.log() == []
        scene.say(5)
        base = folder / "base"
        shutil.copytree(scene.home, base / "home")
        shutil.copytree(scene.user, base / "user")
        return cls(scene, base, folder / "trace", command)

    def reset(self) -> None:
        """Put everything back to where it was."""
        self.scene.settle()
        for name in ("home", "user"):
            shutil.rmtree(self.scene.folder / name)
            subprocess.run(["cp", "-a", self.base / name, self.scene.folder / name], check=True)

    def calls(self) -> list[Call]:
        """The file syscalls of the save, from the first that names the store on."""
        self.reset()
        self._save()
        return calls(self.trace, self.scene.home)

    def _save(self, *options: str) -> Fired:
        wrap = tracing(self.trace, *options)
        scene = self.scene
        return scene.fire(wrap=wrap) if self.command == "hook" else scene.create(wrap=wrap)

    def run(self, case: Case) -> Outcome:
        """The fault, and everything that has to hold after it."""
        self.reset()
        scene = self.scene
        before = len(scene.saves())
        fired = self._save(*injection(case))
        told = self.trace.read_text(errors="replace")
        reached = _was_reached(self.trace)
        problems = [*self._after_fault(case, fired, before), *self._after_next(before)]
        problems += [f"synced again after a failure: {line}" for line in _synced_again(told)]
        return Outcome(case, reached, [f"{case}\n    {problem}" for problem in problems])

    def _after_fault(self, case: Case, fired: Fired, before: int) -> Iterable[str]:
        """What must hold as soon as the process has gone, and what it started."""
        scene = self.scene
        scene.settle()
        yield from scene.damage()
        acknowledged = fired.code in {0, 1}  # 1 of `create`: saved, but not committed
        if self.command == "hook":
            allowed = {0, -9, 137} if case.fault == "KILL" else {0}
            if fired.code not in allowed or fired.out:
                yield f"exit code {fired.code}, stdout {fired.out!r}, stderr {fired.err!r}"
            acknowledged = fired.code == 0 and not scene.log() and not fired.err
        elif case.fault != "KILL" and fired.code not in {0, 1, 40}:
            yield f"exit code {fired.code}: {fired.err}"
        if "Traceback" in fired.err and not case.call.imports:  # hashlib itself logs one
            yield fired.err
        if case.call.changes(str(scene.home)):  # what is ours to do is ours to put into words
            told = [fired.err, *(str(line["reason"]) for line in scene.log())]
            yield from (one for one in told if "internal error" in one)
        if acknowledged and len(scene.saves()) == before:
            yield "acknowledged, and there is no savepoint"
        if len(scene.saves()) > before and scene.saves()[-1].body["consciousness_preserved"]:
            yield from self._unsaved()

    def _after_next(self, before: int) -> Iterable[str]:
        """The next save works unaided, on what is there and on what comes then."""
        scene = self.scene
        lines = len(scene.log())
        for more in (0, 1):
            if more:
                scene.say(more)
            fired = scene.fire()
            scene.settle()
            if not fired.is_quiet or len(scene.log()) > lines:
                yield f"the next save says {fired} {scene.log()}"
            yield from self._unsaved()
            yield from scene.damage()
        if scene.pending():
            yield f"pending: {scene.pending()}"
        if not before + 2 <= len(scene.saves()) <= before + 3:
            yield f"{len(scene.saves())} savepoints"

    def _unsaved(self) -> Iterable[str]:
        """Is the newest savepoint anything but the whole transcript?"""
        try:
            if self.scene.conversation() != self.scene.transcript().read_bytes():
                yield "the newest savepoint has another transcript"
        except SavepointError as failure:
            yield f"the newest savepoint cannot be read: {failure}"


def tracing(trace: Path, *options: str) -> list[str]:
    """What a command is run below to have its file syscalls listed in `trace`."""
    return ["strace", "-o", str(trace), "-qq", "-y", "-e", f"trace={SYSCALLS}", *options]


def injection(case: Case) -> tuple[str, str]:
    """The options of strace that make a fault."""
    return "-e", f"inject={case.call.syscall}:{FAULTS[case.fault]}:when={case.call.number}"


def calls(trace: Path, home: Path) -> list[Call]:
    """What was traced, from the first call that names the home on."""
    seen: Counter[str] = Counter()
    found: list[Call] = []
    for line in trace.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match:
            seen[match[1]] += 1
            if found or str(home) in line:
                found.append(Call(match[1], seen[match[1]], line))
    return found


def _was_reached(trace: Path) -> bool:
    told = trace.read_text(errors="replace")
    return "killed by SIGKILL" in told or "(INJECTED)" in told


def _synced_again(told: str) -> list[str]:
    """Syncs of a file whose sync failed before: the kernel may call its lost pages clean by then
    (fsyncgate), so such a success means nothing.
    """
    lines = [line for line in told.splitlines() if line.startswith(("fsync(", "fdatasync("))]
    failed = next((n for n, line in enumerate(lines) if "(INJECTED)" in line), len(lines))
    return [line for line in lines[failed + 1 :] if _file_of(line) == _file_of(lines[failed])]


def _file_of(line: str) -> str:
    return line.partition("<")[2].partition(">")[0]


class Birth(NamedTuple):
    """A project without a store, and `init` in it."""

    scene: Scene
    trace: Path

    @classmethod
    def prepare(cls, folder: Path) -> Self:
        """Make it below `folder`."""
        scene = Scene.make(folder / "scene", store=False)
        scene.say(3)
        return cls(scene, folder / "trace")

    def calls(self) -> list[Call]:
        """The calls of `init` that change something."""
        self._init()
        home = str(self.scene.home)
        return [call for call in calls(self.trace, self.scene.home) if call.changes(home)]

    def _init(self, *options: str) -> Fired:
        self.scene.settle()
        shutil.rmtree(self.scene.home)
        self.scene.home.mkdir(mode=0o700)
        return self.scene.command("init", wrap=tracing(self.trace, *options))

    def run(self, case: Case) -> Outcome:
        """The fault, another `init` without one, and a save."""
        first = self._init(*injection(case))
        reached = _was_reached(self.trace)
        problems = list(self._after(case, first))
        return Outcome(case, reached, [f"{case}\n    {problem}" for problem in problems])

    def _after(self, case: Case, first: Fired) -> Iterable[str]:
        scene = self.scene
        if "Traceback" in first.err or (case.fault != "KILL" and first.code not in {0, 40}):
            yield f"{first}"
        if first.code == 0 and self._stores() != 1:
            yield "acknowledged, and there is no store"
        second = scene.command("init")
        if second.code or self._stores() != 1:
            yield f"{self._stores()} stores after {second}"
            return
        fired = scene.fire()
        if not fired.is_quiet or scene.log() or len(scene.saves()) != 1:
            yield f"the first save says {fired} {scene.log()}"
        yield from scene.damage()

    def _stores(self) -> int:
        return len(list(self.scene.home.glob("stores/*/config.json")))


class Outcome(NamedTuple):
    """What one case gave."""

    case: Case
    reached: bool
    problems: list[str]


def cases(calls: Iterable[Call]) -> list[Case]:
    """Every fault at every call that can have it. At an import it is an error alone: no disk is
    full for those who read, and to be killed there is to be killed at the next call of ours.
    """
    found = []
    for call in calls:
        faults = ("EIO",) if call.imports else ("KILL", "EIO", "ENOSPC")
        found += [Case(call, fault) for fault in faults]
        found += [Case(call, "SHORT")] if call.syscall in _WRITES else []
    return found


def chosen(every: Sequence[Case], share: int, seed: int) -> list[Case]:
    """One in `share`, the same ones each time for the same calls."""
    return random.Random(seed).sample(every, len(every) // share)
