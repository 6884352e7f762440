"""The stub and the client understand each other: what other tests build on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.claude.client import running
from tests.claude.stub import Reply, texts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.xdist_group("claude")
def test_conversation_is_held_and_compacted(claude_program: Path, tmp_path: Path) -> None:
    with running(claude_program, tmp_path) as claude:
        claude.stub.replies += [Reply("noted"), Reply(tool="Bash", given={"command": "echo OTTER"})]
        session = claude.good("the word is BADGER").session
        claude.good("say it", "--resume", session, "--allowed-tools", "Bash")
        claude.good("/compact", "--resume", session)
        claude.good("again", "--resume", session)
        first, called, answered, last = claude.stub.turns
    assert first["messages"][0]["role"] == "user"
    assert any("BADGER" in text for text in texts(called["messages"]))
    assert any("OTTER" in text for text in texts(answered["messages"]))
    assert not any("BADGER" in text for text in texts(last["messages"]))
    assert len(claude.stub.compactions) == 1
    lines = map(json.loads, claude.transcript(session).read_bytes().splitlines())
    assert [one for one in lines if one.get("subtype") == "compact_boundary"]
