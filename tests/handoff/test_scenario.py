"""A thread's life by the command line: what v1 leaves, what makes v2, what v2 takes over."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture.guidance import guidance
from savepoint.store.session import guidance as started
from succession.handoff import running
from tests.cli.scene import OTHER_SESSION, SESSION, Scene, record
from tests.handoff.test_drivers import script
from tests.handoff.threads import call

if TYPE_CHECKING:
    from tests.cli.scene import Ran

THIRD = "77777777-2222-4333-8444-555555555555"


class Life:
    """A project with v1 at work in it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        self.run = Scene(self.project, capture)

    def __call__(self, *arguments: str) -> Ran:
        return self.run("handoff", *arguments)

    def json(self, *arguments: str) -> Any:  # noqa: ANN401  # a document is what it is
        return self.run.good("handoff", *arguments, "--json").json

    def say(self, kind: str, *blocks: Any, session: str = SESSION) -> None:  # noqa: ANN401
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        line = record(self.project, session, {"content": content}, kind=kind)
        self.run.write(line, session=session)

    def starts(self, session: str) -> None:
        """As SessionStart keeps it."""
        found = guidance(str(self.project), str(Path.home() / ".claude"))
        store = self.run.paths.store
        started.save(store, session, [dict(one._asdict()) for one in found])

    def stops(self, session: str = SESSION) -> None:
        running.keep(self.run.paths.store, session, b'{"background_tasks":[],"session_crons":[]}')

    def reconcile(self, item: str) -> None:
        """All that was gathered is that item."""
        left = self.json("gather")["unresolved"]
        if left:
            self.json("item", "map", item, *(one["id"] for one in left))


