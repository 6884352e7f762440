"""What is remembered reaches a session that starts, and grows by its turns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.fault.scene import Scene, session_id

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(240)

_WHY = "two hooks fire at once,\n  and a torn file\n  is found weeks later"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A decision was recorded in the project."""
    made = Scene.make(tmp_path / "scene")
    recorded = ("record", "decision", "--title", "Locks are files", "--why", _WHY, "--what", "x")
    assert made.command("succession", *recorded).code == 0
    return made


def start(scene: Scene, session: int, source: str = "startup") -> str:
    """What the agent is told."""
    payload = scene.payload(session, "SessionStart", source=source)
    fired = scene.fire(session, "SessionStart", payload=payload)
    assert fired.is_allowed("SessionStart")
    told: str = json.loads(fired.out)["hookSpecificOutput"]["additionalContext"]
    return told


def turn(scene: Scene, session: int) -> None:
    """The agent answers, and stops."""
    scene.say(2, session=session)
    message = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    record = {"type": "assistant", "sessionId": session_id(session), "message": message}
    with scene.transcript(session).open("a") as file:
        file.write(json.dumps(record) + "\n")
    scene.rest(session)
    assert scene.fire(session, "Stop").is_quiet


def status(scene: Scene) -> dict[str, Any]:
    ran = scene.command("succession", "status", "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_a_decision_is_in_what_a_later_session_is_told(scene: Scene) -> None:
    start(scene, 1)
    turn(scene, 1)
    told = start(scene, 3)
    assert "Locks are files" in told
    assert all(line.strip() in told for line in _WHY.splitlines())
    assert told.startswith("savepoint saves the state of this session")


def test_five_compactions_are_no_session_and_no_succession(scene: Scene) -> None:
    start(scene, 1)
    turn(scene, 1)
    before = status(scene)
    for _ in range(5):
        scene.say(1)
        assert scene.fire().is_quiet
        start(scene, 1, "compact")
        turn(scene, 1)
    after = status(scene)
    assert before["sessions_since_succession"] == 1
    assert after == before


def test_a_session_that_was_brought_back_is_a_session(scene: Scene) -> None:
    """To the client it is a resumption, and those are none."""
    start(scene, 1)
    turn(scene, 1)
    ran = scene.command("resurrect", "--json")
    assert ran.code == 0, ran.err
    session = json.loads(ran.out)["session"]
    named = {"session_id": session["id"], "transcript_path": session["file"]}
    counted = [status(scene)["sessions_since_succession"]]
    for _ in range(2):  # resumed once more, it is none
        payload = scene.payload(1, "SessionStart", source="resume", **named)
        assert scene.fire(1, "SessionStart", payload=payload).is_allowed("SessionStart")
        assert scene.fire(1, "Stop", payload=scene.payload(1, "Stop", **named)).is_quiet
        counted.append(status(scene)["sessions_since_succession"])
    assert counted == [1, 2, 2]


def test_a_succession_is_suggested_told_of_and_run(scene: Scene) -> None:
    """A session is told of it; the first turn of the session after that one runs it."""
    told = []
    for session in range(1, 9):
        if status(scene)["ruler"] != "Claude 1":
            break
        text = start(scene, session)
        saves = len(scene.saves())
        turn(scene, session)
        told.append("suggested" in text)
    assert told.index(True) == len(told) - 2
    assert status(scene)["ruler"] == "Claude 2"
    assert status(scene)["last_reason"]
    assert len(scene.saves()) == saves + 1, "the savepoint of that turn covers the state before"
    assert scene.damage() == []


def test_a_damaged_dynasty_takes_nothing_else_away(scene: Scene) -> None:
    (meta,) = scene.home.glob("stores/*/dynasty/*/dynasty.json")
    meta.write_text("{")
    told = start(scene, 1)
    assert "savepoint saves the state" in told
    assert "What was learned before cannot be read" in told
    scene.say(3)
    assert scene.fire(1, "Stop").is_quiet
    assert len(scene.saves()) == 1


def test_a_damaged_dynasty_does_not_keep_a_turn_from_the_threads(scene: Scene) -> None:
    """What runs was not known to a handoff: the turn was lost to it with the dynasty's error."""
    scene.say(3)
    assert scene.command("handoff", "thread", "a thread").code == 0
    (meta,) = scene.home.glob("stores/*/dynasty/*/dynasty.json")
    meta.write_text("{")
    payload = scene.payload(1, "Stop", background_tasks=["make"], session_crons=[])
    assert scene.fire(1, "Stop", payload=payload).is_quiet
    assert "dynasty.json" in (scene.home / "hook.log").read_text()
    assert b'"tasks":["make"]' in b"".join(
        one.read_bytes() for one in scene.home.glob("stores/*/handoff/**/*.json")
    )
