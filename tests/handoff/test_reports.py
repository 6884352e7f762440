"""What was reported elsewhere, tried on us; and what the agent is told when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from savepoint.core import handoff_receipt
from succession import handoff
from tests.handoff.test_scenario import Life
from tests.handoff.threads import FIRST, SECOND, Threads, agent, user

if TYPE_CHECKING:
    import pytest

NOTHING_RUNS = b'{"background_tasks":[],"session_crons":[]}'


def test_offered_is_not_accepted(threads: Threads) -> None:
    """jacazul-ai-cli#94: a hook was killed after it wrote its marker, and the note was never seen
    again. Ours is told at every start until a session accepts.
    """
    thread = threads.open()
    threads.owe(thread)
    project = str(threads.project)
    assert handoff.at_start(threads.store, SECOND, project) == ""
    threads.settled(thread)
    told = [handoff.at_start(threads.store, SECOND, project) for _ in range(3)]
    assert told[0] == told[1] == told[2]
    assert "passed 1 item" in told[0]
    assert len(told[0]) < 400  # a client cuts long ones off
    assert threads.ledger.threads[thread].state == "settled"
    threads.accept(thread)
    assert handoff.at_start(threads.store, SECOND, project) == ""


def test_another_project_is_not_told(threads: Threads) -> None:
    threads.settled(threads.open())
    assert handoff.at_start(threads.store, SECOND, "/elsewhere") == ""


def test_the_outgoing_session_is_told_that_it_is_settled(threads: Threads) -> None:
    threads.settled(threads.open())
    told = handoff.at_start(threads.store, FIRST, str(threads.project))
    assert "is settled" in told
    assert "accept" not in told


def test_an_accept_that_is_not_over_is_told(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    heir = threads.settled(thread).receipt.successor
    threads.add("accept", heir, predecessor=thread, session=SECOND)
    told = handoff.at_start(threads.store, SECOND, str(threads.project))
    assert "1 item:" in told


def test_nothing_overwrites_a_handoff(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """the-agency#74: an update of the tool wrote over the handoff, and the archive kept that."""
    life = Life(tmp_path, capsysbinary)
    life.run.good("init")
    life.say("user", "go")
    life.say("assistant", "Done.")
    life.json("thread", "x")
    life.json("offer", "open", "first")
    life.stops()
    life.json("gather")
    made = life.json("create")
    folder = Path(made["folder"])
    files = [folder / "handoff.md", folder / "receipt.json"]
    before = [one.read_bytes() for one in files]

    life.run("install")
    life.run("init")
    life.run("succession", "run")
    life.say("user", "go", session=SECOND)
    other = life.json("thread", "y", "--session", SECOND)
    life.say("assistant", "Hello.", session=SECOND)
    life.stops(SECOND)
    life.json("gather", "--thread", other["thread"])
    second = Path(life.json("create", "--thread", other["thread"])["folder"])
    assert second not in {folder, folder.parent}
    heir = "33333333-2222-4333-8444-555555555555"
    life.say("user", "go", session=heir)
    life.json("accept", "--session", heir, "--thread", made["thread"])
    life.say("assistant", "Hello.", session=heir)
    life.stops(heir)
    following = made["successor"]["thread"]
    life.json("gather", "--thread", following)
    third = Path(life.json("create", "--thread", following)["folder"])

    assert [one.read_bytes() for one in files] == before
    assert handoff_receipt.parse(before[1]).signature_holds()
    assert len({folder, second, third}) == 3
    assert life("verify", str(folder)).code == 0
    assert life("create", "--thread", made["thread"]).code == 1
    assert [one.read_bytes() for one in files] == before


def test_a_second_version_is_a_new_file(threads: Threads) -> None:
    """A folder that a process left is neither used again nor written over."""
    thread = threads.open()
    left = threads.file.parent / thread / "1"
    left.mkdir(parents=True)
    (left / "handoff.md").write_bytes(b"left by a process that died")
    made = threads.settled(thread)
    assert made.folder == str(left.parent / "2")
    assert (left / "handoff.md").read_bytes() == b"left by a process that died"


def test_a_stop_tells_of_a_refused_boundary_only_where_it_was_asked_for(
    threads: Threads, tmp_path: Path
) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_bytes(agent("done") + user("do it"))
    stop = (threads.store, FIRST, NOTHING_RUNS, str(transcript))
    assert handoff.at_stop(*stop) == ""  # no threads
    thread = threads.open()
    threads.gather(thread)
    assert handoff.at_stop(*stop) == ""  # nobody asked
    threads.add("ask", thread)
    told = handoff.at_stop(*stop)
    assert "cannot be handed off yet: mid-turn" in told
    transcript.write_bytes(agent("done"))
    assert "may be handed off now" in handoff.at_stop(*stop)
    threads.create(thread)
    assert handoff.at_stop(*stop) == ""


def test_a_store_without_threads_pays_one_look(threads: Threads) -> None:
    before = sorted(Path(threads.store.path).rglob("*"))
    assert handoff.at_stop(threads.store, FIRST, NOTHING_RUNS, "") == ""
    assert handoff.at_start(threads.store, FIRST, str(threads.project)) == ""
    assert sorted(Path(threads.store.path).rglob("*")) == before
