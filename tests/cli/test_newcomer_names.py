"""Files that a session shows and no list can hold: said, not passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits

if TYPE_CHECKING:
    from tests.cli.scene import Scene


@pytest.mark.parametrize("name", ["a\0b", "x" * (limits.SCAN_STRING_CHARS + 1)])
def test_a_file_under_a_name_that_no_file_can_have_is_omitted_with_a_reason(
    cli: Scene, name: str
) -> None:
    (cli.project / "good.txt").write_text("x", "utf-8")
    cli.read_file("good.txt")
    cli.read_file(name)
    cli.created()
    cli.say("more")
    cli.created()
    for selector in ["2", "3"]:
        shown = cli.good("show", selector, "--json").json
        assert shown["loaded_files"]["stored"] == 1
        (omitted,) = [one for one in shown["omitted"] if one["what"] == "loaded_files"]
        assert omitted["reason"] == "1 shown under names that no file can have"


def test_a_fold_that_another_version_cached_is_made_anew(cli: Scene) -> None:
    cli.created()
    (cache,) = Path(cli.paths.store.sessions).glob("*.json")
    value = json.loads(cache.read_bytes())
    (fold,) = [one for one in value["files"][str(cli.transcript)] if isinstance(one, dict)]
    del fold["messages"]
    cache.write_bytes(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    cli.say("more")
    cli.created()
    told = cli.good("show", "latest", "--json").json["conversation"]
    assert told["message_count"] == 3
    cli.good("verify", "--all")
