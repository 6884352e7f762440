"""The specification's own examples, read from it: what it shows is what we read and write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from succession.dynasty import ceremony, constants, epithet
from succession.dynasty.files import deviants, entry, lineage, markdown
from succession.dynasty.files.entry import Entry
from succession.dynasty.session import dawn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def specification(shared: Path) -> str:
    """The document."""
    return (shared / "spec/succession-protocol.txt").read_text()


def _block(text: str, start: str) -> str:
    """The first fenced block that begins so."""
    found: list[str] = re.findall(r"```(?:\w*)\n(.*?)```", text, re.DOTALL)
    return next(one for one in found if one.startswith(start))


def test_decision(specification: str) -> None:
    text = _block(specification, "### [ref:5] [decision]")
    (one,) = markdown.parse(text, markdown.DAY).entries
    assert one.why.count("\n") == 1
    assert one.why.endswith("\n     HS256 requires shared secret which breaks zero-trust boundary.")
    assert one.body == "Implemented in auth.service.ts using jose library"
    assert one.block == text


def test_observation(specification: str) -> None:
    text = _block(specification, "### [ref:2] [observation]")
    (one,) = markdown.parse(text, markdown.DAY).entries
    assert (one.kind, one.why, one.ref) == ("observation", "", 2)
    assert one.block == text


def test_decree(specification: str) -> None:
    text = _block(specification, "### [ref:8] [decree]")
    (one,) = markdown.parse(text, markdown.DAY).entries
    assert (one.kind, one.decree, one.ref) == ("decision", True, 8)
    assert one.block == text


def test_dusk(specification: str) -> None:
    text = _block(specification, "# 🌙 Dusk").replace(
        'Claude <N> "<epithet>"', 'Claude 4 "the Swift"'
    )
    page = markdown.parse(text, markdown.DUSK)
    layers = [page.layer(number) for number in (1, 2, 3)]
    assert [len(layer) for layer in layers] == [2, 2, 2]
    assert layers[2][0].why == "Team expertise and simpler debugging"
    assert markdown.dusk('Claude 4 "the Swift"', ((), (), (), ()), layers) == text


def test_dawn(specification: str) -> None:
    told = _block(specification, "# 🌅 Dawn")
    git = dawn.Git("main", (("a" * 40, "one"), ("b" * 40, "two"), ("c" * 40, "three")), ("x.py",))
    shown = [
        one.replace("aaaaaaa", "<hash>") for one in markdown.dawn("T", git.lines, ()).split("\n")
    ]
    fixed = [line for line in told.split("\n") if line and "<" not in line.removeprefix("<!--")]
    assert [line for line in fixed if line != "  - ..."] == [
        line for line in shown if line in fixed
    ]
    assert "- Branch: main" in shown
    assert "  - <hash> one" in shown
    assert "- Uncommitted changes: yes (x.py)" in shown


def test_lineage(specification: str) -> None:
    text = _block(specification, "# 📜 Lineage").replace("<branch>", "main")
    decision, observation = lineage.parse(text)
    assert decision.section == "Claude — main"
    assert (decision.ruler, decision.demoted) == (3, "2026-03-08T14:30:00Z")
    assert lineage.addition(b"", "Claude — main", [decision, observation]).decode() == text
    more = lineage.addition(text.encode(), "Claude — main", [observation]).decode()
    assert more == f"\n{observation.block}", "no second heading of the same branch"
    other = lineage.addition(text.encode(), "Claude — other", [observation]).decode()
    assert other.startswith("\n## Dynasty of Claude — other\n")


def test_deviant(specification: str) -> None:
    told = _block(specification, "### [deviant]")
    text = deviants.filed("", "two truths", ("a line", "an entry"), 1_772_980_200)
    names = [line.partition(":")[0] for line in told.split("\n")[1:] if line]
    assert [line.partition(":")[0] for line in text.split("\n")[3:] if line] == names
    (one,) = deviants.parse(text)
    assert (one.session, one.status, one.description) == (1, "unresolved", "two truths")
    assert one.filed == "2026-03-08T14:30:00Z"


def test_ceremony(specification: str) -> None:
    """Line by line what the specification draws; its right side is not straight, ours is."""
    told = _block(specification, "┌──")
    for mark, value in (("N+1", 5), ("N-2", 2), ("N+2", 6), ("N", 4)):
        told = told.replace(f"<{mark}>", str(value))
    told = told.replace("<OUTGOING EPITHET>", "THE SWIFT").replace("<branch>", "main")
    told = told.replace("<used>", "38").replace("<count>", "2").replace("<max>", "7")
    told = told.replace('Claude 2 "<epithet>"', 'Claude 2 "the Scribe"').replace(
        "<epithet>", "the Swift"
    )
    given = ceremony.Ceremony("Claude", 4, "the Swift", "main", ((2, "the Scribe"),), 38, (7, 3))
    report = ceremony.report(given)
    assert [_words(line) for line in report.split("\n")] == [
        _words(line) for line in told.split("\n")
    ]
    widths = {ceremony.width(line) for line in report.rstrip("\n").split("\n")}
    assert widths == {55}


def _words(line: str) -> list[str]:
    return re.sub(r"[─│┌┐└┘├┤]", " ", line).split()


def test_bar() -> None:
    """By the formula; 46 of 50 is 15 blocks (succession-decisions.md, "ceremony")."""
    assert ceremony.bar(46) == f"[{'█' * 15}░] 46/50"
    assert ceremony.bar(0) == f"[{'░' * 16}] 0/50"
    assert ceremony.bar(60) == f"[{'█' * 16}] 60/50"


def test_no_deviants_and_no_dead() -> None:
    report = ceremony.report(ceremony.Ceremony("Claude", 1, "the Brief", "main", (), 0, ()))
    assert "⚡ Deviants: none" in report
    assert "💀" not in report


@pytest.mark.parametrize("name", ["feature/長い-ブランチ名-🎉", "b" * 300, "e\u0301" * 40])
def test_box_with_wide_and_long_names(name: str) -> None:
    told = ceremony.Ceremony("Gabrièl", 99, "the Gatekeeper", name, ((1, ""), (12, "x")), 50, (12,))
    widths = {ceremony.width(line) for line in ceremony.report(told).rstrip("\n").split("\n")}
    assert len(widths) == 1


def test_constants(specification: str) -> None:
    """Every constant under its own name, with its value."""
    rows = re.findall(r"^\| `([A-Z_0-9]+)` \| ([0-9.]+) \|", specification, re.MULTILINE)
    assert len(rows) == 14
    assert {name: float(value) for name, value in rows} == {
        name: float(getattr(constants, name)) for name, _ in rows
    }


def test_epithet_keywords(specification: str) -> None:
    rows = re.findall(r'^\| "(the \w+)" \| (.+) \|$', specification, re.MULTILINE)
    assert {name: tuple(words.split(", ")) for name, words in rows} == constants.EPITHET_KEYWORDS
    assert [name for name, _ in rows] == list(constants.EPITHET_KEYWORDS), "the first of a tie wins"


def _told(*texts: str) -> list[Entry]:
    return [Entry("observation", text, "", "") for text in texts]


@pytest.mark.parametrize(
    ("texts", "earned"),
    [
        ((), "the Brief"),
        (("zzz",), "the Journeyman"),
        (("BUG bug",), "the Debugger"),
        (("jwt", "refactor"), "the Gatekeeper"),
        (("jwt", "refactor", "readme"), "the Journeyman"),
    ],
)
def test_epithet(texts: tuple[str, ...], earned: str) -> None:
    assert epithet.of(_told(*texts)) == earned


def test_an_epithet_hears_the_why() -> None:
    assert epithet.of([Entry("decision", "x", "csrf", "y")]) == "the Gatekeeper"


def test_why_mark_is_that_of_the_specification(specification: str) -> None:
    assert (
        f"`- [ref:N] [decision] <compressed-what>{entry.WHY_MARK}<verbatim-why>`" in specification
    )
