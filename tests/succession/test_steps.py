"""The rules of the eight steps, one by one."""

from __future__ import annotations

import pytest

from succession.dynasty import compress, state, words
from succession.dynasty.constants import LAYERS_MAX
from succession.dynasty.files import entry, tiers
from succession.dynasty.files.entry import Entry
from succession.dynasty.session import dawn
from tests.succession.lives import NOW, Life

_TEXT = "Implemented in src/a.py using a library with a name. It is long; and it has more. End."


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("One. Two.", 120, "One."),
        ("In auth.service.ts using it", 120, "In auth.service.ts using it"),
        ("Is it?\nYes", 120, "Is it?"),
        ("over\ntwo lines. More", 120, "over two lines."),
        ("aaaa bbbb cccc", 9, "aaaa bbbb"),
        ("aaaa bbbb cccc", 8, "aaaa"),
        ("aaaaaaaaaa", 4, "aaaa"),
        ("", 60, ""),
        ("x" * 120, 120, "x" * 120),
        ("長い" * 40, 60, "長い" * 30),
    ],
)
def test_one_liner(text: str, limit: int, line: str) -> None:
    assert compress.one_liner(text, limit) == line


@pytest.mark.parametrize(
    ("ref", "body"),
    [(3, _TEXT), (9, _TEXT), (1, _TEXT[:52]), (2, _TEXT[:52]), (0, _TEXT[:52])],
)
def test_placement_of_a_decision(ref: int, body: str) -> None:
    one = Entry("decision", "t", "w", _TEXT, ref)
    placed = compress.for_layer1(one)
    assert placed == one._replace(body=body)


def test_compressed_is_at_most_sixty_characters() -> None:
    one = Entry("decision", "t", "w", "word " * 40)
    assert len(compress.for_layer1(one).body) == 59
    assert len(compress.for_layer1(one._replace(ref=1)).body) == 119


def test_a_one_liner_that_looks_like_structure_is_none() -> None:
    life = Life.begin().record(entry.make("observation", "t", "", "x"))
    day = life.state.day.replace("\nx\n", "\n     ### [ref:1] [decision] no\n")
    life = life._replace(state=life.state._replace(day=day)).touch(
        {life.state.day_page.entries[0].id: 1}
    )
    assert [one.title for one in life.succeed().life.state.dusk_page.entries] == ["t"]


@pytest.mark.parametrize(("ref", "tier"), [(0, "lineage"), (1, "Layer 1"), (3, "Layer 1")])
def test_placement_of_an_observation(ref: int, tier: str) -> None:
    one = entry.make("observation", "Seen", "", _TEXT)
    life = Life.begin().record(one).touch({one.id: ref}).succeed().life
    held = {name: found for name, found in life.tiers().items() if found}
    assert list(held) == [tier]
    assert held[tier][0].body == (_TEXT[:52] if ref == 1 else _TEXT)


def test_layers_two_and_three_show_the_title() -> None:
    one = entry.make("decision", "Chose it", "because\nof this", _TEXT)
    life = Life.begin().record(one).succeed().life
    line = "- [ref:0] [decision] Chose it — Why: because\n     of this\n"
    for layer in (2, 3):
        life = life.succeed().life
        assert life.state.dusk_page.layer(layer) == (one._replace(body=""),)
        assert line in life.state.dusk


def test_referenced_in_layer_three_it_stays() -> None:
    one = entry.make("decision", "Old", "because", "x")
    life = Life.begin().record(one)
    for _ in range(9):
        life = life.touch({one.id: 1}).succeed().life
    assert [found.id for found in life.state.dusk_page.layer(3)] == [one.id]


def _many(count: int, why: str, kind: str = "decision") -> Life:
    life = Life.begin()
    for number in range(count):
        life = life.record(entry.make(kind, f"{kind} {number}", why, "x"))
    return life


def test_limits_push_the_lowest_score_down_observations_before_decisions() -> None:
    life = _many(30, "a\nb")
    seen = entry.make("observation", "Seen", "", "x")
    life = life.record(seen)
    first = life.state.day_page.entries[0]
    life = life.touch(
        {seen.id: 1, first.id: 1, **{one.id: 2 for one in life.state.day_page.entries[1:30]}}
    )
    layers = [life.succeed().life.state.dusk_page.layer(number) for number in (1, 2)]
    assert [one.title for one in layers[1]] == [
        "decision 0",
        "decision 1",
        *[f"decision {number}" for number in range(2, len(layers[1]) - 1)],
        "Seen",
    ]
    assert sum(tiers.lines(one, 1) for one in layers[0]) <= LAYERS_MAX[0]


def test_decrees_alone_above_the_limit_are_told() -> None:
    life = _many(40, "a\nb")
    day = life.state.day.replace("[decision]", "[decree] [decision]")
    life = life._replace(state=life.state._replace(day=day))
    life = life.record(entry.make("decision", "No decree", "because", "x"))
    passed = life.succeed()
    page = passed.life.state.dusk_page
    assert len(page.layer(1)) == 40
    assert [one.title for one in page.layer(2)] == ["No decree"]
    assert passed.result.notes == ("decrees alone take 160 of 100 lines of Layer 1",)


