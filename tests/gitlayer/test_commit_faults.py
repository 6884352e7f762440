"""What the kernel refuses while a commit is made is told as an error of ours: the savepoint is
acknowledged already, and only such an error is queued.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from savepoint.core.errors import DiskError, TamperedError
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer import cursor
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.witness import check
from tests.gitlayer.layer import Layer, repo_of
from tests.verify import builder


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    one = Layer.new(tmp_path)
    one.saved(b"one\n")
    return one


def test_a_pack_that_goes_missing_after_the_record(layer: Layer) -> None:
    newest = layer.save(b"two\n")
    for name in newest.written:
        Path(layer.paths.store.pack(name)).unlink()
    with pytest.raises(TamperedError, match="is missing"):
        layer.commit(newest)
    done = layer.commit(layer.save(b"three\n"))
    assert done is not None
    assert [seq for seq, _ in done.skipped] == [3]
    assert [seq for seq, _ in done.commits] == [4]


def test_a_savepoint_of_a_newer_version_keeps_no_later_one_from_git(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every later one stayed queued, for good."""
    with monkeypatch.context() as newer:
        builder.as_newer_version(newer)
        layer.save(b"two\n")
    done = layer.commit(layer.save(b"three\n"))
    assert done is not None
    assert [seq for seq, _ in done.skipped] == [3]
    assert [seq for seq, _ in done.commits] == [4]
    (fault,) = check.branch(repo_of(layer), layer.paths).faults
    assert (fault.seq, fault.verdict, fault.finding.unsupported) == (3, Verdict.UNVERIFIABLE, True)


def test_a_pack_that_cannot_be_looked_at(layer: Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = layer.save(b"two\n")
    stat = os.stat

    def refuse(path: str, **how: bool) -> os.stat_result:
        if str(path).endswith(".pack"):
            raise PermissionError(13, "Permission denied")
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(DiskError, match="permission denied"):
        layer.commit(newest)


def test_a_git_that_is_being_replaced(
    layer: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = layer.save(b"two\n")
    monkeypatch.setattr("savepoint.gitcmd.find_git", lambda _: str(tmp_path / "git"))
    with pytest.raises(DiskError, match="No such file"):
        layer.commit(newest)


def test_a_short_read_of_the_index_does_not_cost_the_cache(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 100), at))
    repo = Repository.of(layer.paths.store, os.environ, time.monotonic() + 30)
    base, left = cursor.base(repo, layer.paths)
    assert (base.closed, left) == (None, b""), "else all of the index was read and compared"
