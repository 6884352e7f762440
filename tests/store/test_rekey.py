"""A signing key that was lost comes back from the root seed, and from nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.scene import Scene

if TYPE_CHECKING:
    import pytest


def _cli(tmp_path: Path, capture: pytest.CaptureFixture[bytes]) -> Scene:
    folder = tmp_path / "project"
    folder.mkdir()
    cli = Scene(folder, capture)
    cli.good("init", "--instance", "Gabriel #215")
    cli.say("hello", "world")
    cli.created()
    return cli


def test_fsck_derives_a_lost_key(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli = _cli(tmp_path, capsysbinary)
    key = Path(cli.paths.authority)
    before = key.read_bytes()
    key.unlink()
    for command in ("create", "doctor"):
        ran = cli(command)
        assert ran.code != 0
        assert "`savepoint fsck --repair` derives it from the root seed" in ran.text + ran.err
    ran = cli("fsck", "--repair", "--json")
    (told,) = ran.json["repaired"]
    assert told["instance"] == cli.paths.slug
    assert "derived from the root seed" in told["what"]
    assert key.read_bytes() == before
    assert key.stat().st_mode & 0o777 == 0o600
    cli.good("create")
    cli.good("verify", "--all")
    assert cli.good("fsck", "--repair", "--json").json["repaired"] == []


def test_without_the_root_nothing_is_made_up(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli = _cli(tmp_path, capsysbinary)
    Path(cli.paths.authority).unlink()
    Path(cli.paths.store.root_seed).unlink()
    ran = cli("create")
    assert ran.code == 12
    assert "backup" in ran.err
    assert "fsck" not in ran.err
    assert cli("fsck", "--repair", "--json").json["repaired"] == []
    assert not Path(cli.paths.authority).exists()


def test_a_key_that_is_there_is_left_as_it_is(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli = _cli(tmp_path, capsysbinary)
    Path(cli.paths.authority).write_bytes(b"rubbish")
    cli("fsck", "--repair")
    assert Path(cli.paths.authority).read_bytes() == b"rubbish"
