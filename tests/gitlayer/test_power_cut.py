"""A power cut: a commit that was acknowledged is there with its ref; else nothing is broken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.fault.disks import Ext4
from tests.gitlayer.layer import Layer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("loop_mount")
ROUNDS = 6


@pytest.mark.parametrize("options", ["auto_da_alloc", "noauto_da_alloc"])
def test_a_commit_and_its_ref_survive(tmp_path: Path, options: str) -> None:
    """Git's defaults lose objects, core.fsync=all alone loses the ref."""
    disk = Ext4(tmp_path / "image", tmp_path / "disk", options)
    with disk.mounted():
        (tmp_path / "disk").chmod(0o700)
        layer = Layer.new(tmp_path / "disk")
        layer.commit(layer.save(b"first\n"))
        disk.cut_power()
    for number in range(ROUNDS):
        with disk.mounted():
            assert len(layer.history()) == number + 1
            assert layer.fsck() == ""
            done = layer.saved(os.urandom(100_000))
            disk.cut_power()
    with disk.mounted():
        assert layer.tip() == done.cursor.commit
        assert layer.fsck() == ""


def test_a_cut_between_commit_and_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has ended, and nobody has synced what it left undone: old or new, never a ruin."""
    disk = Ext4(tmp_path / "image", tmp_path / "disk", "noauto_da_alloc")
    with disk.mounted():
        (tmp_path / "disk").chmod(0o700)
        layer = Layer.new(tmp_path / "disk")
        layer.commit(layer.save(b"first\n"))
    for number in range(ROUNDS):
        with disk.mounted():
            before = len(layer.history())
            new = layer.save(os.urandom(50_000))
            with monkeypatch.context() as patch:
                patch.setattr("savepoint.gitlayer.repository.sync", lambda _: None)
                layer.commit(new)
            if number % 2:
                disk.commit_journal()
            disk.cut_power()
        with disk.mounted():
            assert layer.fsck() == ""
            assert len(layer.history()) in (before, before + 1)
            layer.commit()
            assert layer.holds_newest()
