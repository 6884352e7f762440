"""The real hook, in a store with threads: what waits is offered, what runs is kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.handoff_log import Author, Draft
from savepoint.store.keys.keyring import authority
from savepoint.store.savepoints import name_of
from succession.handoff import create, gather, log, running
from succession.handoff.create import Standing
from tests.fault.scene import Scene, session_id

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

NOW = 1_796_045_029


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session with a savepoint."""
    made = Scene.make(tmp_path / "scene")
    made.say(5)
    assert made.fire().is_quiet
    made.settle()
    return made


def _add(scene: Scene, *drafts: Draft) -> None:
    with log.opened(scene.store, float("inf"), make_it=True) as held:
        held.add(_author(scene), NOW, drafts)


def _author(scene: Scene) -> Author:
    return Author(name_of(scene.paths), authority(scene.paths))


def _open(scene: Scene) -> str:
    thread = create.new_thread()
    body: dict[str, Json] = {
        "project": os.path.realpath(scene.project),
        "title": "x",
        "session": session_id(1),
    }
    offer: dict[str, Json] = {"item": "OFFER-1", "text": "write the docs"}
    _add(scene, Draft("open", thread, body), Draft("offer", thread, offer))
    return thread


def _hand_off(scene: Scene, thread: str) -> str:
    one = scene.saves()[-1]
    with log.opened(scene.store, float("inf")) as held:
        gather.write(held, _author(scene), NOW, held.ledger.threads[thread], one.origin(), [])
        standing = Standing(one, {"local": "VERIFIED"}, [])
        own = held.ledger.threads[thread]
        made = create.create(held, _author(scene), NOW, own, standing, [])
    return made.receipt.successor


def _greeting(scene: Scene, session: int) -> str:
    fired = scene.fire(session, "SessionStart")
    assert fired.code == 0
    assert fired.err == ""
    text: str = json.loads(fired.out)["hookSpecificOutput"]["additionalContext"]
    return text


def test_an_open_handoff_is_offered_until_it_is_accepted(scene: Scene) -> None:
    """jacazul-ai-cli#94: what was injected was taken for read."""
    thread = _open(scene)
    assert "handoff" not in _greeting(scene, 2)
    heir = _hand_off(scene, thread)
    first = _greeting(scene, 2)
    assert first.startswith("A handoff is open: x v1 passed 1 item to x v2")
    process = scene.start(2, "SessionStart")  # its output is lost
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert _greeting(scene, 2).startswith("A handoff is open")
    accept: dict[str, Json] = {"predecessor": thread, "session": session_id(2)}
    take: dict[str, Json] = {"item": "OFFER-1", "value": None}
    _add(scene, Draft("accept", heir, accept))
    assert "has still to take over 1 item:" in _greeting(scene, 2)
    _add(scene, Draft("take", heir, take))
    assert "handoff" not in _greeting(scene, 2)


def test_a_stop_keeps_what_runs_and_warns_if_a_handoff_was_asked_for(scene: Scene) -> None:
    payload = scene.payload(
        1, "Stop", background_tasks=[{"id": "b1", "status": "running"}], session_crons=[]
    )
    assert scene.fire(1, "Stop", payload=payload).is_quiet
    assert running.kept(scene.store, session_id(1)) is None
    thread = _open(scene)
    assert scene.fire(1, "Stop", payload=payload).is_quiet
    assert running.kept(scene.store, session_id(1)) == (["b1 running"], [])
    _add(scene, Draft("ask", thread, {}))
    fired = scene.fire(1, "Stop", payload=payload)
    told = json.loads(fired.out)
    assert list(told) == ["systemMessage"]
    assert "background task b1" in told["systemMessage"]


@pytest.mark.parametrize("kind", ["folder", "file", "fifo"])
def test_a_log_that_is_gone_is_told_at_the_start(scene: Scene, kind: str) -> None:
    _open(scene)
    path = Path(log.folder_of(scene.store), "log.jsonl")
    if kind == "folder":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    text = _greeting(scene, 2)
    assert "What threads owe cannot be read" in text
    assert "`savepoint handoff status` says how it comes back" in text


def test_a_damaged_log_takes_nothing_else_away(scene: Scene) -> None:
    _open(scene)
    path = Path(log.folder_of(scene.store), "log.jsonl")
    path.write_bytes(path.read_bytes().replace(b"docs", b"code"))
    text = _greeting(scene, 2)
    assert "What threads owe cannot be read" in text
    assert "savepoint saves the state" in text
    scene.say(5)
    assert scene.fire().is_quiet
    assert len(scene.saves()) == 2
    assert "handoff:handoff.bundle" in scene.files()
