"""What Claude Code's records say of tokens, and what its settings say of the window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture.agents import Window, claude
from savepoint.capture.agents.claude_scan import Scan
from tests.capture.claude_records import at, fed, line_of

if TYPE_CHECKING:
    from pathlib import Path


def answer(model: str = "claude-opus-4-5", **usage: object) -> dict[str, Any]:
    return {"type": "assistant", "message": {"model": model, "usage": usage, "content": []}}


USED = answer(
    input_tokens=10,
    cache_read_input_tokens=100_000,
    cache_creation_input_tokens=490,
    output_tokens=7,
)


def test_tokens_of_a_real_transcript(shared: Path) -> None:
    data = (shared / "transcripts/claude-2.1.5-two-compactions.jsonl").read_bytes()
    scan = Scan.empty()
    scan.feed(data)
    line = at(data, scan.end().usage)
    usage = json.loads(line)["message"]["usage"]
    told = claude.tokens(scan.end(), line, Window(environment=200_000))
    assert told.used == (
        usage["input_tokens"]
        + usage["cache_read_input_tokens"]
        + usage["cache_creation_input_tokens"]
    )
    assert told.budget == 167_000
    assert told.source == "transcript usage; window from environment"


@pytest.mark.parametrize(
    ("window", "budget", "origin"),
    [
        (Window(), 167_000, "window from the table of models"),
        (Window(environment=200_000), 167_000, "window from environment"),
        (Window(environment=50_000), 67_000, "window from environment"),  # raised to 100,000
        (Window(settings=500_000), 467_000, "window from settings"),
        (Window(environment=200_000, settings=100_000), 167_000, "window from environment"),
        (Window(status_line=1_000_000), 967_000, "window from status line"),
        (Window(environment=300_000, status_line=200_000), 167_000, "window from status line"),
        (Window(environment=200_000, status_line=1_000_000), 167_000, "window from environment"),
        (Window(status_line=20_000), None, "window from status line"),
    ],
)
def test_the_budget_is_where_the_client_compacts(
    window: Window, budget: int | None, origin: str
) -> None:
    told = claude.tokens(fed(USED), line_of(USED), window)
    assert (told.used, told.budget) == (100_500, budget)
    assert told.remaining == (None if budget is None else max(0, budget - 100_500))
    assert told.percent == (None if budget is None else 100_500 * 100 // budget)
    assert told.source == f"transcript usage; {origin}"


def test_a_model_id_may_tell_the_window() -> None:
    told = claude.tokens(fed(answer("claude-opus-4-8[1m]", input_tokens=1)), None, Window())
    assert (told.budget, told.used, told.remaining, told.percent) == (967_000, None, None, None)
    assert told.source == "no usage known; window from model id"


@pytest.mark.parametrize(
    "record",
    [
        answer("<synthetic>", input_tokens=5),
        {**USED, "isSidechain": True},
        answer(input_tokens="5"),
        answer(output_tokens=5),
        answer(input_tokens=True),
        answer(input_tokens=-5),
        answer(input_tokens=10**30),
        {"type": "user", "message": USED["message"]},
        {"type": "assistant", "message": "x"},
    ],
)
def test_what_is_no_usage(record: dict[str, Any]) -> None:
    assert fed(record).usage is None
    assert claude.tokens(fed(), line_of(record), Window()).used is None


@pytest.mark.parametrize(
    ("value", "window"),
    [("200000", 200_000), (" 200000\n", 200_000), ("200k", None), ("-1", None), ("", None),
     ("9" * 5000, None), ("٣", None)],
)  # fmt: skip
def test_window_of_the_environment(value: str, window: int | None) -> None:
    environment = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": value, "ANTHROPIC_API_KEY": "x"}
    assert claude.environment_window(environment) == window
    assert claude.environment_window({}) is None


@pytest.mark.parametrize(
    ("model", "used", "budget"),
    [
        ("claude-opus-5-5", 1, 967_000),
        ("claude-opus-4-8", 1, 167_000),
        ("claude-opus-4-8", 200_001, 967_000),  # it must be the variant with a larger window
        ("claude-opus-5-5", 1_100_000, 967_000),
        ("another-model", 1, None),
    ],
)
def test_the_table_of_models(model: str, used: int, budget: int | None) -> None:
    record = answer(model, input_tokens=used)
    told = claude.tokens(fed(record), line_of(record), Window())
    assert (told.used, told.budget) == (used, budget)


@pytest.mark.parametrize(
    ("window", "budget"),
    [
        (Window(percent=50), 90_000),  # measured: claude-e2e.md 4
        (Window(status_line=1_000_000, percent=50), 490_000),
        (Window(percent=100), 167_000),  # it can only lower
    ],
)
def test_a_percentage_lowers_the_budget(window: Window, budget: int) -> None:
    assert claude.tokens(fed(USED), line_of(USED), window).budget == budget


@pytest.mark.parametrize(
    ("value", "percent"), [("50", 50), ("0", None), ("101", None), ("x", None)]
)
def test_percentage_of_the_environment(value: str, percent: int | None) -> None:
    assert claude.environment_percent({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": value}) == percent


def test_window_of_the_settings(tmp_path: Path) -> None:
    """The client prefers the project's local settings, then the project's, then the user's."""
    config, project = tmp_path / "config", tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    config.mkdir()
    found = []
    for path, text in (
        (config / "settings.json", '\ufeff{"autoCompactWindow": 100000}'),
        (project / ".claude/settings.json", '{"autoCompactWindow": 200000}'),
        (project / ".claude/settings.local.json", '{"autoCompactWindow": 300000}'),
        (project / ".claude/settings.local.json", '{"autoCompactWindow": "x"}'),
        (project / ".claude/settings.json", "{"),
        (config / "settings.json", "[]"),
    ):
        path.write_text(text, encoding="utf-8")
        found.append(claude.settings_window(str(config), str(project)))
    assert found == [100_000, 200_000, 300_000, 200_000, 100_000, None]
