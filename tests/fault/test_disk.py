"""Disks that are full, read-only or refuse: `create` says 40, the hook says one line and exits with
0; nothing is half written, nothing lands in the project, and when there is room again it goes on.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.capture.gitrepo import fingerprint
from tests.fault.disks import Ext4, mounted, read_only
from tests.fault.scene import HOOK, Scene, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAGE = 4096  # bytes: what a tmpfs gives at once
PAGES = 512  # of the tmpfs
NEED = 48  # pages: more than the save of these tests takes
BALLAST = "ballast"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store with a savepoint, and a session that has gone on."""
    scene = Scene.make(tmp_path / "scene")
    begin(scene)
    return scene


def begin(scene: Scene) -> None:
    scene.say(20)
    assert scene.fire().is_quiet
    assert scene.log() == []
    scene.say(20, size=1000)


def assert_goes_on(scene: Scene, known: int) -> None:
    """Now that nothing hinders it, the next save needs no help, and has all that was missed."""
    assert scene.damage() == []
    assert scene.fire().is_quiet
    assert len(scene.log()) == known
    assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.damage() == []
    assert scene.pending() == []


def assert_told(scene: Scene, err: str, known: int, *words: str) -> bool:
    """Did the hook fail, and say so in one line, in its log or on stderr?"""
    lines = [line["reason"] for line in scene.log()[known:]] + err.splitlines()
    assert len(lines) <= 1
    assert not lines or any(word in lines[0] for word in words), lines
    return bool(lines)


@contextmanager
def small_disk(scene: Scene, options: str) -> Iterator[None]:
    """The home on a tmpfs."""
    kept = scene.folder / "kept"
    scene.home.rename(kept)
    scene.home.mkdir()
    with mounted("-t", "tmpfs", "-o", f"mode=0700,{options}", "tmpfs", at=scene.home):
        subprocess.run(["cp", "-a", f"{kept}/.", scene.home], check=True)
        yield


def fill(scene: Scene, left: int) -> None:
    """Leave so many pages free."""
    free = os.statvfs(scene.home).f_bavail
    with (scene.home / BALLAST).open("wb") as file:
        file.write(b"\0" * max(0, free - left) * PAGE)


@pytest.mark.usefixtures("loop_mount")
@pytest.mark.parametrize("left", range(0, NEED, 3))
def test_a_full_disk_stops_the_hook_and_hurts_nothing(scene: Scene, left: int) -> None:
    with small_disk(scene, f"size={PAGES * PAGE}"):
        before = fingerprint(scene.project)
        fill(scene, left)
        fired = scene.fire()
        assert (fired.code, fired.out) == (0, b"")
        failed = assert_told(scene, fired.err, 0, "no space left")
        assert failed or scene.conversation() == scene.transcript().read_bytes()
        assert failed or left > 4
        assert fingerprint(scene.project) == before
        assert scene.damage() == []
        (scene.home / BALLAST).unlink()
        assert_goes_on(scene, len(scene.log()))


@pytest.mark.usefixtures("loop_mount")
@pytest.mark.parametrize("left", [0, 3, 6, 12])
def test_a_full_disk_is_40(scene: Scene, left: int) -> None:
    with small_disk(scene, f"size={PAGES * PAGE}"):
        fill(scene, left)
        refused = scene.create()
        assert refused.code == 40
        assert str(scene.home) in refused.err
        assert "no space left" in refused.err
        stands = "is saved, but" in refused.err  # its trusted head alone found no room
        assert ("hint: it stands" if stands else "hint: free space") in refused.err
        assert len(scene.saves()) == 2 if stands else len(scene.saves()) <= 2
        (scene.home / BALLAST).unlink()
        assert scene.create().code == 0
        assert_goes_on(scene, 0)


@pytest.mark.usefixtures("loop_mount")
@pytest.mark.parametrize("left", [0, 1, 2, 4, 8, 16])
def test_no_inodes(scene: Scene, left: int) -> None:
    with small_disk(scene, "nr_inodes=400"):
        folder = scene.home / BALLAST
        folder.mkdir()
        for number in range(os.statvfs(scene.home).f_favail - left):
            (folder / f"{number}").touch()
        fired = scene.fire()
        assert (fired.code, fired.out) == (0, b"")
        assert_told(scene, fired.err, 0, "no inodes")
        if left == 0:
            refused = scene.create()
            assert (refused.code, "no inodes" in refused.err) == (40, True)
        subprocess.run(["rm", "-r", folder], check=True)
        assert_goes_on(scene, len(scene.log()))


