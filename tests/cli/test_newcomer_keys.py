"""A key file that is missing or broken: fsck and doctor name it, and what brings it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.scene import Scene

_FILES = ["root_seed", "authority", "age_identity", "recipients"]


def _file(cli: Scene, which: str) -> Path:
    paths = cli.paths
    return Path(paths.authority if which == "authority" else getattr(paths.store, which))


@pytest.mark.parametrize("which", _FILES)
@pytest.mark.parametrize("content", [None, b"", b"no key\n", b"\xff\xfe\n"])
def test_a_key_file_that_is_missing_or_broken_is_named_with_the_way_out(
    cli: Scene, which: str, content: bytes | None
) -> None:
    cli.created()
    path = _file(cli, which)
    path.unlink() if content is None else path.write_bytes(content)
    ran = cli("fsck", "--json")
    assert ran.code == 0
    (found,) = [one for one in ran.json["findings"] if path.name in one["detail"]]
    assert found["severity"] == "warning"
    assert found["hint"]
    assert found["hint"] in cli("fsck").text
    checks = cli("doctor", "--json").json["checks"]
    failed = [one for one in checks if one["result"] == "fail" and path.name in one["detail"]]
    assert failed
    assert all(one["todo"] for one in failed)
    assert not any("savepoint doctor" in one["todo"] for one in failed)


def test_recipients_without_the_stores_own_key_are_named(cli: Scene) -> None:
    cli.created()
    other = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n"
    _file(cli, "recipients").write_text(other, "utf-8")
    assert "does not name the key of" in cli.good("fsck").text
    assert "does not name the key of" in cli("doctor").text


def test_keys_that_are_whole_are_not_told_of(cli: Scene) -> None:
    cli.created()
    assert "keys/" not in cli.good("fsck").text


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("passphrase", "weak"), [("abc", True), ("three plain words", False)])
def test_a_short_passphrase_is_told_to_be_weak(
    cli: Scene, tmp_path: Path, passphrase: str, *, weak: bool
) -> None:
    path = tmp_path / "word"
    path.write_text(f"{passphrase}\n")
    path.chmod(0o600)
    ran = cli.good("keys", "backup", "-o", str(tmp_path / "k"), "--passphrase-file", str(path))
    assert ("less than 12 characters can be guessed" in ran.err) == weak


def test_another_file_of_ours_is_no_changed_backup(cli: Scene, tmp_path: Path) -> None:
    """It was told TAMPERED, after the passphrase was asked for."""
    cli.created()
    export = tmp_path / "savepoint.json"
    cli.good("export", "-o", str(export))
    ran = cli("keys", "restore", str(export))
    assert ran.code == 2
    assert "is a JSON document, and no backup of keys" in ran.err
