"""An instance whose index has no record that can be read is damaged, not absent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.scene import Scene


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"{}\n", b"no record\nat all\n"])
@pytest.mark.parametrize("current", [True, False])
def test_an_instance_without_a_readable_record_is_found_by_its_name(
    cli: Scene, content: bytes, current: bool
) -> None:
    cli.created()
    paths = cli.paths
    if not current:
        cli.good("init", "--instance", "é #2")
    Path(paths.index_file).write_bytes(content)
    for name in ["Gabriel #215", paths.slug]:
        ran = cli("verify", "--all", "--instance", name)
        assert ran.code in {20, 22}, ran.err
        assert paths.slug in ran.text
    ran = cli("verify", "--instance", "Raphael #1")
    assert ran.code == 1
    assert paths.slug in ran.err
    assert f"({paths.slug})" not in ran.err


def test_a_name_that_records_tell_comes_before_one_that_a_slug_tells(cli: Scene) -> None:
    cli.created()
    damaged = cli.paths
    cli.good("init", "--instance", "Gabriel! #215")  # another name of the same slug, but its key
    cli.good("init", "--instance", "Gabriel #215")
    Path(damaged.index_file).write_bytes(b"")
    assert damaged.slug in cli("verify", "--all", "--instance", "Gabriel #215").text
    cli.good("list", "--instance", "Gabriel! #215")
