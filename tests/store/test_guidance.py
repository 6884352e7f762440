"""What a session started with is kept, and not written again where it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import layout
from savepoint.store.session import guidance

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

_FIRST: list[Json] = [{"path": "/p/CLAUDE.md", "kind": "rule", "sha256": "0" * 64}]
_OTHER: list[Json] = [{"path": "/p/CLAUDE.md", "kind": "rule", "sha256": "1" * 64}]


@pytest.fixture
def store(tmp_path: Path) -> layout.Store:
    """A folder for one, with nothing in it."""
    one = layout.Home(str(tmp_path)).store("0" * 32)
    Path(one.sessions).mkdir(parents=True)
    return one


def test_the_same_is_written_once(store: layout.Store) -> None:
    guidance.save(store, "k", _FIRST)
    path = Path(store.session_guidance("k"))
    before = path.stat()
    guidance.save(store, "k", _FIRST)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert guidance.load(store, "k") == _FIRST


@pytest.mark.parametrize("there", [_OTHER, [], [*_FIRST, *_OTHER]])
def test_another_takes_its_place(store: layout.Store, there: list[Json]) -> None:
    guidance.save(store, "k", there)
    guidance.save(store, "k", _FIRST)
    assert guidance.load(store, "k") == _FIRST


def test_a_link_in_its_place_is_replaced_and_not_followed(
    store: layout.Store, tmp_path: Path
) -> None:
    guidance.save(store, "other", _FIRST)
    path, target = Path(store.session_guidance("k")), Path(store.session_guidance("other"))
    path.symlink_to(target)
    guidance.save(store, "k", _FIRST)
    assert not path.is_symlink()
    assert guidance.load(store, "k") == _FIRST
