"""What the real client loads of a session that was brought back: asked of its next request."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.agents import claude_places
from tests.claude.client import running
from tests.claude.stub import Reply, texts
from tests.resurrect.talk import Talk, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.claude.client import Client
    from tests.cli.scene import Scene

pytestmark = pytest.mark.xdist_group("claude")


def loaded(claude: Client, session: str) -> str:
    """All that the client sends when that session is gone on with."""
    claude.good("and now?", "--resume", session)
    return "\n".join(texts(claude.stub.turns[-1]["messages"]))


def place(claude: Client, data: bytes, session: str) -> None:
    """Put a session where the client looks for it."""
    (folder,) = claude_places.project_folders(str(claude.config), str(claude.folder))
    path = claude.config / folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.timeout(180)
def test_the_conversation_from_before_a_compaction_is_there_again(
    bare: Scene, claude_program: Path
) -> None:
    """Saved before the compaction it comes back as it was; saved after it, in full."""
    bare.good("init", "--instance", "Gabriel #215")
    with running(claude_program, bare.project) as claude:
        claude.stub.replies += [Reply("BADGER noted"), Reply("CAPYBARA noted")]
        session = claude.good("the first word is AARDVARK").session
        claude.good("the second word is OTTER", "--resume", session)
        before = bare.created()
        saved = bare.good("show", "--only", "conversation").out
        claude.good("/compact", "--resume", session)
        after = bare.created()
        assert "AARDVARK" not in loaded(claude, session)

        as_it_was = bare.good("resurrect", str(before["seq"]), "--json").json
        cut = bare.good(
            "resurrect", str(after["seq"]), "--full", "--instance", "Gabriel #215", "--json"
        ).json
        assert cut["session"]["mode"] == "full"
        for back in (as_it_was, cut):
            assert back["session"]["id"] != session
            said = loaded(claude, back["session"]["id"])
            assert {"AARDVARK", "BADGER", "OTTER", "CAPYBARA"} <= set(re.findall("[A-Z]+", said))
        gone_on = claude.transcript(as_it_was["session"]["id"]).read_bytes()
    assert gone_on.startswith(saved)


def test_as_it_was_a_compacted_session_is_its_summary(bare: Scene, claude_program: Path) -> None:
    bare.good("init")
    talk = Talk().say(2, "BEFORE").compact("the SUMMARY").say(2, "AFTER")
    bare.write(talk.data)
    bare.created()
    back = bare.good("resurrect", "--json").json
    with running(claude_program, bare.project) as claude:
        said = loaded(claude, back["session"]["id"])
    assert "SUMMARY" in said
    assert "AFTER-a1" in said
    assert "BEFORE-a0" not in said
    assert back["gap_messages"] == 0


def test_links_that_lead_nowhere_lose_nothing(bare: Scene, claude_program: Path) -> None:
    """claude-code#46603: behind each boundary a parent that was never written."""
    bare.good("init")
    talk = Talk().say(3, "OLD")
    for number in range(3):
        talk.compact(f"SUMMARY{number}").lose_the_link().say(25, f"NEW{number}")
    bare.write(talk.data)
    bare.created()
    back = bare.good("resurrect", "--json").json
    with running(claude_program, bare.project) as claude:
        said = loaded(claude, back["session"]["id"])
    assert {f"NEW2-{who}{n}" for who in "ua" for n in range(25)} <= set(said.split())
    assert "SUMMARY2" in said
    assert (back["gap_messages"], back["session"]["shown"]) == (0, 50)
    assert back["session"]["repairs"] == {"links that led nowhere": 1}


def test_what_a_strict_parser_refuses_does_not_brick_the_session(
    bare: Scene, claude_program: Path
) -> None:
    bare.good("init")
    talk = Talk().say(1, "A").user("LONE \ud83d half").answer("fine").say(1, "B")
    lines = talk.data.splitlines(keepends=True)
    lines[1:1] = [b'{"type":"user","mess\n', b"null\n", b"12\n", b"\0\0\n"]
    glued = lines[-2].rstrip(b"\n") + lines[-1]
    control = lines[0].replace(b"A-u0", b"A-u0 \x1b raw")
    bare.write(b"".join([control, *lines[1:-2], glued]) + b'{"parentUuid":"torn')
    bare.created()
    back = bare.good("resurrect", "--json").json
    with running(claude_program, bare.project) as claude:
        said = loaded(claude, back["session"]["id"])
    assert all(word in said for word in ("A-u0", "A-a0", "LONE", "fine", "B-u0", "B-a0"))
    assert back["gap_messages"] == 0


@pytest.mark.parametrize("full", [False, True], ids=["as-it-was", "full"])
@pytest.mark.parametrize(
    "name", ["claude-2.0.64-small", "claude-2.1.5-two-compactions", "claude-2.1.29-images"]
)
def test_a_real_transcript_is_shown_as_far_as_it_is_said(
    name: str, full: bool, shared: Path, claude_program: Path, tmp_path: Path
) -> None:
    """Every text between two compactions reaches the model, where nothing is said to be hidden."""
    saved = (shared / "transcripts" / f"{name}.jsonl").read_bytes()
    session = read([saved], full=full)
    data = b"".join(session.pieces([saved]))
    identity = "22222222-2222-4333-8444-555555555555"
    with running(claude_program, tmp_path) as claude:
        place(claude, data, identity)
        said = loaded(claude, identity)
    wanted = _texts_behind_the_last_boundary(data)
    assert len(wanted) > 10
    lost = session.hidden if not full else 0
    assert sum(text[:200] not in said for text in wanted) <= lost


def _texts_behind_the_last_boundary(data: bytes) -> list[str]:
    found: list[str] = []
    for record in map(json.loads, data.splitlines()):
        if record.get("subtype") == "compact_boundary":
            found.clear()
        elif record.get("type") in ("user", "assistant") and not record.get("isSidechain"):
            content = record["message"]["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found += [b["text"].strip() for b in blocks if b.get("type") == "text"]
    return [text for text in found if text]


def test_a_thread_and_a_span_are_conversations_of_their_own(
    bare: Scene, claude_program: Path
) -> None:
    bare.good("init")
    bare.write(Talk().say(6, "MAIN").data)
    side = Talk().say(2, "SIDE")
    for one in side.records:
        one.update(isSidechain=True, agentId="abc123")
    folder = bare.transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abc123.jsonl").write_bytes(side.data)
    bare.created()
    thread = bare.good("resurrect", "--thread", "abc123", "--json").json
    span = bare.good("resurrect", "--messages", "6-9", "--json").json
    assert (thread["instance"], span["instance"]) == (None, None)
    with running(claude_program, bare.project) as claude:
        of_thread = loaded(claude, thread["session"]["id"])
        of_span = loaded(claude, span["session"]["id"])
    assert "SIDE-a1" in of_thread
    assert "MAIN" not in of_thread
    found = {f"MAIN-{who}{n}" for who in "ua" for n in range(6) if f"MAIN-{who}{n}" in of_span}
    assert found == {"MAIN-u2", "MAIN-a2", "MAIN-u3", "MAIN-a3", "MAIN-u4"}
