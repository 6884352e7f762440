"""What is acknowledged was synced before, bytes first, then the name.

ext4 writes all names to the disk with whatever is synced next, so a power cut there cannot tell
whether a folder was synced (test_power_cut); other file systems keep no more than POSIX promises.
So the order of the calls themselves is looked at.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.fault import sweep
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.fault.sweep import Call

_MAKES_A_NAME = {"link", "linkat", "mkdir", "mkdirat", "rename", "renameat", "renameat2"}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NOT_EVIDENCE = ("/sessions/", "/pending/", "/scratch/", "/repo.git/", ".log")  # rebuilt when lost
_MAY_LAG = "/trusted/"  # its name


def names(call: Call) -> list[str]:
    """The paths that a call is given."""
    return _QUOTED.findall(call.text)


def makes_a_name(call: Call) -> bool:
    """Does something have a new name by it?"""
    return call.syscall in _MAKES_A_NAME and call.text.endswith("= 0")


def synced(calls: Sequence[Call], path: str) -> list[int]:
    """When a file or folder was synced; not, if that failed."""
    return [
        n
        for n, call in enumerate(calls)
        if call.syscall in {"fsync", "fdatasync"}
        and f"<{path}>" in call.text
        and "= 0" in call.text
    ]


def unsynced(calls: Sequence[Call], home: str, end: int) -> list[str]:
    """New names below the home that were not durable, or not with their bytes, at call `end`."""
    found = []
    for n, call in enumerate(calls[:end]):
        if not makes_a_name(call):
            continue
        *sources, name = names(call)
        if not name.startswith(home) or any(part in name for part in _NOT_EVIDENCE):
            continue
        bytes_first = not sources or any(when < n for when in synced(calls, sources[0]))
        name_then = any(n < when < end for when in synced(calls, os.path.dirname(name)))
        if not bytes_first or not (name_then or _MAY_LAG in name):
            found.append(call.text)
    return found


def traced(scene: Scene, run: Callable[[list[str]], object]) -> list[Call]:
    """The calls of what `run` runs below the words that it is given."""
    trace = scene.folder / "trace"
    run(sweep.tracing(trace))
    return sweep.calls(trace, scene.home)


def is_append(call: Call) -> bool:
    """Is that the sync of the index, which is the acknowledgement?"""
    return call.syscall == "fsync" and "precompact-savepoint.jsonl>" in call.text


def test_a_save(tmp_path: Path, strace: str) -> None:
    scene = Scene.make(tmp_path / "scene")
    for _ in range(3):
        scene.say(30, size=1000)
        calls = traced(scene, lambda wrap: scene.fire(wrap=wrap))
        (end,) = [n for n, call in enumerate(calls) if is_append(call)]
        assert unsynced(calls, str(scene.home), end) == []
        linked = [names(call)[1] for call in calls if "link" in call.syscall and makes_a_name(call)]
        assert [name.rpartition(".")[2] for name in linked] == ["pack", "json"]
        assert unsynced(calls, str(scene.home), len(calls)) == []
    assert scene.log() == []


def test_init(tmp_path: Path, strace: str) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    calls = traced(scene, lambda wrap: scene.command("init", wrap=wrap))
    assert unsynced(calls, str(scene.home), len(calls)) == []
    made = [os.path.basename(names(call)[-1]) for call in calls if makes_a_name(call)]
    assert made[-2:] == ["config.json", "stores.json"], "what finds the store comes last"
    assert "root.seed" in made
    assert any(map(is_append, calls)), "the birth"


@pytest.mark.parametrize("lost", ["fsync(", "objects/"])
def test_a_sync_that_is_missing_is_found(tmp_path: Path, strace: str, lost: str) -> None:
    scene = Scene.make(tmp_path / "scene")
    scene.say(3)
    calls = traced(scene, lambda wrap: scene.fire(wrap=wrap))
    kept = [call for call in calls if not (call.syscall == "fsync" and lost in call.text)]
    assert unsynced(kept, str(scene.home), len(kept))