@pytest.fixture
def life(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Life:
    made = Life(tmp_path, capsysbinary)
    made.run.good("init")
    (made.project / "CLAUDE.md").write_text("be brief", encoding="utf-8")
    made.starts(SESSION)
    made.say("user", "fix the parser")
    made.say("assistant", "Fixed. Shall I also write the docs?")
    made.json("thread", "Fix the parser")
    made.stops()
    return made


def _bindings(life: Life) -> None:
    """A schedule row, a pull-request watch, and something that nobody can bind."""
    (life.project / "jobs").write_text(f"*/5 * * * * poll {SESSION} # poll\n", encoding="utf-8")
    watched = life.folder / "watched"
    watched.write_text(SESSION, encoding="utf-8")
    (to_set,) = script(life.folder, "watch", f'printf %s "$2" > {watched}')
    life.run.good(
        *("handoff", "config", "command", "watch", "--set", to_set),
        *("--read", script(life.folder, "look", f"cat {watched}")[0]),
    )
    row = ("--driver", "schedule", "--place", "jobs", "--key", "poll")
    life.json("bind", "poll the queue", *row, "--value", "poll {session}")
    pair = ("--driver", "command", "--place", "watch", "--key", "7")
    life.json("bind", "watch pull request 7", *pair, "--value", "{session}")
    life.json("bind", "the hosted form", "--unbindable", "only its owner can change it")


@pytest.mark.timeout(180)
def test_a_thread_passes_its_work_on(life: Life) -> None:
    for text in ("write the docs", "speed it up"):
        life.json("offer", "open", text)
    _bindings(life)
    life.run.created()

    assert life.json("needed") == {
        "thread": life.json("status")["threads"][0]["thread"],
        "needed": False,
        "reread": False,
        "changes": [],
    }
    rule = life.project / "CLAUDE.md"
    rule.write_text("be thorough", encoding="utf-8")
    needed = life.json("needed")
    assert needed["needed"]
    assert needed["changes"] == [
        {
            "path": str(rule),
            "kind": "always-on rule",
            "change": "changed",
            "calls_for": "successor",
        }
    ]

    life.say("user", "and hand it off")
    life.say("assistant", call("t1", "Edit", file_path="x"))
    refused = life("ready", "--json")
    assert (refused.code, refused.json["ready"]) == (1, False)
    assert "t1" in refused.json["reasons"][0]["evidence"]
    life.run.write(record(life.project, SESSION, {"content": [_result("t1")]}))
    life.say("assistant", call("t2", command="savepoint handoff create"))

    life.reconcile("OFFER-1")
    assert life.json("ready")["ready"]
    made = life.json("create")
    assert made["items"] == ["OFFER-1", "OFFER-2", "BIND-1", "BIND-2", "BIND-3"]
    assert made["witnesses"] == {"local": "VERIFIED", "git": "VERIFIED", "chain": "OFF"}
    assert life("verify", made["folder"]).code == 3

    life.say("user", "go on", session=OTHER_SESSION)
    taken = life.json("accept", "--session", OTHER_SESSION)
    assert [one["item"] for one in taken["taken"]] == ["OFFER-1", "OFFER-2", "BIND-1", "BIND-2"]
    assert [(one["item"], one["note"]) for one in taken["left"]] == [
        ("BIND-3", "only its owner can change it")
    ]
    assert taken["may_start_new_work"]
    assert f"poll {OTHER_SESSION} # poll" in (life.project / "jobs").read_text(encoding="utf-8")
    assert (life.folder / "watched").read_text(encoding="utf-8") == OTHER_SESSION
    assert life.json("accept", "--session", OTHER_SESSION) == taken
    life.say("user", "go on", session=THIRD)
    second = life("accept", "--session", THIRD, "--json")
    assert second.code == 1
    assert OTHER_SESSION in second.json["error"]["message"]

    asked = life("go", "--json")
    assert asked.code == 2
    assert "OFFER-1: write the docs; OFFER-2: speed it up" in asked.json["error"]["message"]
    assert life.json("go", "OFFER-2") == {"item": "OFFER-2", "text": "speed it up"}
    life.json("offer", "close", "OFFER-2", "--evidence", "commit 4711")
    assert life.json("go")["item"] == "OFFER-1"

    old, new = life.json("status")["threads"]
    assert (old["state"], old["successor"], old["title"]) == (
        "settled",
        new["thread"],
        "Fix the parser v1",
    )
    assert (new["title"], new["session"]) == ("Fix the parser v2", OTHER_SESSION)
    assert life("verify", made["folder"]).code == 0
    assert life.run("verify", "--all").code == 0


def _result(identity: str) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": identity, "content": "done"}


def test_status_for_people(life: Life) -> None:
    life.json("offer", "open", "write the docs")
    life.json("hold", "begin", "benchmark")
    life.json("action", "begin", "deployment")
    text = life("status").text
    for line in ("open, new work may start", "OFFER-1 write the docs", "HOLD-1 bench", "ACTION-2"):
        assert line in text
    life.json("hold", "end", "HOLD-1")
    life.json("action", "end", "ACTION-2")
    assert "HOLD-1" not in life("status").text


ROW = ("--driver", "registry", "--key", "k", "--value", "v", "--place")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["offer", "open", " "], 2, "blank"),
        (["offer", "open", "x" * 5000], 2, "bytes of text"),
        (["bind", "x"], 2, "--unbindable"),
        (["bind", "x", "--driver", "registry", "--unbindable", "y"], 2, "--unbindable"),
        (["bind", "x", "--driver", "registry", "--place", "a", "--value", "b"], 2, "--key"),
        (["bind", "x", "--driver", "shell"], 2, "shell"),
        (["offer", "close", "OFFER-9", "--evidence", "x"], 1, "no item OFFER-9"),
        (["item", "map", "OFFER-9", "c-0123456789abcdef"], 1, "has no candidate"),
        (["go", "OFFER 9"], 1, "no item OFFER 9"),
        (["bind", "x", *ROW, "no"], 1, "no is not there"),
        (["bind", "x", *ROW, "../project/CLAUDE.md"], 1, "says nothing"),
        (["bind", "x", *ROW, "../CLAUDE.md"], 1, "outside the project"),
        (["bind", "x", *ROW, "."], 1, "not a regular file"),
        (["hold", "end", "HOLD-9"], 1, "HOLD-9"),
        (["action", "begin", "x", "--process", "999999999"], 1, "999999999"),
        (["item", "dismiss", "c-0", "--reason", "x"], 1, "has no candidate c-0"),
        (["ready", "--thread", "nobody"], 1, "nobody"),
        (["thread", "again"], 1, "has a thread already"),
        (["create", "--savepoint", "99"], 1, "99"),
        (["accept"], 1, "no thread of this project"),
        (["accept", "--session", "x"], 1, "no session x"),
        (["accept", "--session", "../../x"], 1, "no session ../../x"),
        (["thread", "again", "--session", THIRD], 1, f"no session {THIRD}"),
        (["verify", "/nowhere"], 2, "handoff create"),
        (["verify", "."], 20, "invalid"),
        (["config", "command", "x", "--set", "'", "--read", "y"], 2, "quotation"),
        (["config", "command", "x", "--set", "cat > f", "--read", "y"], 2, "no shell runs it"),
        (["config", "command", "x", "--set", "y", "--read", "a;b"], 2, "no shell runs it"),
        (["config", "kind", "rule", "*", "law"], 2, "law"),
        (["config", "kind", "law", "*", "document"], 2, "law"),
    ],
)
def test_wrong_use(life: Life, arguments: list[str], code: int, says: str) -> None:
    ran = life(*arguments)
    assert ran.code == code, ran.err
    assert says in ran.err + ran.text


