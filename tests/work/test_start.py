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
