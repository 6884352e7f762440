"""What users reported of other tools, tried here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from succession.dynasty.files import archive

if TYPE_CHECKING:
    from tests.succession.scene import Scene

_NOTES = {
    "day.md": "Underlined\n----------\n\n#\ttab heading\n\n| a | b |\n|---|---|\n",
    "dusk.md": "My own words\n============\n\nwith a paragraph\n",
}


def test_openclaw_116057_notes_of_the_owner_stay(scene: Scene) -> None:
    scene.record("A decision", "because", "what")
    scene.run()
    scene.record("Another", "because", "what")
    vault = scene.folder / "vault.md"
    vault.write_text("# Mine\n\n| a | table |\n")
    for name, note in _NOTES.items():
        path = scene.own / name
        head, gap, rest = path.read_text().partition("\n\n")
        path.write_text(f"{head}\n\n{note}{gap}{rest}\nright below\n\n{note}")
    for number in range(3):
        ran = scene.run()
        for name, note in _NOTES.items():
            text = (scene.own / name).read_text()
            assert text.count(note) == 2, f"{name} after succession {number + 1}"
            assert any(one.startswith(f"{name}: ") for one in ran.succession.notes)
        assert b"right below" in scene.state.archive
        assert vault.read_text() == "# Mine\n\n| a | table |\n"
    entries = [*scene.state.day_page.entries, *scene.state.dusk_page.entries]
    assert {"A decision", "Another"} <= {one.title for one in entries}
    assert not any("Underlined" in one.text or "My own" in one.text for one in entries)


def test_lapis_281_a_copy_deleted_by_hand_leaves_its_original(scene: Scene) -> None:
    one = scene.record("Parser of paths", "because", "src/paths.py splits them")
    scene.run(scene.covering(1, changed=["src/paths.py"]))
    scene.run(scene.covering(2, changed=["src/paths.py"]))
    day = scene.own / "day.md"
    assert one.title in day.read_text(), "Dusk's wisdom came as a copy"
    day.write_text(day.read_text().partition("\n### ")[0] + "\n")
    scene.run()
    held = [found for found in scene.state.dusk_page.entries if found.id == one.id]
    assert [found.why for found in held] == ["because"]


def test_lapis_281_a_young_entry_gets_its_reign(scene: Scene) -> None:
    """Recorded a minute before, never referenced: it is no stale one, and stays; a decree too."""
    old = scene.record("Older", "because")
    scene.session(1)
    scene.session(2)
    scene.record("Seen", "", "observed")
    young = scene.record("Young", "just now", "src/young.py")
    assert scene.stop(2).suggestion == "", "two of three are no stale ones"
    scene.run()
    with scene.opened() as held:
        dusk = held.state.dusk.replace("[decision] Older", "[decree] [decision] Older")
        held.write(held.state._replace(dusk=dusk), held.seen)
    before = next(one.raw for one in scene.state.dusk_page.parts if one.entry and one.entry.decree)
    latest = scene.record("Latest", "just now")
    scene.run()
    layers = [scene.state.dusk_page.layer(number) for number in (1, 2, 3)]
    assert {one.id for one in layers[0]} == {old.id, latest.id}
    assert {one.id for one in layers[1]} == {young.id}
    after = next(one.raw for one in scene.state.dusk_page.parts if one.entry and one.entry.decree)
    assert after == before
    kept = {one.entry.title: one.entry for one in archive.read(scene.state.archive)}
    assert kept["Young"].why == "just now"
    assert "### [dynasty:1] [observation] Seen" in scene.state.lineage.decode()