def test_offers_and_items_have_verbs_of_their_own(life: Life) -> None:
    life.json("offer", "open", "x")
    life.json("item", "add", "y")
    for verb, item, right in (("offer", "ITEM-1", "item"), ("item", "OFFER-1", "offer")):
        ran = life(verb, "close", item, "--evidence", "z")
        assert (ran.code, f"`savepoint handoff {right} close`" in ran.err) == (2, True)
    life.json("offer", "close", "OFFER-1", "--evidence", "z")
    life.json("item", "close", "ITEM-1", "--evidence", "z")


def test_a_candidate_is_not_mapped_to_what_is_closed(life: Life) -> None:
    """It would be owed nowhere, with no reason told."""
    life.json("item", "add", "y")
    life.json("item", "close", "ITEM-1", "--evidence", "commit 7")
    (one,) = life.json("gather")["unresolved"]
    ran = life("item", "map", "ITEM-1", one["id"])
    assert ran.code == 1
    assert "ITEM-1 is closed already: commit 7" in ran.err
    assert "item dismiss" in ran.err


def test_what_is_not_reconciled_names_the_commands_that_answer_it(life: Life) -> None:
    (one,) = life.json("gather")["unresolved"]
    for command in ("gather", "create"):
        ran = life(command)
        assert one["id"] in ran.text + ran.err
        for verb in ("map ITEM CANDIDATE", "dismiss CANDIDATE --reason TEXT"):
            assert f"`savepoint handoff item {verb}`" in ran.err, command


def test_no_title_is_refused(life: Life) -> None:
    for number, title in enumerate((" ", "t" * 4000, "\x01" * 4000)):
        session = f"session-{number}"
        life.say("user", "go", session=session)
        life.json("thread", title, "--session", session)


def test_two_threads_are_named_by_id_or_row(life: Life) -> None:
    life.say("user", "go on", session=OTHER_SESSION)
    other = life.json("thread", "another", "--session", OTHER_SESSION)
    ran = life("offer", "open", "x")
    assert ran.code == 2
    assert "2 threads could be meant" in ran.err
    life.json("offer", "open", "by id", "--thread", other["thread"])
    life.json("offer", "open", "by row", "--thread", str(other["row"]))
    assert life("offer", "open", "by title", "--thread", "another").code == 1
    assert len(life.json("status")["threads"][1]["items"]) == 2


