"""A save survives a fault at any of its file syscalls: what was acknowledged is there, the store is
whole, and the next save needs no help. Of the full sweep (`scripts/sweep`, result in SWEEP.md) a
tenth runs here.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fault import sweep
from tests.fault.scene import BIN, Scene, run
from tests.fault.sweep import Sweep

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20261130
SHARE = 10
SHARDS = 16
_MISSED = 2  # of a shard, twice: among the last calls, which are fewer in some runs

# Every read and write of the process does half of what it is asked for, as POSIX allows.
_SHORT_CALLS = """
import os, runpy, sys
read, pread, write = os.read, os.pread, os.write
os.read = lambda fd, size: read(fd, size // 2 + 1)
os.pread = lambda fd, size, offset: pread(fd, size // 2 + 1, offset) if size else b""
os.write = lambda fd, data: write(fd, data[: len(data) // 2 + 1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_tenth_of_all_faults(tmp_path: Path, strace: str, shard: int) -> None:
    swept = Sweep.prepare(tmp_path)
    some = sweep.chosen(sweep.cases(swept.calls()), SHARE, SEED)[shard::SHARDS]
    outcomes = [swept.run(case) for case in some]
    outcomes += [swept.run(one.case) for one in outcomes if not one.reached]
    assert [problem for one in outcomes for problem in one.problems] == []
    reached = {str(one.case) for one in outcomes if one.reached}
    missed = [str(case) for case in some if str(case) not in reached]
    assert len(missed) <= _MISSED, "counts of syscalls vary a little from run to run"


def test_an_init_that_failed_is_finished_by_the_next(tmp_path: Path, strace: str) -> None:
    birth = sweep.Birth.prepare(tmp_path)
    some = sweep.chosen(sweep.cases(birth.calls()), 2 * SHARE, SEED)
    assert len(some) > 5
    outcomes = [birth.run(case) for case in some]
    assert [problem for one in outcomes for problem in one.problems] == []


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_create_tells_a_disk_that_fails(tmp_path: Path, strace: str, fault: str) -> None:
    """`create` exits with 40 where a change of the store fails, with 1 where only the commit does,
    or with 0 where it went on.
    """
    swept = Sweep.prepare(tmp_path, "create")
    changing = [call for call in swept.calls() if call.changes(str(swept.scene.home))]
    some = sweep.chosen([sweep.Case(call, fault) for call in changing], 4, SEED)
    assert len(some) > 5
    outcomes = [swept.run(case) for case in some]
    assert [problem for one in outcomes for problem in one.problems] == []


def test_killed_after_its_record_a_savepoint_is_what_the_next_comes_from(
    tmp_path: Path, strace: str
) -> None:
    """The session's cache is older than the index then, and must not be believed."""
    swept = Sweep.prepare(tmp_path)
    calls = swept.calls()
    (synced,) = [n for n, call in enumerate(calls) if _is_append(call)]
    after = [call for call in calls[synced:] if call.changes(str(swept.scene.home))]
    outcomes = [swept.run(sweep.Case(call, "KILL")) for call in after[:8]]
    assert [problem for one in outcomes for problem in one.problems] == []
    assert sum(one.reached for one in outcomes) > 4, "a new folder for a pack is one sync more"


def test_an_index_that_cannot_be_opened_just_now_is_not_taken_for_an_empty_one(
    tmp_path: Path, strace: str
) -> None:
    """The next savepoint of the session would come from none before it."""
    swept = Sweep.prepare(tmp_path)
    opened = [
        call
        for call in swept.calls()
        if call.syscall == "openat" and "precompact-savepoint.jsonl" in call.text
    ]
    outcomes = [swept.run(sweep.Case(call, "EIO")) for call in opened]
    assert [problem for one in outcomes for problem in one.problems] == []
    assert sum(one.reached for one in outcomes) > 4


def _is_append(call: sweep.Call) -> bool:
    return call.syscall == "fsync" and "precompact-savepoint.jsonl" in call.text


def test_short_reads_and_writes_are_gone_on_with(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene")
    for _ in range(3):
        scene.say(50, size=2000)
        command = [sys.executable, "-I", "-c", _SHORT_CALLS, str(BIN / "savepoint-hook")]
        fired = run([*command, "PreCompact"], scene.project, scene.environment(), scene.payload())
        assert fired.is_quiet
        assert scene.log() == []
        assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.damage() == []
    assert len(scene.saves()) == 3
    assert not [name for name in os.listdir(scene.home) if "torn" in name]
    assert list(scene.home.rglob("*.torn-*")) == [], "a short read is no torn tail"
