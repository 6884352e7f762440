"""What people write into the files stays, word for word, whatever it looks like, and is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from succession.dynasty import search
from succession.dynasty.files import entry, markdown
from succession.dynasty.session import dawn
from tests.succession.lives import Life

if TYPE_CHECKING:
    from tests.succession.scene import Scene

_FOREIGN = [
    "## Git State\nmy note",
    "## Dusk Wisdom\nmy note",
    "## Layer 2 of the cake\nmy note",
    "## Layer 2 (compressed) my note",
    "## Layer 1 (my note)",
    "# ☀️ Day — my note",
    "# 🌙 Dusk — my note 3",
    "# 🌅 Dawn — my note",
    '# 🌙 Dusk — Claude 1 "my note"',
    "<!-- Branch: my note | Born: yesterday -->",
    "<!-- Staged for next succession, my note -->",
    "Succession suggested: my note",
    "## Layer 3 (one-liners)\n## Layer 3 (one-liners) my note",
]


def _begun() -> Life:
    """A dynasty with something in Day, and in all layers of Dusk."""
    life = Life.begin()
    for title in "abcd":
        life = life.record(entry.make("decision", title, "because", "x"))
        life = life if title == "d" else life.succeed().life
    return life


@pytest.mark.parametrize("note", _FOREIGN)
@pytest.mark.parametrize("page", ["day", "dusk", "dawn"])
@pytest.mark.parametrize("place", ["above", "below"])
def test_a_note_that_looks_like_ours_stays(page: str, note: str, place: str) -> None:
    """A heading of another page, or with more words: all of it vanished at the next run."""
    life = _begun()
    text = str(getattr(life.state, page))
    text = f"{note}\n\n{text}" if place == "above" else f"{text}\n## Mine\n{note}\n"
    life = life._replace(state=life.state._replace(**{page: text}))  # type: ignore[arg-type]  # texts
    kept = "day" if page == "dawn" else page
    passed = life.succeed()
    told = [one for one in passed.result.notes if one.startswith(f"{page}.md: ")]
    for line in note.split("\n"):
        texts = [str(getattr(passed.life.state, name)) for name in (kept, "day")]
        assert any(line in one for one in texts), line
    is_git_state = (page, place, note[:6]) == ("dawn", "above", "## Git")  # all of it is taken
    assert told or is_git_state
    for _ in range(2):
        passed = passed.life.succeed()
        texts = [str(getattr(passed.life.state, name)) for name in {kept, "day", "lineage"}]
        assert sum(one.count("my note") for one in texts) == note.count("my note")


def test_a_note_in_the_state_of_git_is_in_its_observation() -> None:
    life = _begun()
    text = life.state.dawn.replace("## Dusk Wisdom", "my note\n## Git State\n\n## Dusk Wisdom")
    life = life._replace(state=life.state._replace(dawn=text)).succeed().life
    (one,) = life.state.day_page.entries
    assert "my note\n     ## Git State" in one.body
    assert "my note" in life.succeed().life.state.lineage.decode()


def test_a_heading_with_more_words_is_one_all_the_same() -> None:
    """Its entries stay in their layer."""
    life = _begun()
    before = [[one.title for one in life.state.dusk_page.layer(number)] for number in (1, 2, 3)]
    for name in markdown.LAYER_TITLES:
        text = life.state.dusk.replace(f"## {name}", f"## {name} my note")
        page = life._replace(state=life.state._replace(dusk=text)).state.dusk_page
        assert [[one.title for one in page.layer(n)] for n in (1, 2, 3)] == before
        assert page.texts() == (f"## {name} my note",)


def test_our_own_lines_are_not_told(scene: Scene) -> None:
    scene.record("A decision", "because")
    for session in range(1, 8):
        scene.session(session)
    assert "Succession suggested: " in (scene.own / "dawn.md").read_text()
    for _ in range(3):
        assert scene.run().succession.notes == ()
        assert scene.state.day_page.texts() == scene.state.dusk_page.texts() == ()
    assert "suggested" not in (scene.own / "day.md").read_text()


def test_a_suggestion_that_a_person_writes_stays() -> None:
    """Only the line that is ours is taken out, or replaced."""
    text = dawn_with("Succession suggested: never, I say\n")
    noted = markdown.suggesting(text, "", "5 sessions")
    assert markdown.suggesting(noted, "5 sessions", "6 sessions").count("suggested: 6") == 1
    assert markdown.suggesting(noted, "5 sessions", "") == text


def dawn_with(note: str) -> str:
    """A Dawn with a line in its head."""
    made = markdown.dawn("Claude 2", dawn.Git().lines, ())
    return made.replace("succession -->\n", f"succession -->\n{note}")


def test_a_why_with_an_empty_line_by_hand_is_told_and_kept() -> None:
    """The format ends it there: what follows is its What, which gets shorter."""
    life = Life.begin()
    text = "\n### [decision] T\nWhy: first\n\nsecond paragraph\n\nthird one\nWhat: x\n"
    life = life._replace(state=life.state._replace(day=life.state.day + text))
    passed = life.succeed()
    (note,) = passed.result.notes
    assert note.startswith("day.md: T: ")
    assert note.endswith("'second paragraph'")
    life = passed.life
    for _ in range(6):
        life = life.succeed().life
    assert "second paragraph\n\nthird one\nWhat: x" in life.state.lineage.decode()
    assert "third one" in life.state.archive.decode()


def test_a_text_that_no_tier_has_room_for_is_archived_and_told() -> None:
    """Below an item of Layer 2, and of an entry that stands twice."""
    life = _begun()
    dusk = life.state.dusk.replace("c — Why: because\n", "c — Why: because\nWhat: by hand\n")
    dusk = dusk.replace("b — Why: because\n", "b — Why: because\nWhat: by hand\n")
    day = life.state.day + "\n### [ref:0] [decision] d\nWhy: because\nWhat: another\n"
    passed = life._replace(state=life.state._replace(day=day, dusk=dusk)).succeed()
    assert passed.result.notes == (
        "day.md: d: its text is kept in the archive alone, beside the same one above: 'another'",
        "dusk.md: b: its text is kept in the archive alone, in this layer: 'by hand'",
    )
    for text in (b"by hand", b"another"):
        assert text in passed.life.state.archive
    assert [one.where for one in search.search(passed.life.state, "another")]


def test_a_decree_in_a_lower_layer_keeps_its_text() -> None:
    """Only its line stayed, where the specification skips it entirely."""
    lines = (
        "- [ref:0] [decree] [decision] Law — Why: because\nWhat: keep this\nand this\n",
        "### [ref:0] [decree] [decision] Long\nWhy: because\nWhat: one\n\ntwo\n",
        "- [ref:0] [decree] [observation] Seen\nthe body\n",
    )
    for number in (2, 3):
        for text in lines:
            life = _begun()
            heading = f"## {markdown.LAYER_TITLES[number - 1]}\n"
            dusk = life.state.dusk.replace(heading, heading + text)
            life = life._replace(state=life.state._replace(dusk=dusk))
            for _ in range(3):
                life = life.succeed().life
                assert text in life.state.dusk
                assert life.state.dusk_page.layer(number)[0].decree
