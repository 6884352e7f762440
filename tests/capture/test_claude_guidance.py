"""Rules, skills and agent definitions are told by path and hash."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.guidance import frontmatter, guidance
from savepoint.core import limits

if TYPE_CHECKING:
    from pathlib import Path

SKILL = "---\nname: tidy\ndescription: d\n---\nbody\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def told(project: Path, config: Path) -> dict[str, tuple[str, str]]:
    found = [one for one in guidance(str(project), str(config)) if one.kind != "skill_body"]
    return {os.path.relpath(one.path, project.parent): (one.kind, one.sha256[:8]) for one in found}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "c"


def test_all_kinds(project: Path, config: Path) -> None:
    write(project / "CLAUDE.md", "root")
    write(project / "CLAUDE.local.md", "local")
    write(project / "src/CLAUDE.md", "nested")
    write(project / "src/deep/CLAUDE.md", "too deep to be loaded at the start")
    write(project / ".claude/CLAUDE.md", "settings")
    write(project / ".claude/rules/style/python.md", "rule")
    write(project / ".claude/rules/notes.txt", "no rule")
    write(project / ".claude/agents/reviewer.md", "agent")
    write(project / ".claude/skills/tidy/SKILL.md", SKILL)
    write(project / ".claude/skills/tidy/notes.md", "no skill")
    write(config / "CLAUDE.md", "mine")
    write(config / "skills/plan/SKILL.md", "no frontmatter")
    assert told(project, config) == {
        "p/CLAUDE.md": ("rule", digest("root")),
        "p/CLAUDE.local.md": ("rule", digest("local")),
        "p/src/CLAUDE.md": ("rule", digest("nested")),
        "p/.claude/CLAUDE.md": ("rule", digest("settings")),
        "p/.claude/rules/style/python.md": ("rule", digest("rule")),
        "p/.claude/agents/reviewer.md": ("agent", digest("agent")),
        "p/.claude/skills/tidy/SKILL.md": ("skill", digest("name: tidy\ndescription: d")),
        "c/CLAUDE.md": ("rule", digest("mine")),
        "c/skills/plan/SKILL.md": ("skill", digest("no frontmatter")),
    }


def test_a_skill_has_an_entry_and_a_body(project: Path, config: Path) -> None:
    write(project / ".claude/skills/tidy/SKILL.md", SKILL)
    found = {one.kind: one.sha256[:8] for one in guidance(str(project), str(config))}
    assert found == {"skill": digest("name: tidy\ndescription: d"), "skill_body": digest(SKILL)}


def test_order_does_not_depend_on_the_folder(project: Path, config: Path) -> None:
    for name in ("b", "a", "c"):
        write(project / f".claude/agents/{name}.md", name)
    found = guidance(str(project), str(config))
    assert found == sorted(found, key=lambda one: (one.kind, one.path))
    assert len(found) == 3


def test_links_to_files_are_read_and_loops_end(project: Path, config: Path) -> None:
    write(project / "AGENTS.md", "shared")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    write(project / ".claude/rules/a.md", "a")
    (project / ".claude/rules/loop").symlink_to(".")
    assert told(project, config) == {
        "p/CLAUDE.md": ("rule", digest("shared")),
        "p/.claude/rules/a.md": ("rule", digest("a")),
    }


def test_what_cannot_be_read_is_left_out(
    project: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GUIDANCE_BYTES", 10)
    os.mkfifo(project / "CLAUDE.md")
    write(project / "CLAUDE.local.md", "far too long")
    (project / "src/CLAUDE.md").mkdir(parents=True)
    write(project / "lib/CLAUDE.md", "short")
    assert told(project, config) == {"p/lib/CLAUDE.md": ("rule", digest("short"))}


def test_bounded(project: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GUIDANCE_FILES", 2)
    for n in range(5):
        write(project / f".claude/rules/{n}.md", "x")
    assert set(told(project, config)) == {"p/.claude/rules/0.md", "p/.claude/rules/1.md"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", b""),
        (b"---\na: b\n---\nbody", b"a: b"),
        (b"---\r\na: b\r\n---\r\nbody", b"a: b\r"),
        (b"---\na: b\nno end", b"a: b\nno end"),
        (b"text\n---\na\n---\n", b"text\n---\na\n---\n"),
    ],
)
def test_frontmatter(text: bytes, expected: bytes) -> None:
    assert frontmatter(text) == expected