def test_without_threads(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    made = Life(tmp_path, capsysbinary)
    made.run.good("init")
    for command in ("ready", "needed", "go", "create", "gather"):
        ran = made(command)
        assert (ran.code, "handoff thread TITLE" in ran.err) == (1, True), command


def test_a_session_whose_start_nobody_saw_cannot_be_judged(life: Life) -> None:
    life.say("user", "go on", session=OTHER_SESSION)
    life.json("thread", "another", "--session", OTHER_SESSION)
    ran = life("needed", "--thread", "2", "--json")
    assert (ran.code, ran.json["error"]["name"]) == (21, "unverifiable")
    assert "`savepoint install claude-code`" in ran.json["error"]["hint"]
    assert "not of this one" in ran.json["error"]["hint"]


def test_a_tampered_savepoint_is_not_built_on(life: Life) -> None:
    seq = life.run.created()["seq"]
    (snapshot,) = Path(life.run.paths.snapshots).glob("*.json")
    snapshot.write_bytes(snapshot.read_bytes().replace(b"manual", b"manuel").replace(b"1", b"2", 1))
    ran = life("gather", "--savepoint", str(seq))
    assert ran.code == 20


def test_what_cannot_be_checked_needs_the_owners_word(life: Life) -> None:
    life.json("offer", "open", "write the docs")
    Path(life.run.paths.trusted).unlink()
    life.run.created()
    ran = life("gather", "--savepoint", "latest", "--json")
    assert ran.code == 21
    assert "--allow-unverified" in ran.json["error"]["hint"]
    left = life.json("gather", "--allow-unverified")["unresolved"]
    life.json("item", "map", "OFFER-1", *(one["id"] for one in left))
    made = life.json("create", "--allow-unverified")
    receipt = json.loads(Path(made["folder"], "receipt.json").read_bytes())
    assert receipt["unverified"] == ["VERIFY-4"]


def test_another_sessions_savepoint_is_not_taken(life: Life) -> None:
    life.say("user", "hello", session=OTHER_SESSION)
    life.run.created("--session", OTHER_SESSION)
    ran = life("gather", "--savepoint", "latest")
    assert (ran.code, "is of another session" in ran.err) == (1, True)


def test_extended_kinds(life: Life) -> None:
    life.run.good("handoff", "config", "kind", "rule", "project/CLAUDE.md", "none")
    life.run.created()
    (life.project / "CLAUDE.md").write_text("other", encoding="utf-8")
    assert life.json("needed")["changes"] == []
    assert life.json("config", "show")["kinds"] == [
        {"of": "rule", "path": "project/CLAUDE.md", "kind": "none"}
    ]


def test_uncommitted_and_unpushed_work_is_found(life: Life) -> None:
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "1"]):
        subprocess.run(["git", "-C", str(life.project), *command], check=True)
    (life.project / "new.py").write_text("x", encoding="utf-8")
    found = {(one["what"], one["text"]) for one in life.json("gather")["unresolved"]}
    assert ("uncommitted", "new.py") in found
    assert ("unpushed", "main: 1 commit that no remote has") in found


def test_fsck_looks_at_the_threads(life: Life) -> None:
    life.json("offer", "open", "write the docs")
    life.json("gather")
    life.reconcile("OFFER-1")
    life.json("create")
    assert _found(life) == []
    log = Path(life.run.paths.store.path, "handoff/log.jsonl")
    log.write_bytes(log.read_bytes() + b"torn")
    life.say("user", "go on", session=OTHER_SESSION)
    assert life.json("accept", "--session", OTHER_SESSION)["may_start_new_work"]
    (found,) = _found(life)
    assert "a torn end, set aside" in found
    log.write_bytes(log.read_bytes().replace(b"the docs", b"the code"))
    ran = life.run("fsck", "--json")
    assert ran.code == 20
    assert any("log of threads" in one["detail"] for one in ran.json["findings"])


def _found(life: Life) -> list[str]:
    ran = life.run("fsck", "--json")
    assert ran.code == 0
    details = [str(one["detail"]) for one in ran.json["findings"]]
    return [one for one in details if "handoff" in one]


def test_a_savepoint_holds_what_is_owed(life: Life) -> None:
    life.json("offer", "open", "write the docs")
    life.run.created()
    life.run.good("resurrect", "latest", "--only", "memory", "-o", str(life.folder / "back"))
    (file,) = (one for one in (life.folder / "back").rglob("*") if one.is_file())
    log = Path(life.run.paths.store.path, "handoff/log.jsonl").read_bytes()
    assert file.read_bytes().startswith(log)
