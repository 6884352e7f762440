"""A power cut right after the acknowledgement loses nothing; one before it leaves a whole store.

An ext4 is shut down without its journal being written (EXT4_IOC_SHUTDOWN), unmounted and mounted
again: what was not synced is gone, as after a power cut. `noauto_da_alloc` takes away what ext4
does for programs that forget to sync before a rename.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.fault.disks import Ext4
from tests.fault.power import PowerCut
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

TIMES = 20
SEED = 20261130
POINTS = 16  # of some 60 a mode of mounting; `scripts/sweep` takes all

pytestmark = pytest.mark.usefixtures("loop_mount")
both_options = pytest.mark.parametrize("options", ["auto_da_alloc", "noauto_da_alloc"])


@both_options
def test_what_was_acknowledged_survives_twenty_times(tmp_path: Path, options: str) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    disk = Ext4(tmp_path / "image", scene.home, options)
    with disk.mounted():
        scene.home.chmod(0o700)
        scene.begin()
        disk.cut_power()  # what `init` made is acknowledged as well
    for round_ in range(1, TIMES + 1):
        with disk.mounted():
            said = scene.say(10, size=round_ * 100)
            fired = scene.fire()
            disk.cut_power()
        with disk.mounted():
            assert fired.is_quiet
            assert len(scene.saves()) == round_
            assert scene.conversation() == said
            assert scene.damage() == []
            assert scene.log() == []


@both_options
@pytest.mark.parametrize("commits", [False, True])
def test_a_cut_before_the_acknowledgement_leaves_a_whole_store(
    tmp_path: Path, strace: str, options: str, commits: bool
) -> None:
    cut = PowerCut.prepare(tmp_path, options)
    points = random.Random(f"{SEED} {options} {commits}").sample(cut.calls(), POINTS)
    problems = [problem for call in points for problem in cut.run(call, commits=commits)]
    assert problems == []
