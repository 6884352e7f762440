"""What a session starts with, and what a change of it calls for: scoped and imported rules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.agents.claude_imports import imported
from savepoint.capture.guidance import guidance
from savepoint.core import limits
from succession.handoff import trigger

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.capture.guidance import Guidance
    from savepoint.core.strict_json import Json

SCOPED = '---\npaths:\n  - "src/**"\n---\nuse tabs\n'


class Rules:
    """A project's guidance; `calls_for` says what differs from what it was at `start`."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "p"
        self.config = folder / "c"
        self.started: list[Guidance] = []

    def write(self, name: str, text: str) -> None:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def now(self) -> list[Guidance]:
        return guidance(str(self.project), str(self.config))

    def start(self) -> None:
        self.started = self.now()

    def calls_for(self) -> list[tuple[str, str, str, str]]:
        entries: list[Json] = [dict(one._asdict()) for one in self.started]
        roots = trigger.Roots(str(self.project), str(self.config))
        found = trigger.changes({"guidance": entries}, {}, self.now(), [], trigger.kinds(), roots)
        return [(roots.name(one.path), *one[1:]) for one in found]


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    made = Rules(tmp_path)
    made.write("CLAUDE.md", "be brief")
    return made


def test_a_scoped_rule_calls_for_a_reread_at_most(rules: Rules) -> None:
    rules.write(".claude/rules/p.md", SCOPED)
    rules.start()
    rules.write(".claude/rules/p.md", SCOPED + "and spaces\n")
    rules.write(".claude/rules/new.md", SCOPED)
    assert rules.calls_for() == [
        ("project/.claude/rules/new.md", "document", "added", "reread"),
        ("project/.claude/rules/p.md", "document", "changed", "reread"),
    ]


@pytest.mark.parametrize(("before", "after"), [(SCOPED, "use tabs"), ("use tabs", SCOPED)])
def test_a_rule_that_is_scoped_no_more_or_only_now_was_or_is_injected(
    rules: Rules, before: str, after: str
) -> None:
    rules.write(".claude/rules/p.md", before)
    rules.start()
    rules.write(".claude/rules/p.md", after)
    assert rules.calls_for() == [
        ("project/.claude/rules/p.md", "always-on rule", "changed", "successor")
    ]


def test_a_scoped_rule_kept_as_a_rule_before_has_not_changed(rules: Rules) -> None:
    rules.write(".claude/rules/p.md", SCOPED)
    rules.started = [one._replace(kind="rule") for one in rules.now()]
    assert rules.calls_for() == []


def test_a_scoped_safety_rule_is_a_safety_rule(rules: Rules) -> None:
    rules.write(".claude/rules/safety.md", SCOPED)
    rules.start()
    rules.write(".claude/rules/safety.md", SCOPED + "x")
    (found,) = rules.calls_for()
    assert found[1:] == ("safety rule", "changed", "successor")


def test_what_a_rule_imports_is_always_on(rules: Rules) -> None:
    rules.write("CLAUDE.md", "read @docs/x.md and @missing.md")
    rules.write("docs/x.md", "see @more/y.md")
    rules.write("docs/more/y.md", "y")
    rules.write("docs/z.md", "nobody imports it")
    rules.start()
    rules.write("docs/more/y.md", "why")
    rules.write("docs/z.md", "changed")
    assert rules.calls_for() == [
        ("project/docs/more/y.md", "always-on rule", "changed", "successor")
    ]


def test_a_session_from_before_imports_were_kept_is_not_stale_for_it(rules: Rules) -> None:
    rules.write("CLAUDE.md", "read @docs/x.md")
    rules.write("docs/x.md", "x")
    rules.started = [one for one in rules.now() if one.kind != "imported_rule"]
    assert rules.calls_for() == []


def test_an_import_that_is_gone_was_removed(rules: Rules) -> None:
    rules.write("CLAUDE.md", "read @docs/x.md")
    rules.write("docs/x.md", "x")
    rules.start()
    rules.write("CLAUDE.md", "read nothing")
    assert [one[::2] for one in rules.calls_for()] == [
        ("project/CLAUDE.md", "changed"),
        ("project/docs/x.md", "removed"),
    ]


def test_a_rule_that_cannot_be_read_was_not_removed(rules: Rules) -> None:
    rules.write("CLAUDE.local.md", "mine")
    rules.start()
    (rules.project / "CLAUDE.md").unlink()
    os.mkfifo(rules.project / "CLAUDE.md")
    rules.write("CLAUDE.local.md", "x" * (limits.GUIDANCE_BYTES + 1))
    assert [one[2] for one in rules.calls_for()] == ["unreadable", "unreadable"]
    (rules.project / "CLAUDE.local.md").unlink()
    assert [one[2] for one in rules.calls_for()] == ["removed", "unreadable"]


def test_imports_end(rules: Rules) -> None:
    rules.write("CLAUDE.md", "@n0.md @CLAUDE.md")
    for n in range(limits.GUIDANCE_HOPS + 2):
        rules.write(f"n{n}.md", f"@n{n + 1}.md @n0.md")
    found = [one.path for one in rules.now() if one.kind == "imported_rule"]
    assert found == [str(rules.project / f"n{n}.md") for n in range(limits.GUIDANCE_HOPS)]


def test_what_a_folders_own_rules_import_is_not_there_at_the_start(rules: Rules) -> None:
    rules.write("src/CLAUDE.md", "@x.md")
    rules.write("src/x.md", "x")
    assert [one.path for one in rules.now()] == [
        str(rules.project / "CLAUDE.md"),
        str(rules.project / "src/CLAUDE.md"),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@a.md", ["/p/a.md"]),
        ("see @./a.md and\n- @../b/c.md#part", ["/p/a.md", "/b/c.md"]),
        ("@/abs/x.md", ["/abs/x.md"]),
        (r"@with\ space.md", ["/p/with space.md"]),
        ("mail@a.md", []),
        ("`@a.md` and ``x ` @b.md``", []),
        ("```\n@a.md\n```\n@b.md", ["/p/b.md"]),
        ("~~~~\n```\n@a.md\n~~~~\n@b.md", ["/p/b.md"]),
        ("@", []),
    ],
)
def test_what_is_an_import(text: str, names: list[str]) -> None:
    assert imported(text.encode(), "/p/CLAUDE.md") == names


def test_an_import_of_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert imported(b"@~/mine.md", "/p/CLAUDE.md") == [str(tmp_path / "mine.md")]
