"""Pytest plugin: every skip has a reason, is counted, and is one that the profile expects.

A test that quietly skips where it could run proves nothing (so borg's selftest counts its tests).
`--skip-profile NAME` compares with the table NAME of `tests/expected-skips.toml`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ANY = "any"  # in place of a count: machines of that profile differ
EXPECTED = "tests/expected-skips.toml"  # below the root folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skip-profile",
        metavar="NAME",
        help=f"fail unless the skips are those of the table NAME of {EXPECTED}; for whole runs",
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # the controller of xdist sees the reports of all workers
    profile = config.getoption("--skip-profile")
    expected = None if profile is None else load_profile(config.rootpath, profile)
    config.pluginmanager.register(CountedSkips(expected), "counted-skips")


def load_profile(root: Path, name: str) -> Mapping[str, object]:
    """Reason → count, or ANY. Raises pytest.UsageError for a profile that does not stand there."""
    with (root / EXPECTED).open("rb") as file:
        profiles = tomllib.load(file)
    if name not in profiles:
        raise pytest.UsageError(f"no profile {name!r} in {EXPECTED}, only {', '.join(profiles)}")
    profile: Mapping[str, object] = profiles[name]
    return profile


def differences(expected: Mapping[str, object], seen: Mapping[str, int]) -> list[str]:
    """What is wrong with these skips, a line each."""
    lines = [
        f"{reason}: {seen.get(reason, 0)} skipped, expected {count}"
        for reason, count in expected.items()
        if count not in (ANY, seen.get(reason, 0))
    ]
    unknown = sorted(set(seen) - set(expected))
    return lines + [f"{reason}: {seen[reason]} skipped, expected none" for reason in unknown]


class CountedSkips:
    """Counts the skips of a run by reason, prints them, fails the run where others are expected."""

    def __init__(self, expected: Mapping[str, object] | None) -> None:
        self.expected = expected
        self.reasons: dict[str, str] = {}  # of each skipped test or module, by its node id

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.reasons[report.nodeid] = reason.removeprefix("Skipped: ").strip() or "no reason"

    def _differences(self) -> list[str]:
        return [] if self.expected is None else differences(self.expected, self._seen())

    def _seen(self) -> Counter[str]:
        return Counter(self.reasons.values())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._differences() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, count in sorted(self._seen().items()):
            terminalreporter.write_line(f"skipped {count}: {reason}")
        for line in self._differences():
            terminalreporter.write_line(f"unexpected skips: {line}", red=True)
