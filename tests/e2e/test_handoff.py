"""A thread passes its work on: the real client at both ends, anchored on the real validator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.claude.stub import Reply, texts
from tests.claude.test_hooks import Session, session
from tests.e2e.conftest import fund
from tests.e2e.test_anchored import settle
from tests.handoff.test_drivers import script

if TYPE_CHECKING:
    from tests.ledger.validator import Validator

__all__ = ["session"]

pytestmark = [pytest.mark.xdist_group("validator"), pytest.mark.timeout(400)]

SAVEPOINT = Path(sys.executable).parent / "savepoint"


@pytest.fixture
def at_work(session: Session, validator: Validator, tmp_path: Path) -> Session:
    """v1 has begun, in a project that pushes and anchors."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote.git")], check=True)
    session.anchors = True
    session.good("init", "--remote", str(tmp_path / "remote.git"))
    session.good("config", "ledger", validator.url)
    fund(session)
    session.good("ledger", "deploy")
    session.good("install", "claude-code")
    (session.project / "CLAUDE.md").write_text("be brief", encoding="utf-8")
    session.claude.stub.replies += [Reply("I have fixed it.")]
    session.ask("fix the parser")
    return session


def handoff(session: Session, *arguments: str) -> Any:  # noqa: ANN401  # a document is what it is
    return session.good("handoff", *arguments, "--json").json


def calls(session: Session, command: str, prompt: str = "go on") -> str:
    """The agent runs a command itself; what it was told."""
    session.claude.stub.replies += [Reply(tool="Bash", given={"command": command}), Reply("Done.")]
    session.ask(prompt, "--allowed-tools", "Bash")
    return list(texts(session.claude.stub.turns[-1]["messages"]))[-1]


def test_a_thread_passes_its_work_on(at_work: Session, tmp_path: Path) -> None:
    first = at_work.id
    handoff(at_work, "thread", "Fix the parser", "--session", first)
    for text in ("write the docs", "speed it up"):
        assert "OFFER-" in calls(at_work, f"{SAVEPOINT} handoff offer open '{text}'")
    watched = bind(at_work, tmp_path, first)

    assert not handoff(at_work, "needed")["needed"]
    (at_work.project / "CLAUDE.md").write_text("be thorough", encoding="utf-8")
    (change,) = handoff(at_work, "needed")["changes"]
    assert (change["kind"], change["calls_for"]) == ("always-on rule", "successor")

    assert "toolu_" in refused_in_a_turn(at_work)
    left = handoff(at_work, "gather")["unresolved"]
    if left:
        handoff(at_work, "item", "map", "OFFER-1", *(one["id"] for one in left))
    assert handoff(at_work, "ready")["ready"]
    made = calls(at_work, f"{SAVEPOINT} handoff create", "hand it off")
    old = handoff(at_work, "status")["threads"][0]
    assert old["state"] == "settled", made
    settle(at_work)
    (receipt,) = Path(at_work.paths.store.path).glob("handoff/*/1/receipt.json")
    assert at_work("handoff", "verify", str(receipt.parent)).code == 3

    at_work.id = ""
    at_work.ask("what is there to do?")
    assert "handoff accept" in "".join(texts(at_work.claude.stub.turns[-1]["messages"]))
    second = at_work.id
    assert second != first
    calls(at_work, f"{SAVEPOINT} handoff accept")
    assert_taken_over(at_work, second, watched)
    assert at_work("handoff", "verify", str(receipt.parent)).code == 0
    settle(at_work)
    told = at_work("verify", "--all", "--json").json["savepoints"]
    assert {w["verdict"] for one in told for w in one["witnesses"].values()} == {"VERIFIED"}


def bind(session: Session, folder: Path, first: str) -> Path:
    """A schedule row, a watch, and something that nobody can bind. Where the watch is."""
    (session.project / "jobs").write_text(f"*/5 * * * * poll {first} # poll\n", encoding="utf-8")
    watched = folder / "watched"
    watched.write_text(first, encoding="utf-8")
    (to_set,) = script(folder, "watch", f'printf %s "$2" > {watched}')
    (to_read,) = script(folder, "look", f"cat {watched}")
    session.good("handoff", "config", "command", "watch", "--set", to_set, "--read", to_read)
    row = ("--driver", "schedule", "--place", "jobs", "--key", "poll")
    handoff(session, "bind", "poll the queue", *row, "--value", "poll {session}")
    pair = ("--driver", "command", "--place", "watch", "--key", "7")
    handoff(session, "bind", "watch pull request 7", *pair, "--value", "{session}")
    handoff(session, "bind", "the hosted form", "--unbindable", "only its owner can change it")
    return watched


def refused_in_a_turn(session: Session) -> str:
    """What `ready` says while another call of the agent is open."""
    told = session.project / "ready.json"
    asks = session.project / "check.sh"
    asks.write_text(f"{SAVEPOINT} handoff ready --json > {told}\n", encoding="utf-8")
    calls(session, "sh check.sh")
    found = told.read_text(encoding="utf-8")
    for file in (told, asks):
        os.unlink(file)
    assert '"ready":false' in found
    return found


def assert_taken_over(session: Session, second: str, watched: Path) -> None:
    """Bindings name the successor; a bare `go` asks, a named one acts; the old thread points on."""
    assert f"poll {second} # poll" in (session.project / "jobs").read_text(encoding="utf-8")
    assert watched.read_text(encoding="utf-8") == second
    assert session("handoff", "go", "--json").code == 2
    assert handoff(session, "go", "OFFER-2")["text"] == "speed it up"
    old, new = handoff(session, "status")["threads"]
    assert (old["state"], old["successor"], new["session"]) == ("settled", new["thread"], second)
    assert new["title"] == "Fix the parser v2"
