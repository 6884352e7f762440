"""What is recorded: texts as they were given, whole or refused; what recurs; what is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import UsageError
from succession.dynasty import journal, search
from succession.dynasty.constants import LAYER_CHARS
from succession.dynasty.files import archive, entry, markdown
from succession.dynasty.journal import Change
from tests.succession.lives import Life, problems

if TYPE_CHECKING:
    from pathlib import Path

    from succession.dynasty.files.entry import Entry
    from tests.succession.scene import Scene

_FIRST = "Redis drops keys"


def test_a_why_of_an_observation_is_refused() -> None:
    """It was dropped, and an empty entry acknowledged."""
    with pytest.raises(UsageError, match="no Why"):
        entry.make("observation", "t", "lost", "")


@pytest.mark.parametrize(
    "further", ["", "\r", "# heading", "- [ref:1] [decision] x", "### [decision] y", "Why: again"]
)
def test_a_why_on_stdin_goes_on_to_its_what(further: str) -> None:
    """It ended at an empty line or a heading, and the rest became a What."""
    why = f"first\n{further}\nlast"
    told = entry.make_of("decision", "t", f"Why: {why}\n\nWhat: done\nfully\n")
    assert told == entry.make("decision", "t", why, "done\nfully")
    assert entry.make_of("decision", "t", f"Why: {why}\n") == entry.make("decision", "t", why, "")
    (held,) = markdown.parse(told.block, markdown.DAY).entries
    assert held == told


def test_what_stands_before_a_why_on_stdin_is_kept() -> None:
    told = entry.make_of("decision", "t", "What: done\nfully\nWhy: because\n")
    assert (told.why, told.body) == ("because", "done\nfully")
    with pytest.raises(UsageError, match="has a Why"):
        entry.make_of("decision", "t", "What: no reason")


def test_a_why_that_is_pasted_from_a_day_is_indented_once() -> None:
    one = entry.make("decision", "t", "a\n\n  b\n\nc", "x")
    text = one.block.partition("\n")[2]
    assert entry.make_of("decision", "t", text) == one
    stripped = text.replace(f"\n{entry.INDENT}\n", "\n\n")  # as editors do
    assert entry.make_of("decision", "t", stripped) == one


def test_a_why_begins_as_it_was_given() -> None:
    """Its first blanks were dropped, where the help says verbatim."""
    one = entry.make("decision", "t", "   w\n\n", "")
    assert one.why == "   w"
    for text in (one.block, one.line):
        (held,) = markdown.parse(text, markdown.DAY).entries
        assert held == one


def test_a_nul_is_refused() -> None:
    """It became two other characters without a word."""
    for why, body in (("a\0b", ""), ("a", "b\0")):
        with pytest.raises(UsageError, match="NUL"):
            entry.make("decision", "t", why, body)


def _seen(text: str, title: str = _FIRST) -> Entry:
    return entry.make("observation", title, "", text)


def test_an_observation_that_recurs_is_another_one() -> None:
    """Its text was refused, for ever once the first was in the lineage."""
    life = Life.begin()
    for night in ("first", "second"):
        life = life._replace(recorded={}).record(_seen(f"{night} night"))
    titles = [one.title for one in life.state.day_page.entries]
    assert titles == [_FIRST, f"{_FIRST} (2)"]
    life = life.succeed().life._replace(recorded={}).record(_seen("third night"))
    life = life._replace(recorded={}).record(_seen("another", f"{_FIRST} (2)"))
    titles = [one.title for one in life.state.day_page.entries if "night" in one.body]
    assert titles == [f"{_FIRST} (3)"]
    life = life._replace(recorded={}).succeed().life
    assert problems(life) == []
    for text in ("first night", "second night", "third night", "another"):
        assert text in life.state.lineage.decode()
        with pytest.raises(UsageError, match="the lineage has an entry of that title and text"):
            life.record(_seen(text, f"{_FIRST} (2)" if text == "another" else _FIRST))


def test_a_decision_that_recurs_is_told_what_to_do() -> None:
    one = entry.make("decision", "t", "because", "x")
    life = Life.begin().record(one)._replace(recorded={})
    with pytest.raises(UsageError, match="Day has") as caught:
        life.record(one._replace(body="y"))
    assert "edited there" in caught.value.hint
    for _ in range(7):
        life = life.succeed().life
    with pytest.raises(UsageError, match="the lineage has") as caught:
        life.record(one._replace(body="y"))
    assert "edited" not in caught.value.hint, "the lineage is only appended to"


def _edited(life: Life, before: str, after: str) -> Life:
    return life._replace(state=life.state._replace(day=life.state.day.replace(before, after)))


def test_what_was_written_last_is_in_the_lineage() -> None:
    """Edited to B, which a turn has seen, and back to A: the lineage had B, and search denied A."""
    from succession.dynasty import record

    life = _edited(Life.begin().record(_seen("text A")), "text A", "text B")
    done = record.welcome(life.state, life.now)
    life = life._replace(
        state=done.state._replace(archive=life.state.archive + done.archive), recorded={}
    )
    earlier = search.search(life.state, "text A")
    assert [one.where for one in earlier] == ["an earlier text of main, Claude 1; now in Day"]
    life = _edited(life, "text B", "text A").succeed().life
    (one,) = life.ancestors()
    assert one.entry.body == "text A"
    kept = [one.entry for one in archive.read(life.state.archive)]
    assert [one.body for one in kept if one.title == _FIRST] == ["text A", "text B", "text A"]
    (found,) = search.search(life.state, "text B")
    assert found.where == "an earlier text of main, Claude 1; now in the lineage"
    before = life.state.archive
    assert life.succeed().life.state.archive.count(b"text") == before.count(b"text")


def test_a_text_that_looks_like_facts_of_the_lineage_is_text() -> None:
    """Two lines below a header are ours; further ones were swallowed as well."""
    text = "Demoted: yesterday\nOriginal ref: 77\nreal text"
    life = Life.begin().record(_seen(text)).succeed().life
    (one,) = life.ancestors()
    assert (one.entry.body, one.entry.ref) == (text, 0)
    assert one.demoted.startswith("20")
    assert problems(life) == []


def test_an_entry_that_is_too_long_is_refused() -> None:
    most = limits.DYNASTY_ENTRY_BYTES
    entry.make("decision", "t", "x" * (most - 100), "")
    for why, body in (
        ("x" * most, ""),
        ("x", "é" * (most // 2)),
        ("x" + "\n" * (most // 5) + "x", ""),
    ):
        with pytest.raises(UsageError, match=f"at most {most} bytes"):
            entry.make("decision", "t", why, body)


def test_a_file_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two Whys of 40 and 30 MB were acknowledged, and every command failed from then on."""
    monkeypatch.setattr(limits, "DYNASTY_PAGE_BYTES", 100)
    monkeypatch.setattr(journal, "FILE_BYTES", 300)
    (tmp_path / "log").write_bytes(b"x" * 200)
    for change in (
        Change({"day.md": b"x" * 101}, {}),
        Change({}, {"log": b"x" * 101}),
        Change({"day.md": b"x"}, {"log": b"x" * 100, "other": b"x" * 200}),
    ):
        with pytest.raises(UsageError, match="bytes, and"):
            journal.commit(str(tmp_path), {}, change)
        assert [one.name for one in tmp_path.iterdir()] == ["log"]
    journal.commit(str(tmp_path), {}, Change({"day.md": b"x" * 100}, {}))


def test_a_journal_of_a_long_text_is_finished(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 4 MiB it was taken for damaged by whoever came after a kill."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_append", killed)
        with pytest.raises(KeyboardInterrupt):
            scene.record("Long", "x" * (limits.DYNASTY_ENTRY_BYTES - 1000))
    assert (scene.folder / ".journal").stat().st_size > 4 * limits.MIB
    assert [one.title for one in scene.state.day_page.entries] == ["Long"]


def test_dusk_stays_such_that_it_can_be_read() -> None:
    """Its limits count lines, and a line may be long."""
    life = Life.begin()
    third = LAYER_CHARS // 3
    for number in range(5):
        life = life.record(entry.make("decision", f"Long {number}", "x" * third, "y"))
    for _ in range(3):
        life = life.succeed().life
        for number in (1, 2, 3):
            layer = life.state.dusk_page.layer(number)
            assert sum(len(one.in_layer(number)) for one in layer) <= LAYER_CHARS
        assert problems(life) == []
    assert life.ancestors(), "what has no room in the third"
