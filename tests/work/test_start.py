"""A worker that was started is nobody's child."""

import os
from pathlib import Path

import pytest

from savepoint.store.layout import Home
from savepoint.work import start
from savepoint.work.jobs import Surroundings


def test_a_started_worker_leaves_no_zombie(tmp_path: Path) -> None:
    store = Home(str(tmp_path)).store("0" * 32)
    for _ in range(3):
        start.start(store, Surroundings({"PATH": os.defpath}, str(tmp_path)))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_worker_that_is_left_behind_is_nobody_else_s(tmp_path: Path) -> None:
    """No shell stands between, and nothing that is sent to our terminal reaches it."""
    store = Home(str(tmp_path)).store("0" * 32)
    start.leave_behind(store, Surroundings({"PATH": os.defpath}, str(tmp_path)))
    seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert seen is not None
    assert os.getsid(seen.si_pid) == seen.si_pid
    assert os.waitpid(seen.si_pid, 0)[0] == seen.si_pid
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
