"""scripts/shows.toml names tests and benchmarks that are there; prove believes no absence."""

from __future__ import annotations

import re

import pytest

from bench.program import CASES
from scripts import prove
from tests.structure.sources import PROJECT

_LINES = prove.read_lines()


@pytest.mark.parametrize("line", _LINES, ids=lambda line: line.number)
def test_a_line_names_what_is_there(line: prove.Line) -> None:
    for named in line.tests:
        path, _, test = named.partition("::")
        assert (PROJECT / path).exists(), named
        if test:
            assert f"def {test}(" in (PROJECT / path).read_text(encoding="utf-8"), named
    assert set(line.bench) <= set(CASES)
    assert line.tests or line.bench


def test_each_line_stands_once_in_order() -> None:
    numbers = [tuple(map(int, line.number.split("."))) for line in _LINES]
    assert numbers == sorted(set(numbers))


_LINE = prove.Line("a", "1.1", "it works", ("tests/a.py::test_one",), ("fast",))
_MET = "## fast\n\n| it | 1 ms | that | 2.00 | ≤ 3 | met |\n"
_MISSED = "## fast\n\n| it | 1 ms | that | 4.00 | ≤ 3 | **missed** |\n"


def _report(child: str = "", name: str = "test_one[x]") -> str:
    return f'<r><testcase classname="tests.a" name="{name}" time="2">{child}</testcase></r>'


@pytest.mark.parametrize(
    ("line", "xml", "bench", "verdict"),
    [
        (_LINE, _report(), _MET, prove.PASS),
        (_LINE, _report(), _MISSED, prove.FAILED),
        (_LINE._replace(short="why"), _report(), _MISSED, prove.SHORT),
        (_LINE._replace(short="why"), _report("<failure/>"), _MET, prove.FAILED),
        (_LINE, _report("<error/>"), _MET, prove.FAILED),
        (_LINE, _report("<skipped/>"), _MET, prove.ELSEWHERE),
        (_LINE, _report(name="test_one_more"), _MET, prove.FAILED),
        (_LINE, _report(), "", prove.FAILED),
    ],
)
def test_verdict(line: prove.Line, xml: str, bench: str, verdict: str) -> None:
    told = prove.told_of(line, prove.read_tests(xml), prove.read_rows(bench))
    assert told.verdict == verdict


def test_every_row_with_a_target_is_read() -> None:
    text = (PROJECT / "bench/RESULTS.md").read_text(encoding="utf-8")
    rows = sum(len(found) for found in prove.read_rows(text).values())
    assert rows == len(re.findall(r"\| (?:met|\*\*missed\*\*) \|$", text, re.MULTILINE)) > 0
