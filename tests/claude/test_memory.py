"""With the real client: what one session decided, a later one is told."""

from __future__ import annotations

import json

import pytest

from tests.claude.stub import Reply, texts
from tests.claude.test_hooks import WINDOW, Session, session

__all__ = ["session"]

pytestmark = [pytest.mark.xdist_group("claude"), pytest.mark.timeout(300)]


def ruler(session: Session) -> str:
    found: str = json.loads(session.good("succession", "status", "--json").out)["ruler"]
    return found


def test_a_decision_of_the_first_session_is_told_to_the_third(session: Session) -> None:
    session.good("install", "claude-code")
    session.ask("the first")
    decision = ("--title", "Locks are files", "--why", "BADGERS fire at once", "--what", "flock")
    session.good("succession", "record", "decision", *decision)
    for prompt in ("the second", "the third"):
        session.id = ""
        session.ask(prompt)
    told = "".join(texts(session.claude.stub.turns[-1]["messages"]))
    assert "Locks are files" in told
    assert "BADGERS fire at once" in told


def test_compactions_cause_no_succession(session: Session) -> None:
    session.good("install", "claude-code")
    session.ask("the first")
    session.good("succession", "record", "observation", "--title", "It rains", "--what", "outside")
    before = ruler(session)
    for _ in range(5):
        session.claude.stub.replies += [Reply("x", tokens=170_000)]
        session.ask("fill it", **WINDOW)
    session.ask("go on", **WINDOW)
    assert len(session.claude.stub.compactions) == 5
    assert ruler(session) == before
