"""What holds after any number of successions, whatever is recorded and referenced in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from succession.dynasty import steps
from succession.dynasty.files import entry, markdown
from succession.dynasty.session import dawn
from tests.succession.lives import ENTRIES, TEXTS, Life, problems

if TYPE_CHECKING:
    from succession.dynasty.files.entry import Entry

_GIT = dawn.Git("feature/jwt", (("a" * 40, "add jwt"),), ("src/auth/jwt.ts",))
_REIGNS = st.lists(
    st.tuples(st.lists(ENTRIES, max_size=5), st.lists(st.integers(0, 4), max_size=12)),
    min_size=1,
    max_size=9,
)


def lived(reigns: list[tuple[list[Entry], list[int]]]) -> list[Life]:
    """A life after each of these reigns: what is recorded in each, and what scores the entries
    that are there get, in their order.
    """
    life, after = Life.begin(), []
    for number, (entries, scores) in enumerate(reigns):
        for one in entries:
            life = life.record(one)
        live = [*life.state.dusk_page.entries, *life.state.day_page.entries]
        refs = {one.id: score for one, score in zip(live, scores, strict=False)}
        life = life.touch(refs, f"session-{number + 2}").succeed(_GIT).life
        after.append(life)
    return after


@given(_REIGNS)
@settings(max_examples=60)
def test_nothing_is_lost_or_changed_and_limits_hold(
    reigns: list[tuple[list[Entry], list[int]]],
) -> None:
    for life in lived(reigns):
        assert problems(life) == []


@given(_REIGNS)
@settings(max_examples=40)
def test_decrees_never_move(reigns: list[tuple[list[Entry], list[int]]]) -> None:
    known: dict[str, tuple[str, Entry]] = {}
    for life in lived(reigns):
        held = {one.id: (name, one) for name, found in life.tiers().items() for one in found}
        for one, (name, decree) in known.items():
            assert held[one][0] == name
            assert held[one][1]._replace(candidate=False) == decree._replace(candidate=False)
        known = {one: found for one, found in held.items() if found[1].decree and found[0] != "Day"}


@given(ENTRIES, st.integers(1, 14))
@settings(max_examples=40)
def test_a_why_is_the_same_for_ever(one: Entry, successions: int) -> None:
    life = Life.begin().record(one)
    for _ in range(successions):
        life = life.succeed(_GIT).life
    found = [held for entries in life.tiers().values() for held in entries if held.id == one.id]
    assert [held.why for held in found] == [one.why]


@given(_REIGNS)
@settings(max_examples=20)
def test_the_same_input_gives_the_same_bytes(reigns: list[tuple[list[Entry], list[int]]]) -> None:
    life = lived(reigns)[-1]
    first, second = (steps.succeed(life.state, _GIT, "again", life.now) for _ in range(2))
    assert first == second


@given(TEXTS, st.sampled_from([markdown.DAY, markdown.DUSK, markdown.DAWN]))
@settings(max_examples=400)
def test_parse_then_write_is_the_identity(text: str, page: str) -> None:
    assert markdown.parse(text, page).raw == text


@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_come_back(data: bytes) -> None:
    assert entry.to_bytes(markdown.parse(entry.to_text(data), markdown.DAY).raw) == data


@given(ENTRIES, TEXTS)
@settings(max_examples=300)
def test_an_entry_is_read_back_as_it_was_made(one: Entry, around: str) -> None:
    text = f"# ☀️ Day — Claude 3\n\n{one.block}\n### [ref:1] [observation] next\n"
    block = markdown.parse(text, markdown.DAY)
    assert block.entries[0] == one
    assert len(block.entries) == 2
    items = markdown.parse(one.line + one.line + f"\nwords\n{around}", markdown.DUSK)
    assert items.entries[:2] == (one._replace(body=""),) * 2


def test_entries_that_are_equal_keep_their_order() -> None:
    life = Life.begin()
    for number in range(60):
        life = life._replace(now=1_764_500_000)
        life = life.record(entry.make("decision", f"Number {number:02}", "because", "x"))
    for _ in range(3):
        life = life.succeed().life
        for layer in (1, 2, 3):
            titles = [one.title for one in life.state.dusk_page.layer(layer)]
            assert titles == sorted(titles)
    gone = [one.entry.title for one in life.ancestors()]
    assert gone == sorted(gone)


@pytest.mark.timeout(120)
def test_ten_thousand_entries() -> None:
    """A succession of them all takes seconds, not minutes, and loses none."""
    life = Life.begin()
    text = "".join(
        f"### [decision] Number {number}\nWhy: because of {number}\n\n" for number in range(10_000)
    )
    life = life._replace(state=life.state._replace(day=life.state.day + "\n" + text))
    life = life.succeed(_GIT).life
    assert problems(life) == []
    assert sum(map(len, life.tiers().values())) == 10_000
