"""A store that was put back from an older copy goes on, says so, and has one way out.

borgbackup/borg#4908: the alarm locked out honest users, and no documented command let them in.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.fault.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


def test_it_saves_on_and_one_command_accepts_the_loss(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene")
    folder = scene.home / "stores" / scene.store.id
    older = scene.folder / "older"
    for number in range(5):
        if number == 3:
            subprocess.run(["cp", "-a", folder, older], check=True)
        scene.say(2)
        assert scene.fire().is_quiet
    assert [one.seq for one in scene.saves()] == [2, 3, 4, 5, 6]
    shutil.rmtree(folder)
    older.rename(folder)
    said = scene.say(2)
    assert scene.fire().is_quiet
    assert scene.create().code == 1, "saved, but not committed: its repository lacks records"
    assert [one.seq for one in scene.saves()] == [2, 3, 4, 7, 8], "no number is used twice"
    assert scene.conversation() == said
    rolled_back = scene.command("verify", "--all")
    assert rolled_back.code == 22
    hint = re.search(r"`savepoint (fsck --repair)`", rolled_back.err + rolled_back.out.decode())
    assert hint is not None, rolled_back
    repaired = scene.command(*hint[1].split())
    assert repaired.code in {0, 3}, repaired
    assert scene.command("verify", "--all").code in {0, 3}
    assert scene.fire().is_quiet
    assert scene.command("verify", "--all").code in {0, 3}
    assert scene.log() == []
