"""Runs tests and benchmarks, then tells for each line of shows.toml how it went."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "build/tests.xml"  # scripts/test writes it
BENCH = ROOT / "bench/RESULTS.md"  # bench/run writes it
EVIDENCE = ROOT / "docs/evidence.md"
SHOWS = ROOT / "scripts/shows.toml"


def main() -> None:
    """Run, tell, and fail where a line neither passes nor names its reason."""
    commit = _said("git", "rev-parse", "HEAD")
    begun = time.monotonic()
    for program in ("scripts/test", "bench/run"):
        subprocess.run([ROOT / program], cwd=ROOT, check=False)  # what failed is in what it wrote
    hours = (time.monotonic() - begun) / 3600
    cases = read_tests(TESTS.read_text(encoding="utf-8"))
    bench = BENCH.read_text(encoding="utf-8")
    told = [told_of(line, cases, read_rows(bench)) for line in read_lines()]
    EVIDENCE.write_text(document(told, commit, hours, cases, bench), encoding="utf-8")
    print("\n".join(map(row, told)))
    sys.exit(any(one.verdict == FAILED for one in told))


PASS, SHORT, ELSEWHERE, FAILED = "pass", "falls short", "not on this machine", "FAILED"


class Line(NamedTuple):
    """One line of shows.toml."""

    of: str
    number: str
    says: str
    tests: tuple[str, ...] = ()  # files, folders, or FILE::TEST
    bench: tuple[str, ...] = ()  # cases of bench/run
    short: str = ""


class Case(NamedTuple):
    """One test that ran. node: FILE::TEST without its parameters."""

    node: str
    outcome: str  # "passed", "failed", "skipped"
    seconds: float


class Told(NamedTuple):
    """A line, what was measured for it, and its verdict."""

    line: Line
    measured: str
    verdict: str


def read_lines() -> list[Line]:
    """The lines, in their order. Raises TypeError for a member that a line does not have."""
    with SHOWS.open("rb") as file:
        found = tomllib.load(file)["line"]
    return [Line(**one) for one in found]


def read_tests(xml: str) -> list[Case]:
    """What a JUnit report says of each test."""
    root = ET.fromstring(xml)  # noqa: S314  # pytest wrote it a moment ago
    return [_case(one) for one in root.iter("testcase")]


def _case(one: ET.Element) -> Case:
    module = re.sub(r"\.[A-Z].*", "", one.get("classname", "")).replace(".", "/") + ".py"
    kinds = {child.tag for child in one}
    outcome = "skipped" if "skipped" in kinds else "failed" if kinds & _BAD else "passed"
    name = one.get("name", "").partition("[")[0]
    return Case(f"{module}::{name}", outcome, float(one.get("time", "0")))


_BAD = {"failure", "error"}


def read_rows(text: str) -> dict[str, list[list[str]]]:
    """Case → rows with a target of bench/RESULTS.md: what, median, against, ratio, target, met."""
    rows: dict[str, list[list[str]]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("## "):
            name = line.removeprefix("## ")
        cells = [one.strip() for one in line.strip("|").split("|")]
        if len(cells) == _CELLS and cells[4].startswith("≤"):
            rows.setdefault(name, []).append(cells)
    return rows


_CELLS = 6


def told_of(line: Line, cases: list[Case], rows: dict[str, list[list[str]]]) -> Told:
    """What tests and benchmarks say of a line."""
    mine = [one for one in cases if any(belongs(one.node, named) for named in line.tests)]
    bounded = [one for case in line.bench for one in rows.get(case, [])]
    measured = [_tests_told(mine)] if line.tests else []
    measured += [f"{what}: {ratio} ({target})" for what, _, _, ratio, target, _ in bounded]
    return Told(line, "; ".join(measured) or "nothing", verdict(line, mine, bounded))


def belongs(node: str, named: str) -> bool:
    """Whether a test is one of those that a line names."""
    return node == named or node.startswith((f"{named}::", f"{named}/"))


def _tests_told(mine: list[Case]) -> str:
    bad = [one.node.partition("::")[2] for one in mine if one.outcome == "failed"]
    told = f"{len(mine)} tests, {sum(one.seconds for one in mine):.0f} s"
    return told + (f", failed: {', '.join(bad)}" if bad else "")


def verdict(line: Line, mine: list[Case], bounded: list[list[str]]) -> str:
    """FAILED where something failed, or missed its target without a reason; or nothing ran."""
    outcomes = {one.outcome for one in mine}
    missed = any(one[5] != "met" for one in bounded)
    absent = (line.tests and not mine) or (line.bench and not bounded)
    if "failed" in outcomes or absent or (missed and not line.short):
        return FAILED
    if "skipped" in outcomes:
        return ELSEWHERE
    return SHORT if line.short else PASS


def row(told: Told) -> str:
    """One line of the table."""
    line = told.line
    return f"| {line.number} | {line.of} | {line.says} | {told.measured} | {told.verdict} |"


def document(told: list[Told], commit: str, hours: float, cases: list[Case], bench: str) -> str:
    """docs/evidence.md."""
    machine = re.search(r"^\d+ cores .*$", bench, re.MULTILINE)
    short = [f"- **{one.line.number}** {one.line.short}" for one in told if one.verdict == SHORT]
    counts = ", ".join(
        f"{sum(one.verdict == kind for one in told)} {kind}"
        for kind in (PASS, SHORT, ELSEWHERE, FAILED)
    )
    return _DOCUMENT.format(
        day=time.strftime("%Y-%m-%d", time.gmtime()),
        commit=commit,
        machine=machine[0] if machine else "unknown",
        tests=len(cases),
        hours=hours,
        counts=counts,
        rows="\n".join(map(row, told)),
        short="\n".join(short) or "Nothing.",
    )


_DOCUMENT = """\
# Evidence

<!-- scripts/prove writes this page. -->

What each capability shows, as `scripts/prove` found it on {day} at commit
`{commit}`: {tests} tests and all of `bench/run`, in {hours:.1f} hours.
Of the lines: {counts}.

Machine: {machine}

| line | capability | what is shown | measured (ratio to its reference, and target) | |
| --- | --- | --- | --- | --- |
{rows}

A line's tests and benchmarks are named in `scripts/shows.toml`; how times are measured stands in
[bench/RESULTS.md](../bench/RESULTS.md).

## What falls short, and why

{short}
"""


def _said(*command: str) -> str:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


if __name__ == "__main__":
    main()
