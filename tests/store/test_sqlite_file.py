"""outbox.db and ledger.db: what is no regular file is not opened, and who reads changes nothing."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers.embedded import EmbeddedLedger
from savepoint.core.errors import DiskError
from savepoint.store import sqlite_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _genesis(path: str) -> bytes:
    return EmbeddedLedger(path).genesis()


def _to_read(path: str) -> object:
    return sqlite_file.to_read(path, 0.0)


_OPENED = [sqlite_file.to_write, _to_read, _genesis]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("opened", _OPENED)
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_a_fifo_is_not_waited_at(
    tmp_path: Path, opened: Callable[[str], object], ending: str
) -> None:
    """SQLite tries again at each EINTR, so `list`, `status` and `verify` never ended."""
    path = str(tmp_path / "x.db")
    sqlite_file.to_write(path).close()
    if not ending:
        os.unlink(path)  # of a test
    os.mkfifo(path + ending)
    with pytest.raises(DiskError, match=f"{ending} is not a regular file"):
        opened(path)


@pytest.mark.parametrize("opened", _OPENED)
@pytest.mark.parametrize("content", [b"", b"of the user"])
def test_a_link_is_not_followed(
    tmp_path: Path, opened: Callable[[str], object], content: bytes
) -> None:
    """An empty file became a database, any other got another mode."""
    theirs = tmp_path / "theirs"
    theirs.write_bytes(content)
    theirs.chmod(0o644)
    path = str(tmp_path / "x.db")
    os.symlink(theirs, path)
    with pytest.raises(DiskError, match="is not a regular file"):
        opened(path)
    assert theirs.read_bytes() == content
    assert theirs.stat().st_mode & 0o777 == 0o644


def test_a_ledger_where_nobody_can_write_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No -shm can be made on a disk that is mounted read-only: `verify` and `resurrect` failed."""
    path = str(tmp_path / "ledger.db")
    genesis = _genesis(path)
    with closing(sqlite_file.to_write(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for ending in ("-wal", "-shm"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)  # of a test
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert _genesis(path) == genesis
    assert os.listdir(tmp_path) == ["ledger.db"]