def test_a_why_longer_than_its_layer_leaves_a_pointer() -> None:
    one = entry.make("decision", "Long", "\n".join(f"line {n}" for n in range(120)), "x")
    other = entry.make("decision", "Short", "because", "x")
    life = Life.begin().record(one).record(other).succeed().life
    assert [found.title for found in life.state.dusk_page.layer(1)] == ["Short"]
    assert "<!-- in the lineage: [decision] Long (122 lines) -->" in life.state.dusk
    assert [found.entry.why for found in life.ancestors()] == [one.why]
    passed = life.succeed()
    assert "<!-- in the lineage: [decision] Long (122 lines) -->" in passed.life.state.dusk
    assert passed.result.notes == ()


def test_a_megabyte_of_why() -> None:
    one = entry.make("decision", "Huge", "x" * (1 << 20), "y")
    life = Life.begin().record(one)
    assert "1 more:" in life.state.briefing
    assert len(life.state.briefing) < 9000
    for _ in range(7):
        life = life.succeed().life
        held = [found for tier in life.tiers().values() for found in tier if found.id == one.id]
        assert [found.why for found in held] == [one.why]


def test_decree_of_two_sessions_enters_as_written_and_stays() -> None:
    one = entry.make("decision", "Law", "because", _TEXT)
    life = Life.begin().record(one)
    life = life.touch({one.id: 1}, "session-2").touch({one.id: 1}, "session-3")
    for _ in range(3):
        life = life.succeed().life
        assert life.state.dusk_page.layer(1) == (one._replace(decree=True),)


def test_decree_is_judged_in_dusk_before_it_is_compressed() -> None:
    one = entry.make("decision", "Law", "because", "short")
    life = Life.begin().record(one).succeed().life
    life = life.touch({one.id: 1}, "session-2").touch({one.id: 1}, "session-3").succeed().life
    assert life.state.dusk_page.layer(1) == (one._replace(decree=True),)


def _with_copy() -> tuple[Life, Entry]:
    one = entry.make("decision", "Paths", "because", "src/paths.py splits. " + _TEXT)
    git = dawn.Git("main", (), ("src/paths.py",))
    life = Life.begin().record(one).succeed(git).life.succeed(git).life
    assert life.state.dusk_page.layer(2) == (one._replace(body=""),)
    assert one in life.state.day_page.entries, "the copy has the whole text again"
    return life, one


def test_a_referenced_copy_takes_its_originals_place() -> None:
    life, one = _with_copy()
    life = life.touch({one.id: 3}).succeed().life
    assert life.state.dusk_page.layer(1) == (one,)
    assert life.state.dusk_page.layer(3) == ()


def test_a_copy_without_reference_is_dropped() -> None:
    life, one = _with_copy()
    passed = life.succeed()
    assert [found.id for found in passed.life.state.dusk_page.entries] == [one.id]
    assert passed.life.state.dusk_page.layer(3) == (one._replace(body=""),)
    assert [move.target for move in passed.result.moves if move.source == "Day"] == [
        "lineage",
        "dropped",
    ]


def test_an_edited_text_is_kept_in_the_archive() -> None:
    one = entry.make("decision", "Edited", "because", "as recorded")
    life = Life.begin().record(one)
    day = life.state.day.replace("as recorded", "as edited")
    life = life._replace(state=life.state._replace(day=day)).succeed().life
    assert life.state.archive.count(b"as edited") == 1
    for _ in range(6):
        life = life.succeed().life
    assert life.state.archive.count(b"as edited") == 1
    assert "What: as edited" in life.state.lineage.decode()


def test_wisdom_by_path_before_words_and_at_most_ten() -> None:
    life = Life.begin()
    for number in range(12):
        life = life.record(entry.make("decision", f"About widgets {number}", "because", "x"))
    path = entry.make("decision", "By path", "because", "lib/thing.py")
    life = life.record(path).succeed(dawn.Git("feature/widgets", (), ("lib/thing.py",))).life
    taken = life.state.dawn_page.entries
    assert [one.title for one in taken] == ["By path", *(f"About widgets {n}" for n in range(9))]


def test_short_words_match_nothing() -> None:
    assert words.words("fix the api in v2") == frozenset()
    assert words.words("Über-Größe main") == {"über", "größe", "main"}


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("In auth.service.ts.", {"auth.service.ts"}),
        ("see ./src/a-b/c.py:12, and docs/", {"src/a-b/c.py", "docs/"}),
        ("version 1.2.3, e.g. this", set()),
        ("https://example.org/a.html", set()),
    ],
)
def test_paths(text: str, paths: set[str]) -> None:
    assert words.paths(text) == paths


def test_a_dawn_of_no_repository() -> None:
    assert dawn.Git().lines == "- Branch: none (no repository)\n- Uncommitted changes: unknown\n"


def test_a_briefing_counts_what_it_leaves_out() -> None:
    life = _many(300, "because of something that takes some room " * 3)
    text = state.brief(life.state)
    assert len(text) <= 8000
    shown = text.count("\n- decision ")
    assert f"\n{300 - shown} more: " in text


def test_nothing_to_tell() -> None:
    assert state.brief(state.begun("main", NOW)) == ""
