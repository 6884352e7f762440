"""Folders and files that the kernel does not give at once, or not at all."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import DiskError
from savepoint.store import savepoints
from savepoint.store.fsck import repair
from savepoint.store.layout import Home
from savepoint.store.session import missed, pending, sessions
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import Store

_READERS: dict[str, tuple[str, Callable[[Store], object]]] = {
    "savepoints": ("instances", savepoints.instances),
    "repair": ("instances", lambda store: repair.repair(store, 0, time.monotonic() + 60)),
    "notes": ("pending", pending.keys),
    "drafts": ("pending", lambda store: pending.drafts(store, "a")),
    "audit": ("sessions", sessions.unaudited),
}


@pytest.mark.parametrize("reader", _READERS)
def test_a_folder_that_cannot_be_listed_is_a_disk_error(tmp_path: Path, reader: str) -> None:
    """A file in its place, since root may list whatever is there."""
    store = builder.store_of(tmp_path / "home", tmp_path / "project", 0).paths.store
    name, read = _READERS[reader]
    folder = Path(store.path, name)
    if folder.exists():
        folder.rename(tmp_path / "aside")
    folder.touch()
    with pytest.raises(DiskError, match=name):
        read(store)


def test_a_short_read_is_not_the_end_of_the_hooks_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path))
    fire = {
        "timestamp": "2026-11-30T16:16:23Z",
        "event": "PreCompact",
        "session_id": "",
        "transcript": "",
        "project": "/p",
        "reason": "no store",
    }
    Path(home.hook_log).write_text((json.dumps(fire) + "\n") * 3, encoding="utf-8")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 50), at))
    assert len(missed.fires(home)) == 3
