"""What was recorded since the savepoint stays in the tiers when its dynasty is put back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.capture import memory
from succession.dynasty.joining import bundle
from tests.succession.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

    from succession.dynasty.joining.bundle import Back


def _saved(scene: Scene) -> bytes:
    """As a savepoint has it now."""
    data = memory.read(scene.store.path, time.monotonic() + 120).data
    assert data is not None
    return data


def _put_back(scene: Scene, data: bytes) -> Back:
    return bundle.put_back(scene.store, data, scene.branch.folder, force=True)


def _titles(scene: Scene) -> tuple[list[str], list[str]]:
    """Of Day, and of Dusk."""
    pages = scene.state.day_page, scene.state.dusk_page
    day, dusk = ([one.title for one in page.entries] for page in pages)
    return day, dusk


def test_a_decision_since_the_savepoint_stays_in_day(scene: Scene) -> None:
    """It had left the briefing, was found by a search alone, and no message said so."""
    scene.record("Before", "because")
    data = _saved(scene)
    late = scene.record("Late", "for a reason", "In late.py.", session=2)
    life = scene.state.meta.lives[late.id]
    scene.record("Seen late", "", "text")
    back = _put_back(scene, data)
    assert [one.title for one in back.stays] == ["Late", "Seen late"]
    assert _titles(scene) == (["Before", "Late", "Seen late"], [])
    assert "- Late — Why: for a reason" in scene.state.briefing
    assert scene.state.meta.lives[late.id] == life
    assert scene.project.damage() == []


def test_what_went_to_dusk_since_is_whole_in_day(scene: Scene) -> None:
    """A page that the savepoint lacks stayed: what it has in Day was in Dusk as well."""
    scene.record("Before", "because")
    data = _saved(scene)
    what = "In late.py, and then at length in many more words than the sixty that are left of it."
    scene.record("Late", "for a reason", what)
    scene.run()
    scene.record("Last", "because")
    back = _put_back(scene, data)
    assert _titles(scene) == (["Before", "Last", "Late"], [])
    assert scene.state.day_page.entries[-1].body == what
    assert {one.ruler for one in scene.state.meta.lives.values()} == {1}
    assert (scene.project.home / back.kept / "main/dusk.md").is_file()
    scene.run()
    assert _titles(scene)[1] == ["Before", "Last", "Late"]


def test_what_the_savepoint_has_in_its_lineage_does_not_come_again(scene: Scene) -> None:
    scene.record("Seen", "", "text")
    old = _saved(scene)
    scene.run()
    new = _saved(scene)
    _put_back(scene, old)
    assert _titles(scene)[0] == ["Seen"]
    assert _put_back(scene, new).stays == ()
    assert "Seen" not in _titles(scene)[0]


def test_the_same_import_again_changes_nothing(scene: Scene) -> None:
    scene.record("Before", "because")
    data = _saved(scene)
    scene.record("Late", "because")
    scene.run()
    day = scene.own / "day.md"
    day.write_text(day.read_text() + "\n### [ref:0] [decision] By hand\nWhy: mine\n")
    _put_back(scene, data)
    assert _titles(scene)[0] == ["Before", "By hand", "Late"]
    before = scene.files()
    assert _put_back(scene, data).changed == ()
    assert scene.files() == before


def test_entries_stay_where_dynasty_json_was_damaged(scene: Scene) -> None:
    scene.record("Before", "because")
    data = _saved(scene)
    late = scene.record("Late", "because")
    (scene.own / "dynasty.json").write_bytes(b"{bad")
    assert [one.id for one in _put_back(scene, data).stays] == [late.id]
    assert late.id in scene.state.meta.lives


def test_decisions_of_another_dynasty_that_was_here_stay(scene: Scene, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other")
    other.record("Theirs", "because")
    scene.record("Ours", "because")
    _put_back(scene, _saved(other))
    assert _titles(scene)[0] == ["Theirs", "Ours"]
