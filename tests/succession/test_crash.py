"""Killed at each write of a succession: before or after, never between, and fsck finds nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.store.fsck import fsck
from tests.fault import sweep
from tests.fault.scene import Fired, run
from tests.structure.sources import PROJECT
from tests.succession.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

_SEED = 20261130
_CODE = f"""
import os, sys, time
sys.path.insert(0, {str(PROJECT)!r})
from savepoint.capture.request import Request
from succession.dynasty import running
home, project, now = sys.argv[1:]
running.run(Request(home, project, project, home, "", "", "manual", int(now), time.monotonic() + 90,
                    {{"PATH": os.environ["PATH"]}}), None, "manual trigger", dry=False)
"""


class _Succession:
    """A dynasty with something for each file, and a succession to be killed."""

    def __init__(self, folder: Path) -> None:
        self.scene = Scene(folder / "scene")
        self.trace = folder / "trace"
        self._base = folder / "base"
        self.scene.record("A decision", "because\nof this", "src/a.py")
        self.scene.run()
        self.scene.record("Another", "because", "src/a.py")
        self.scene.record("Seen", "", "it goes to the lineage")
        shutil.copytree(self.scene.project.home, self._base)
        self.before = self.scene.files()
        assert self.run().code == 0
        self.after = self.scene.files()

    def run(self, *options: str) -> Fired:
        """Run it in a process of its own, with a fault or none."""
        shutil.rmtree(self.scene.project.home)
        subprocess.run(["cp", "-a", self._base, self.scene.project.home], check=True)
        project = self.scene.project
        told = (str(project.home), str(project.project), str(self.scene.now + 60))
        command = [*sweep.tracing(self.trace, *options), sys.executable, "-c", _CODE, *told]
        return run(command, project.project, project.environment(), b"")

    def calls(self) -> list[sweep.Call]:
        """The calls of it that change the dynasty."""
        self.run()
        every = sweep.calls(self.trace, self.scene.project.home)
        return [one for one in every if one.changes(str(self.scene.folder))]

    def problems(self, case: sweep.Case) -> list[str]:
        """What is wrong after a fault: at once, and after somebody has looked at it."""
        fired = self.run(*sweep.injection(case))
        if case.fault != "KILL" and "Traceback" in fired.err and "DiskError" not in fired.err:
            return [f"{case}: {fired.err}"]
        found = []
        damage = fsck.fsck(self.scene.store, time.time())
        found += [f"{case}: {one.detail}" for one in damage.items if one.exit_code]
        assert self.scene.state.meta.current in (2, 3)
        files = {one: data for one, data in self.scene.files().items() if ".tmp-" not in one}
        if files not in (self.before, self.after):
            found.append(f"{case}: between: {_difference(files, self.before, self.after)}")
        if fired.code == 0 and files != self.after:
            found.append(f"{case}: done, and nothing changed")
        unknown = [one.detail for one in damage.items if "does not belong" in one.detail]
        return [*found, *(f"{case}: {one}" for one in unknown)]


def _difference(*files: dict[str, bytes]) -> list[str]:
    return sorted(name for name in files[0] if len({one.get(name) for one in files}) == 3)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fault", "share"), [("KILL", 1), ("EIO", 3), ("ENOSPC", 3)])
def test_a_fault_at_each_write(tmp_path: Path, strace: str, fault: str, share: int) -> None:
    """Killed at every one; of the errors, which are made one by one in test_keep.py, a third."""
    succession = _Succession(tmp_path)
    calls = succession.calls()
    assert len(calls) > 40
    assert {"write", "fsync", "rename"} <= {one.syscall for one in calls}
    cases = sweep.chosen([sweep.Case(call, fault) for call in calls], share, _SEED)
    problems = [one for case in cases for one in succession.problems(case)]
    assert problems == []
