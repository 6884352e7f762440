"""The docs lead to what is there: links, named tests, and a test for every guarantee."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)[^)]*\)|!\[[^\]]*\]\(([^)\s]+)[^)]*\)")
_TEST = re.compile(r"`(tests/[\w/.-]+\.py)::(\w+)`")
_THREAT_MODEL = PROJECT / "docs/threat-model.md"


def _pages() -> list[Path]:
    root = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return root + sorted((PROJECT / "docs").rglob("*.md"))


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    """The page without its code blocks, in which brackets are no links."""
    return re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def _dead_links(page: Path) -> list[str]:
    targets = [first or second for first, second in _LINK.findall(_prose(page))]
    local = [t.partition("#")[0] for t in targets if not re.match(r"[a-z]+:", t)]
    return [f"{page.name}: {t}" for t in local if t and not (page.parent / t).exists()]


def guarantees(text: str) -> list[str]:
    """The items of every section whose heading says "Guarantee…", each with its further lines.

    An item is a list item, numbered or not, at the left margin, or a row of a table.
    """
    items: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("#"):
            inside = bool(re.match(r"#+ +guarantee", line, re.IGNORECASE))
        elif inside and re.match(r"(?:[-*]|\d+\.) |\|", line):
            items.append(line)
        elif inside and items and line.startswith(" "):
            items[-1] += "\n" + line
    separators = {i for i, item in enumerate(items) if re.fullmatch(r"[|:\- ]+", item)}
    heads = {i - 1 for i in separators}
    return [item for i, item in enumerate(items) if i not in separators | heads]


def _exists(file: str, name: str) -> bool:
    path = PROJECT / file
    if not path.is_file():
        return False
    tree = ast.parse(_text(path))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree))


def test_relative_links_lead_somewhere() -> None:
    assert [link for page in _pages() for link in _dead_links(page)] == []


def test_tests_named_in_the_docs_exist() -> None:
    named = [(page.name, *test) for page in _pages() for test in _TEST.findall(_text(page))]
    assert [f"{page}: {f}::{n}" for page, f, n in named if not _exists(f, n)] == []


def test_every_guarantee_names_its_test() -> None:
    promised = guarantees(_text(_THREAT_MODEL))
    assert promised
    assert [item for item in promised if not _TEST.search(item)] == []


_SAMPLE = """\
## Assumptions
- a
## Guarantees
Words.
1. one
   goes on `tests/a.py::test_b`
- two

| guarantee | test |
| --- | --- |
| three | `tests/a.py::test_c` |
## Not guaranteed
- b
"""


def test_guarantees_are_found_in_lists_and_tables() -> None:
    found = guarantees(_SAMPLE)
    assert [re.findall("one|two|three", item) for item in found] == [["one"], ["two"], ["three"]]
    assert [bool(_TEST.search(item)) for item in found] == [True, False, True]


@pytest.mark.parametrize("link", ["[a](missing.md)", "[a](missing.md#part)", "![a](missing.png)"])
def test_dead_link_is_found(tmp_path: Path, link: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{link} [b](page.md) [c](#part) [d](https://example.org/x)\n")
    assert len(_dead_links(page)) == 1
