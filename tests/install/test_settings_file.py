"""Settings files that are links, read-only, or no settings: told with file and place, and left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.install.settings import INSTALL, UNINSTALL, local

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.scene import Scene


def test_a_link_stays_and_its_target_changes(bare: Scene, settings: Path, tmp_path: Path) -> None:
    """weby-homelab/antigravity-cli-statusline#48: dotfiles became plain files."""
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text('{"a": 1}')
    settings.symlink_to(target)
    told = bare.good(*INSTALL).text
    assert f"{target} (through the link {settings})" in told
    assert settings.readlink() == target
    assert "savepoint-hook" in target.read_text()
    bare.good(*UNINSTALL)
    assert settings.readlink() == target
    assert target.read_text() == '{"a": 1}'


def test_a_dangling_link(bare: Scene, settings: Path, tmp_path: Path) -> None:
    settings.symlink_to(tmp_path / "target.json")
    bare.good(*INSTALL)
    assert "savepoint-hook" in (tmp_path / "target.json").read_text()
    bare.good(*UNINSTALL)
    assert settings.is_symlink()
    assert not settings.exists()


def test_a_link_into_nowhere_is_refused(bare: Scene, settings: Path, tmp_path: Path) -> None:
    settings.symlink_to(tmp_path / "no" / "target.json")
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert str(tmp_path / "no" / "target.json") in ran.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_read_only_target_is_refused(
    bare: Scene, settings: Path, tmp_path: Path, linked: bool
) -> None:
    """agent-of-empires#3930: another program manages it."""
    target = tmp_path / "store.json" if linked else settings
    target.write_text('{"a": 1}')
    target.chmod(0o444)
    if linked:
        settings.symlink_to(target)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert str(target) in ran.err
    assert "read-only" in ran.err
    assert target.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"a": 1,}', b"\xff\xfe{", b'{"hooks": []}', b'{"hooks":{"Stop":1}}'],
)
def test_what_is_no_settings_file_is_refused(bare: Scene, settings: Path, data: bytes) -> None:
    settings.write_bytes(data)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert "savepoint: hint: nothing was changed" in ran.err
    assert settings.read_bytes() == data


WRONG = {
    "": "is empty: write {} into it",
    '{"a": 1, // why\n}': "line 1, column 10: a comment, which JSON does not have",
    '{\n  "a": 1 /* why */\n}': "line 2, column 10: a comment",
    '{\n  "a": 1,\n}': ": a comma before }",
    '{"a": [1, ]}': ": a comma before ]",
    '{"a" 1}': "line 1, column 6: ",
    "[]": "is a list and no JSON object",
    '{"hooks":null}': "`hooks` is null and no object",
    '{"hooks":{"Stop":{}}}': "`Stop` in `hooks` is an object and no list",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_settings_is_said_with_the_file_and_the_place(
    bare: Scene, settings: Path, text: str
) -> None:
    """`is no JSON: Expecting value` named neither."""
    settings.write_text(text)
    ran = bare(*INSTALL)
    assert ran.code == 1
    assert f"error: {settings} " in ran.err
    assert WRONG[text] in ran.err


def test_settings_of_the_project_that_are_wrong_are_named(bare: Scene, settings: Path) -> None:
    settings.write_text("{")
    ran = bare(*INSTALL, "--scope", "local")
    assert ran.code == 1
    assert f"error: {settings} is no JSON at line 1" in ran.err
    assert not local(bare).exists()


@pytest.mark.parametrize("scope", ["user", "local"])
def test_hooks_that_are_switched_off_are_said(bare: Scene, settings: Path, scope: str) -> None:
    """All seemed well, and nothing was ever saved."""
    settings.write_text('{"disableAllHooks": true}')
    told = bare.good(*INSTALL, "--scope", scope).err
    assert f"note: {settings} says disableAllHooks: no hook runs" in told
    settings.write_text("{}")
    assert "disableAllHooks" not in bare.good(*INSTALL, "--scope", scope).err


def test_a_folder_in_the_place_of_the_file(bare: Scene, settings: Path) -> None:
    settings.mkdir()
    assert bare(*INSTALL).code == 1
