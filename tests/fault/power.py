"""Power cuts at the syscalls of a save: the process dies at one, and with it the machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.fault import sweep
from tests.fault.disks import Ext4
from tests.fault.scene import Scene
from tests.fault.sweep import Case

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fault.sweep import Call


class PowerCut(NamedTuple):
    """A scene whose home lies on a disk of its own, with a store and a savepoint on it."""

    scene: Scene
    disk: Ext4
    kept: Path  # the disk's image, to start from

    @classmethod
    def prepare(cls, folder: Path, options: str) -> Self:
        """Make it below `folder`; options: of the mount."""
        scene = Scene.make(folder / "scene", store=False)
        disk = Ext4(folder / "image", scene.home, options)
        with disk.mounted():
            scene.home.chmod(0o700)
            scene.begin()
            scene.say(20)
            assert scene.fire().is_quiet
            assert scene.log() == []
        scene.say(5)
        kept = folder / "kept"
        subprocess.run(["cp", "--sparse=always", disk.image, kept], check=True)
        return cls(scene, disk, kept)

    def reset(self) -> None:
        """Put the disk back to where it was."""
        subprocess.run(["cp", "--sparse=always", self.kept, self.disk.image], check=True)

    def calls(self) -> list[Call]:
        """The calls that change what is on the disk, of one save."""
        self.reset()
        with self.disk.mounted():
            assert self.scene.fire(wrap=sweep.tracing(self._trace)).is_quiet
        every = sweep.calls(self._trace, self.scene.home)
        return [call for call in every if call.changes(str(self.scene.home))]

    def run(self, call: Call, *, commits: bool) -> list[str]:
        """Die at `call`. commits: another program syncs something at that moment, so that the
        journal gets to the disk without the bytes that were not synced.
        """
        self.reset()
        with self.disk.mounted():
            wrap = sweep.tracing(self._trace, *sweep.injection(Case(call, "KILL")))
            self.scene.fire(wrap=wrap)
            if commits:
                self.disk.commit_journal()
            self.disk.cut_power()
            self.scene.settle()
        with self.disk.mounted():
            problems = self.after_cut()
            self.scene.settle()
        return [f"{call.syscall} {call.number}: {call.text}\n    {one}" for one in problems]

    def after_cut(self) -> list[str]:
        """What is wrong with the store, and with the next save."""
        scene = self.scene
        problems = scene.damage()
        known = len(scene.log())
        fired = scene.fire()
        if not fired.is_quiet or len(scene.log()) > known:
            problems.append(f"the next save says {fired} {scene.log()}")
        elif scene.conversation() != scene.transcript().read_bytes():
            problems.append("the next save has another transcript")
        if not 2 <= len(scene.saves()) <= 3:
            problems.append(f"{len(scene.saves())} savepoints")
        return [*problems, *scene.damage()]

    @property
    def _trace(self) -> Path:
        return self.kept.with_name("trace")