def test_a_log_that_was_cut_by_a_full_disk_loses_no_other_line(scene: Scene) -> None:
    log = scene.home / "hook.log"
    log.write_bytes(b'{"timestamp":"2026-11-30T16:16:23Z","event":"PreCom')
    environment = scene.environment(CLAUDE_PROJECT_DIR=str(scene.folder))
    assert scene.fire(env=environment).is_quiet
    torn, whole = log.read_bytes().splitlines()
    assert torn.endswith(b"PreCom")
    assert b"it made store" in whole


@pytest.mark.parametrize("limit", [0, 1, 600, 5000, 8000, 100_000])
def test_a_limit_on_the_size_of_files(scene: Scene, limit: int) -> None:
    """The kernel writes what still fits, and refuses the rest: a real short write."""
    fired = scene.fire(wrap=["prlimit", f"--fsize={limit}"])
    assert (fired.code, fired.out) == (0, b"")
    failed = assert_told(scene, fired.err, 0, "file size limit")
    assert failed == (limit < 100_000)
    if failed:
        refused = scene.create(wrap=["prlimit", f"--fsize={limit}"])
        assert (refused.code, "file size limit" in refused.err) == (40, True)
    assert_goes_on(scene, len(scene.log()))


@pytest.mark.parametrize("limit", range(4, 24))
def test_a_limit_on_open_files(scene: Scene, limit: int) -> None:
    bare = [*HOOK[:2], "-c", "import hashlib, select, cryptography"]
    wrap = ["prlimit", f"--nofile={limit}"]
    if run([*wrap, *bare], scene.project, {}, b"").code:
        assert limit < 12, "else this test would skip itself away"
        return  # no Python starts with so few
    fired = scene.fire(wrap=wrap)
    assert (fired.code, fired.out) == (0, b"")
    # The interpreter may not even open a module: that is no error of ours to put into words. What
    # is ours is held to its words by the sweep, which sees who opens what.
    assert_told(scene, fired.err, 0, "too many open files", "internal error: OSError")
    assert_goes_on(scene, len(scene.log()))


@pytest.mark.usefixtures("loop_mount")
def test_a_home_that_is_read_only(scene: Scene) -> None:
    """RyderFreeman4Logos/cli-sub-agent#2958: the hook tells path and reason, writes nothing into
    the project instead; the missed fires are caught up when the home can be written again.
    """
    before = fingerprint(scene.project)
    with read_only(scene.home):
        fired = scene.fire()
        assert (fired.code, fired.out) == (0, b"")
        (line,) = fired.err.splitlines()
        assert str(scene.home) in line
        assert "read-only file system" in line
        refused = scene.create()
        assert refused.code == 40
        assert "read-only file system" in refused.err
        assert str(scene.home) in refused.err
        assert scene.damage() == []
        assert scene.command("verify", "--all").code == 0, "what is there can still be proven"
    assert fingerprint(scene.project) == before
    assert scene.fire(event="SessionStart").is_allowed("SessionStart")
    assert scene.conversation() == scene.transcript().read_bytes()
    assert_goes_on(scene, 0)


def _index(scene: Scene) -> str:
    return scene.paths.index_file


def _snapshots(scene: Scene) -> str:
    return scene.paths.snapshots


def _objects(scene: Scene) -> str:
    return scene.store.objects


def _trusted(scene: Scene) -> str:
    return os.path.dirname(scene.paths.trusted)


def _sessions(scene: Scene) -> str:
    return scene.store.sessions


def _pending(scene: Scene) -> str:
    return scene.store.pending


def _scratch(scene: Scene) -> str:
    return scene.store.scratch


@pytest.mark.usefixtures("loop_mount")
@pytest.mark.parametrize(
    "which", [_index, _snapshots, _objects, _trusted, _sessions, _pending, _scratch]
)
def test_one_file_or_folder_that_may_not_be_changed(
    tmp_path: Path, which: Callable[[Scene], str]
) -> None:
    """Root may write to anything but what is immutable."""
    scene = Scene.make(tmp_path / "scene", store=False)
    with Ext4(tmp_path / "image", scene.home).mounted():
        scene.home.chmod(0o700)
        scene.begin()
        begin(scene)
        subprocess.run(["chattr", "+i", which(scene)], check=True)
        try:
            fired = scene.fire()
            assert (fired.code, fired.out, fired.err) == (0, b"", "")
            failed = assert_told(scene, "", 0, "operation not permitted")
            assert failed == (which is not _scratch and which is not _sessions), scene.log()
            refused = scene.create()
            assert refused.code == (40 if failed else 0), refused.err
            assert scene.damage() == []
        finally:
            subprocess.run(["chattr", "-i", which(scene)], check=True)
        scene.say(1)
        assert_goes_on(scene, len(scene.log()))
