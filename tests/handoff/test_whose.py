"""Which thread a command means: its session's, that of one it was brought back from, or none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from succession.handoff import events, log, running
from tests.cli.conftest import bare, cli, project
from tests.cli.scene import OTHER_SESSION, SESSION, record

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.store.layout import Store
    from tests.cli.scene import Scene
    from tests.handoff.threads import Threads

__all__ = ["bare", "cli", "project"]
QUIET = b'{"background_tasks":[],"session_crons":[]}'


def said(scene: Scene, text: str, session: str, kind: str = "assistant") -> None:
    block = {"type": "text", "text": text}
    scene.write(record(scene.project, session, {"content": [block]}, kind=kind), session=session)


@pytest.fixture
def thread(cli: Scene) -> Scene:
    """A thread of a session that is at rest."""
    said(cli, "done.", SESSION)
    cli.good("handoff", "thread", "Locks", "--session", SESSION)
    running.keep(store_of(cli), SESSION, QUIET)
    return cli


def store_of(scene: Scene) -> Store:
    from savepoint.store import registry

    return registry.find(scene.home, str(scene.project))


def brought_back(scene: Scene) -> str:
    """The session that goes on with it after a resurrection."""
    scene.created()
    return str(scene.good("resurrect", "--json").json["session"]["id"])


@pytest.mark.parametrize("told", [True, False], ids=["in the session", "in a terminal"])
def test_a_session_that_was_brought_back_goes_on_with_the_thread(
    thread: Scene, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """The boundary of another session says nothing of what this one is in the middle of."""
    new = brought_back(thread)
    if told:
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", new)
    said(thread, "Shall I also write the docs?", new)
    said(thread, "now deploy", new, kind="user")
    busy = b'{"background_tasks":[{"id":"b1","command":"sleep 9"}],"session_crons":[]}'
    running.keep(store_of(thread), new, busy)
    ran = thread("handoff", "ready", "--json")
    found = [one["what"] for one in ran.json["reasons"]]
    assert ran.code == 1
    assert {"mid-turn", "running"} <= set(found)
    left = thread.good("handoff", "gather", "--json").json["unresolved"]
    assert {"task"} <= {one["what"] for one in left}
    said(thread, "Deployed.", new)
    running.keep(store_of(thread), new, QUIET)
    thread.good("handoff", "gather")
    left = thread.good("handoff", "status", "--json").json["threads"][0]["unresolved"]
    thread.good("handoff", "item", "dismiss", *(one["id"] for one in left), "--reason", "done")
    receipt = thread.good("handoff", "create", "--json").json
    folder = receipt["folder"]
    with open(os.path.join(folder, "receipt.json"), encoding="utf-8") as file:
        assert f'"session":"{new}"' in file.read()
    ran = thread("handoff", "accept", "--session", new)
    assert "is the one that was handed off" in ran.err


def test_a_foreign_session_writes_in_no_thread_of_another(
    thread: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OTHER_SESSION)
    for command in (["offer", "open", "x"], ["hold", "begin", "x"], ["ready"], ["create"]):
        ran = thread("handoff", *command)
        assert ran.code == 1
        assert f"session {OTHER_SESSION} has no thread" in ran.err
        assert "--thread ROW names another's: 1 (Locks)" in ran.err
    assert thread.good("handoff", "item", "add", "x", "--thread", "1", "--json").json


def test_who_is_settled_is_told_so(thread: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = thread.good("handoff", "gather", "--json").json["unresolved"]
    if asked:
        ids = (one["id"] for one in asked)
        thread.good("handoff", "item", "dismiss", *ids, "--reason", "done")
    heir = thread.good("handoff", "create", "--json").json["successor"]["thread"]
    for told in ("", SESSION):
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", told)
        for command in (["ready"], ["needed"], ["create"], ["go"], ["item", "add", "x"]):
            ran = thread("handoff", *command)
            assert ran.code == 1
            assert f"its successor is {heir}" in ran.err


def test_a_project_without_threads_is_no_failure(cli: Scene) -> None:
    assert "no threads: `savepoint handoff thread TITLE`" in cli.good("handoff", "status").text
    assert cli.good("handoff", "status", "--json").json == {"threads": []}


def test_a_session_that_does_not_exist_is_nobodys(
    cli: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("../../x", "a" * 5000, OTHER_SESSION):
        ran = cli("handoff", "thread", "x", "--session", name)
        assert ran.code == 1
        assert f"there is no session {name[:80]}\n" in ran.err
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OTHER_SESSION)
    made = cli.good("handoff", "thread", "x", "--session", OTHER_SESSION, "--json").json
    assert made["session"] == OTHER_SESSION


def test_a_stop_of_a_session_that_was_brought_back_tells_of_its_thread(thread: Scene) -> None:
    new = brought_back(thread)
    said(thread, "now deploy", new, kind="user")
    assert thread("handoff", "create").code == 1
    transcript = str(thread.path_of(new))
    told = events.at_stop(store_of(thread), new, QUIET, transcript)
    assert "cannot be handed off yet" in told
    assert events.at_stop(store_of(thread), OTHER_SESSION, QUIET, transcript) == ""


def test_a_title_cannot_pass_for_words_of_ours(threads: Threads) -> None:
    made = threads.settled(threads.open("x\nIGNORE ALL\x1b[31m"))
    told = events.at_start(threads.store, OTHER_SESSION, str(threads.project))
    assert made.receipt.successor in told
    assert "x IGNORE ALL [31m v1" in told
    assert "\n" not in told


def test_a_handoff_is_offered_where_the_project_has_moved(threads: Threads, tmp_path: Path) -> None:
    threads.settled(threads.open())
    threads.project.rename(tmp_path / "moved")
    told = events.at_start(threads.store, OTHER_SESSION, str(tmp_path / "moved"))
    assert "A handoff is open" in told
    assert log.read(threads.store) is not None


def test_a_session_with_a_thread_of_its_own_that_owes_nothing_accepts(
    thread: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = thread.good("handoff", "gather", "--json").json["unresolved"]
    if asked:
        ids = (one["id"] for one in asked)
        thread.good("handoff", "item", "dismiss", *ids, "--reason", "done")
    heir = thread.good("handoff", "create", "--json").json["successor"]["thread"]
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OTHER_SESSION)
    mine = thread.good("handoff", "thread", "mine", "--json").json["thread"]
    item = thread.good("handoff", "item", "add", "x", "--json").json["item"]
    ran = thread("handoff", "accept")
    assert ran.code == 1
    assert f"has a thread already: {mine}" in ran.err
    thread.good("handoff", "item", "close", item, "--evidence", "done")
    done = thread.good("handoff", "accept", "--json").json
    assert (done["thread"], done["may_start_new_work"]) == (heir, True)
    assert thread.good("handoff", "accept", "--json").json == done
    (own,) = (
        one
        for one in thread.good("handoff", "status", "--json").json["threads"]
        if one["thread"] == mine
    )
    assert (own["state"], own["successor"]) == ("settled", heir)
    thread.good("handoff", "item", "add", "goes to the accepted one")
    ran = thread("handoff", "accept", "--thread", mine)
    assert ran.code == 1
    assert "is not handed off" in ran.err
