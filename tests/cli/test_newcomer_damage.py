"""What a newcomer met when something was damaged: hints lead out, and not in a circle."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.scene import Scene


def _damage(cli: Scene) -> Path:
    """Flip a bit of a pack that every savepoint needs: that of the first messages."""
    cli.created()
    (pack,) = Path(cli.paths.store.objects).rglob("*.pack")
    for number in range(2):
        cli.say(f"more {number}")
        cli.created()
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    return pack


def test_hints_on_damage_lead_to_the_repair_that_brings_it_back(cli: Scene) -> None:
    pack = _damage(cli)
    for command in (["verify", "--all"], ["resurrect", "2"], ["fsck"]):
        ran = cli(*command)
        assert ran.code == 20, command
        assert "`savepoint fsck --repair` brings back from git" in ran.err
    assert "came back from git" in cli.good("fsck", "--repair").text
    assert pack.exists()
    assert cli("verify", "--all").code == 0


def test_without_a_copy_in_git_no_repair_is_promised(cli: Scene) -> None:
    _damage(cli)
    shutil.rmtree(cli.paths.store.repository)
    for more in ([], ["--repair"]):
        ran = cli("fsck", *more)
        assert ran.code == 20
        assert "put these files back from a copy of your own" in ran.err
        assert "brings back" not in ran.err


def test_a_damaged_pack_is_one_line_with_the_savepoints_that_need_it(cli: Scene) -> None:
    pack = _damage(cli)
    told = [line for line in cli("fsck").text.splitlines() if line.startswith("damage")]
    assert len(told) == 1
    assert pack.name in told[0]
    assert told[0].endswith("; needed by 1 savepoint")


def test_the_verdict_counts_the_savepoints_that_it_holds_for(cli: Scene) -> None:
    _damage(cli)
    assert "TAMPERED: 1 of 3 savepoints of" in cli("verify", "--all").text


def test_a_file_that_never_was_a_proof_is_wrong_use(bare: Scene, tmp_path: Path) -> None:
    for data in (b"# savepoint\n", b"", b'{"a":1}\n'):
        path = tmp_path / "file"
        path.write_bytes(data)
        ran = bare("proof", "verify", str(path))
        assert ran.code == 2
        assert f"{path} is no proof" in ran.err
        assert "fsck" not in ran.err


@pytest.mark.parametrize("end", [b"", b'"}\n'])
def test_a_damaged_proof_is_asked_for_again(bare: Scene, tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'{"account":"x","account_data":"","birth":"' + end)
    ran = bare("proof", "verify", os.fspath(path))
    assert ran.code == 20
    assert "ask for the file again" in ran.err
    assert "fsck" not in ran.err
