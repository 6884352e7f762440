"""Titles, trigger and boundary: a row for each sentence of the specification."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.guidance import Guidance, guidance
from savepoint.core.errors import BoundaryError
from succession.handoff import boundary, running, titles, trigger, turn
from succession.handoff.gather import Found
from tests.handoff.threads import FIRST, Threads, agent, call, result, said, user

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.core.strict_json import Json
    from succession.handoff.turn import Reason


@pytest.mark.parametrize(
    ("title", "own", "successor"),
    [
        ("x", "x v1", "x v2"),  # no suffix counts as v1 and gets its own at the handoff
        ("x v1", "x v1", "x v2"),  # a trailing v<digits> is parsed and incremented
        ("x v9", "x v9", "x v10"),
        ("x v01", "x v01", "x v2"),
        ("x v2 v3", "x v2 v3", "x v2 v4"),  # the base title is kept
        ("x v0", "x v0", "x v1"),
        ("x v999999999", "x v999999999", "x v1000000000"),
        ("x v1000000000", "x v1000000000 v1", "x v1000000000 v2"),  # ten digits: of the base
        ("x V2", "x V2 v1", "x V2 v2"),  # V2 belongs to the base
        ("x 2", "x 2 v1", "x 2 v2"),  # other digits as well
        ("x v\u0662", "x v\u0662 v1", "x v\u0662 v2"),
        ("x  v2", "x  v2 v1", "x  v2 v2"),  # \S before the blank
        ("xv2", "xv2 v1", "xv2 v2"),
        ("v2", "v2 v1", "v2 v2"),
        (" v2", " v2 v1", " v2 v2"),
        ("x v2 ", "x v2  v1", "x v2  v2"),
        ("x\ny v2", "x\ny v2", "x\ny v3"),
        ("x v2\n", "x v2\n v1", "x v2\n v2"),
        ("", " v1", " v2"),  # none is refused
    ],
)
def test_title(title: str, own: str, successor: str) -> None:
    assert (titles.own(title), titles.successor(title)) == (own, successor)


def test_threads_with_the_same_title_are_two(threads: Threads) -> None:
    first, second = threads.open("same"), threads.open("same", None)
    found = threads.ledger.threads
    assert (found[first].row, found[second].row) == (1, 2)
    assert found[first].project == found[second].project == str(threads.project)


ROOTS = trigger.Roots("/p", "/user/c")
SKILL = "/p/.claude/skills/tidy/SKILL.md"


@pytest.mark.parametrize(
    ("of", "path", "kind", "calls_for"),
    [
        ("rule", "/p/CLAUDE.md", "always-on rule", "successor"),
        ("rule", "/p/CLAUDE.local.md", "always-on rule", "successor"),
        ("rule", "/p/.claude/CLAUDE.md", "always-on rule", "successor"),
        ("rule", "/user/c/CLAUDE.md", "always-on rule", "successor"),
        ("rule", "/user/c/rules/style.md", "always-on rule", "successor"),
        ("rule", "/p/.claude/rules/safety.md", "safety rule", "successor"),
        ("agent", "/p/.claude/agents/reviewer.md", "subagent definition", "successor"),
        ("skill", SKILL, "skill entry", "successor"),  # used
        ("skill", "/p/.claude/skills/other/SKILL.md", "skill entry", "nothing"),  # not used
        ("skill_body", SKILL, "skill body", "reread"),
        ("skill_body", "/p/.claude/skills/other/SKILL.md", "skill body", "nothing"),
        ("rule", "/p/src/CLAUDE.md", "document", "reread"),  # loaded when it is needed
    ],
)
@pytest.mark.parametrize("change", ["added", "changed", "removed"])
def test_trigger(of: str, path: str, kind: str, calls_for: str, change: str) -> None:
    before: list[Json] = [{"path": "/z", "kind": of, "sha256": "c" * 64}]  # unchanged
    now = [Guidance("/z", of, "c" * 64)]
    if change != "added":
        before.append({"path": path, "kind": of, "sha256": "a" * 64})
    if change != "removed":
        now.append(Guidance(path, of, "b" * 64))
    told: dict[str, Json] = {"guidance": before}
    found = trigger.changes(told, {}, now, ["tidy"], trigger.kinds(), ROOTS)
    assert found == [trigger.Change(path, kind, change, calls_for)]


def test_nothing_changed_calls_for_nothing() -> None:
    told: dict[str, Json] = {
        "guidance": [{"path": "/p/CLAUDE.md", "kind": "rule", "sha256": "a" * 64}]
    }
    now = [Guidance("/p/CLAUDE.md", "rule", "a" * 64)]
    assert trigger.changes(told, {}, now, [], trigger.kinds(), ROOTS) == []


def test_a_plugins_skill_is_used_under_its_own_name() -> None:
    told: dict[str, Json] = {"guidance": [{"path": SKILL, "kind": "skill", "sha256": "a" * 64}]}
    (found,) = trigger.changes(told, {}, [], ["plugin:tidy"], trigger.kinds(), ROOTS)
    assert found.calls_for == "successor"


def test_a_document_that_was_read_calls_for_a_reread(tmp_path: Path) -> None:
    for name in ("same.md", "other.md", "code.py"):
        (tmp_path / name).write_text("now", encoding="utf-8")
    digest = hashlib.sha256(b"now").hexdigest()
    loaded: dict[str, Json] = {
        "same.md": {"sha256": digest, "changed": False},
        "stale.md": {"sha256": digest, "changed": False},
        "other.md": {"sha256": "a" * 64, "changed": False},
        "code.py": {"sha256": "a" * 64, "changed": False},
    }
    roots = trigger.Roots(str(tmp_path), "/user/c")
    found = trigger.changes({"guidance": []}, loaded, [], [], trigger.kinds(), roots)
    assert [(one.path.rpartition("/")[2], one.change, one.calls_for) for one in found] == [
        ("other.md", "changed", "reread"),
        ("stale.md", "removed", "reread"),
    ]


def test_a_reread_does_not_clear_a_changed_rule(tmp_path: Path) -> None:
    """Only a session that is started after the change has the new text in its start."""
    project = tmp_path / "p"
    project.mkdir()
    rule = project / "CLAUDE.md"
    rule.write_text("old", encoding="utf-8")
    roots = trigger.Roots(str(project), str(tmp_path / "c"))
    begun: dict[str, Json] = {
        "guidance": [dict(one._asdict()) for one in guidance(str(project), roots.config_dir)]
    }
    rule.write_text("new", encoding="utf-8")
    reread: dict[str, Json] = {
        "CLAUDE.md": {"sha256": hashlib.sha256(b"new").hexdigest(), "changed": False}
    }
    now = guidance(str(project), roots.config_dir)
    (found,) = trigger.changes(begun, reread, now, [], trigger.kinds(), roots)
    assert found == trigger.Change(str(rule), "always-on rule", "changed", "successor")
    later: dict[str, Json] = {"guidance": [dict(one._asdict()) for one in now]}
    assert trigger.changes(later, reread, now, [], trigger.kinds(), roots) == []


def test_which_file_is_which_kind_can_be_extended() -> None:
    told: dict[str, Json] = {"guidance": [{"path": "/p/X.md", "kind": "rule", "sha256": "a" * 64}]}
    own = (trigger.Kind("rule", "project/X.md", "safety rule"),)
    (found,) = trigger.changes(told, {}, [], [], trigger.kinds(own), ROOTS)
    assert found.kind == "safety rule"
    silenced = (trigger.Kind("rule", "project/X.md", "none"),)
    assert trigger.changes(told, {}, [], [], trigger.kinds(silenced), ROOTS) == []


CREATE = "savepoint handoff create"
QUEUED = b'{"type":"queue-operation","operation":"enqueue","content":"and that"}\n'
DEQUEUED = b'{"type":"queue-operation","operation":"dequeue"}\n'
BOUNDARY = b'{"type":"system","subtype":"compact_boundary"}\n'


@pytest.mark.parametrize(
    ("transcript", "refused"),
    [
        ([], []),
        ([user("do it"), agent("done")], []),  # idle
        ([user("do it")], ["no answer: do it"]),  # an unanswered user message
        ([user("do it"), agent(call("1"))], ["call 1 of Bash"]),  # an unanswered tool call
        ([user("do it"), agent(call("1")), result("1")], ["followed the result of 1"]),
        ([user("do it"), agent(call("1")), result("1"), agent("done")], []),
        # the one open call that runs it, and the message that asked for it, do not count
        ([user("hand off"), agent(call("1", command=CREATE))], []),
        (
            [
                user("hand off"),
                agent("So."),
                agent(call("1", command="/x/savepoint handoff ready")),
            ],
            [],
        ),
        ([user("go"), agent(call("1", "Edit"), call("2", command=CREATE))], ["call 1 of Edit"]),
        (
            [user("go"), agent(call("1", command=CREATE)), agent(call("2", command=CREATE))],
            ["call 1 of Bash"],
        ),
        ([user("go"), agent(call("1", command="echo savepoint"))], ["call 1 of Bash"]),
        ([user("go"), agent(call("1", command=CREATE)), user("wait")], ["no answer: wait"]),
        # what the user typed meanwhile
        ([user("go"), agent(call("1", command=CREATE)), QUEUED], ["queued: and that"]),
        ([user("go"), QUEUED, DEQUEUED, user("and that"), agent("done")], []),
        # what is no message of the user's, or was no answer
        ([user("do it"), agent("529", isApiErrorMessage=True)], ["no answer: do it"]),
        ([user("do it"), agent("done"), user("<local-command-stdout>x")], []),
        ([user("do it"), agent("done"), user("a", isMeta=True)], []),
        ([user("do it"), agent("done"), user("a", isSidechain=True)], []),
        ([user("do it"), agent("done"), user("a", isCompactSummary=True)], []),
        ([user("do it"), agent(call("1")), user("[Request interrupted by user]")], []),
        ([user("do it"), agent(call("1")), BOUNDARY, user("on"), agent("done")], []),
        # what was sent to the background
        (
            [agent(call("1")), result("1", toolUseResult={"backgroundTaskId": "b7"}), agent("x")],
            ["background task b7"],
        ),
        (
            [
                *(agent(call("1")), result("1", toolUseResult={"backgroundTaskId": "b7"})),
                user("<task-notification><task-id>b7</task-id></task-notification>"),
                agent("done"),
            ],
            [],
        ),
        ([b"no json\n", b'{"type":"user"', said("user")], []),  # tolerant
    ],
)
def test_turn(transcript: list[bytes], refused: list[str]) -> None:
    found = turn.open_turn(b"".join(transcript))
    assert len(found) == len(refused)
    for one, text in zip(found, refused, strict=True):
        assert text in one.evidence


def test_evidence_names_the_line_also_in_the_middle_of_a_file() -> None:
    lines = [user("do it"), agent("done"), user("and that")]
    (found,) = turn.open_turn(b"".join(lines[1:]), base=len(lines[0]))
    assert b"".join(lines)[found.offset :].startswith(lines[2])


def _reasons(threads: Threads, thread: str, transcript: Path | None = None) -> list[Reason]:
    ledger = threads.ledger
    path = str(transcript) if transcript else None
    return boundary.reasons(threads.store, ledger, ledger.threads[thread], path)


@pytest.fixture
def idle(threads: Threads, tmp_path: Path) -> tuple[Threads, str, Path]:
    """A thread that may be handed off."""
    thread = threads.open()
    threads.gather(thread)
    threads.is_idle()
    transcript = tmp_path / "t.jsonl"
    transcript.write_bytes(user("do it") + agent("done"))
    assert _reasons(threads, thread, transcript) == []
    return threads, thread, transcript


def test_never_mid_turn(idle: tuple[Threads, str, Path]) -> None:
    threads, thread, transcript = idle
    transcript.write_bytes(user("do it"))
    assert [one.what for one in _reasons(threads, thread, transcript)] == ["mid-turn"]


def test_the_call_that_runs_it_may_be_written_down_late(idle: tuple[Threads, str, Path]) -> None:
    threads, thread, transcript = idle
    transcript.write_bytes(user("hand off"))
    own = threads.ledger.threads[thread]

    def late() -> None:
        with transcript.open("ab") as file:
            file.write(agent(call("1", command=CREATE)))

    timer = threading.Timer(0.3, late)
    timer.start()
    try:
        until = time.monotonic() + 120
        assert boundary.in_flight(threads.store, own, str(transcript), until) == []
    finally:
        timer.join()


def test_never_in_an_evaluation_that_fixed_its_guidance(idle: tuple[Threads, str, Path]) -> None:
    threads, thread, transcript = idle
    threads.add("hold_begin", thread, stand="HOLD-1", text="benchmark of the rules")
    (found,) = _reasons(threads, thread, transcript)
    assert (found.what, "benchmark" in found.evidence) == ("hold", True)
    threads.add("hold_end", thread, stand="HOLD-1")
    assert _reasons(threads, thread, transcript) == []


def test_never_with_an_external_action_pending(idle: tuple[Threads, str, Path]) -> None:
    threads, thread, transcript = idle
    threads.add("action_begin", thread, stand="ACTION-1", text="deployment", process=None)
    (found,) = _reasons(threads, thread, transcript)
    assert (found.what, "deployment" in found.evidence) == ("action", True)
    threads.add("action_end", thread, stand="ACTION-1")
    assert _reasons(threads, thread, transcript) == []


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (
            b'{"background_tasks":[{"id":"b1","command":"sleep 9"}],"session_crons":[]}',
            ["b1 sleep 9"],
        ),
        (b'{"background_tasks":[{"id":"b1","status":"completed"}],"session_crons":[]}', []),
        (
            b'{"background_tasks":[],"session_crons":[{"id":"c1","schedule":"* * * * *"}]}',
            ["c1 * *"],
        ),
        (b'{"background_tasks":["b2"],"session_crons":"x"}', ["b2"]),
    ],
)
def test_only_with_nothing_running(
    idle: tuple[Threads, str, Path], payload: bytes, told: list[str]
) -> None:
    threads, thread, transcript = idle
    running.keep(threads.store, FIRST, payload)
    found = _reasons(threads, thread, transcript)
    assert [one.what for one in found] == ["running"] * len(told)
    assert all(text in one.evidence for text, one in zip(told, found, strict=True))


def test_only_with_no_process_of_its_own(idle: tuple[Threads, str, Path]) -> None:
    threads, thread, transcript = idle
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        told: Json = {"pid": process.pid, "begun": running.begun(process.pid) or 0}
        threads.add("action_begin", thread, stand="ACTION-1", text="a server", process=told)
        assert [one.what for one in _reasons(threads, thread, transcript)] == ["running"]
        process.kill()
    assert _reasons(threads, thread, transcript) == []


@pytest.mark.parametrize("pid", [2**31, 2**63, 10**21])
def test_a_number_that_no_process_can_have_is_gone(pid: int) -> None:
    assert running.begun(pid) is None
    assert not running.is_alive({"pid": pid, "begun": 0})


def test_only_where_it_is_known_what_runs(threads: Threads, tmp_path: Path) -> None:
    thread = threads.open()
    threads.gather(thread)
    assert [one.what for one in _reasons(threads, thread)] == ["not known", "not known"]
    running.keep(threads.store, FIRST, b'{"last_assistant_message":"a client before 2.1.145"}')
    transcript = tmp_path / "t.jsonl"
    transcript.write_bytes(agent("done"))
    assert [one.what for one in _reasons(threads, thread, transcript)] == ["not known"]


def test_only_with_a_reconciled_ledger(threads: Threads) -> None:
    thread = threads.open(session=None)
    assert [one.what for one in _reasons(threads, thread)] == ["not reconciled"]  # never gathered
    (candidate,) = threads.gather(thread, [Found("todo", "write tests", 17, "a")])
    (found,) = _reasons(threads, thread)
    assert (found.what, found.offset) == ("not reconciled", 17)
    with pytest.raises(BoundaryError, match="write tests"):
        threads.create(thread)
    threads.add("dismiss", thread, candidate=candidate, reason="it was done")
    assert _reasons(threads, thread) == []
