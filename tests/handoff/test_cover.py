"""A handoff stands on a savepoint that has the session as it is now, or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.store import savepoints
from succession.handoff import cover
from tests.handoff.test_gather import _git
from tests.handoff.test_scenario import Life
from tests.handoff.threads import agent, call, result, user
from tests.verify import builder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.handoff.threads import Threads

CREATE = "savepoint handoff create --savepoint latest"
BEFORE = [user("do it"), agent("done")]
SAVES = agent(call("1", command="savepoint create"))


def told(threads: Threads, before: list[bytes], now: bytes, folder: Path) -> list[str]:
    one = builder.save(threads.built, b"".join(before))
    document = savepoints.open_snapshot(threads.built.paths, one).document
    path = folder / "t.jsonl"
    path.write_bytes(now)
    found = cover.reasons(threads.store, document, str(path))
    for reason in found:
        assert (reason.what, "leave --savepoint away" in reason.evidence) == ("not covered", True)
        if reason.offset is not None:
            assert reason.offset >= len(b"".join(before)) - len(before[-1])
            assert reason.offset == 0 or now[reason.offset - 1 : reason.offset] == b"\n"
    return [one.evidence for one in found]


@pytest.mark.parametrize(
    ("later", "refused"),
    [
        ([], []),
        ([agent("So."), agent(call("2", command=CREATE))], []),  # what runs us
        ([b'{"type":"progress"}\n', b"no json\n"], []),
        ([user("a", isMeta=True)], []),
        ([user("Shall it run?")], ["the user's message Shall it run?"]),
        ([agent("Shall I deploy to prod?")], ["offer Shall I deploy to prod?"]),
        ([agent("See https://x.example/o/r/pull/99.")], ["pull_request"]),
        ([agent(call("2", "Edit"))], ["the call 2 of Edit"]),
        ([agent(call("2", command=CREATE + "; make"))], ["the call 2 of Bash"]),
        ([result("7")], ["the result of 7"]),
    ],
)
def test_what_came_after_it(
    threads: Threads, tmp_path: Path, later: list[bytes], refused: list[str]
) -> None:
    found = told(threads, BEFORE, b"".join([*BEFORE, *later]), tmp_path)
    assert len(found) == len(refused)
    for one, text in zip(found, refused, strict=True):
        assert one.startswith(text)


def test_the_call_that_made_it_is_answered_after_it(threads: Threads, tmp_path: Path) -> None:
    before = [*BEFORE, SAVES]
    later = [result("1"), agent(call("2", command=CREATE))]
    assert told(threads, before, b"".join([*before, *later]), tmp_path) == []


def test_a_line_that_was_not_whole(threads: Threads, tmp_path: Path) -> None:
    torn = [*BEFORE, user("and that")[:-9]]
    now = b"".join([*BEFORE, user("and that")])
    assert [one[:27] for one in told(threads, torn, now, tmp_path)] == [
        "the user's message and that"
    ]


@pytest.mark.parametrize("now", [b"", user("do it"), user("do IT") + agent("done")])
def test_another_transcript(threads: Threads, tmp_path: Path, now: bytes) -> None:
    assert told(threads, BEFORE, now, tmp_path) == [
        f"the transcript is another than the savepoint's: {cover._ANEW}"
    ]


def test_more_than_is_looked_through(
    threads: Threads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDOFF_TURN_BYTES", 100)
    now = b"".join([*BEFORE, agent("x" * 200)])
    (found,) = told(threads, BEFORE, now, tmp_path)
    assert "bytes came after the savepoint" in found


def test_a_handoff_drops_nothing_that_came_after_its_savepoint(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    life = Life(tmp_path, capsysbinary)
    life.run.good("init")
    life.say("user", "go")
    life.say("assistant", "Done.")
    life.json("thread", "x")
    life.stops()
    seq = str(life.run.created()["seq"])
    life.json("gather", "--savepoint", seq)
    life.say("user", "and now?")
    life.say("assistant", "Shall I deploy it? https://github.com/o/r/pull/99")
    refused = life("create", "--savepoint", seq, "--json")
    assert (refused.code, refused.json["error"]["name"]) == (1, "boundary")
    assert "the user's message and now? came after" in refused.json["error"]["message"]
    left = life.json("gather")["unresolved"]
    assert {one["what"] for one in left} == {"offer", "pull_request"}
    life.json("item", "dismiss", *(one["id"] for one in left), "--reason", "it was deployed")
    assert life.json("create", "--savepoint", "latest")["items"] == []


def test_a_handoff_drops_no_change_that_came_after_its_savepoint(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    life = Life(tmp_path, capsysbinary)
    _git(life.project, "init", "-q")
    life.run.good("init")
    life.say("user", "go")
    life.say("assistant", "Done.")
    life.json("thread", "x")
    life.stops()
    for name in ("kept", "changed", "gone"):
        (life.project / name).write_bytes(b"line\n" * 200_000)  # of several segments
    left = life.json("gather")["unresolved"]
    life.json("item", "dismiss", *(one["id"] for one in left), "--reason", "not wanted")
    (life.project / "changed").write_bytes(b"line\n" * 200_000 + b"more")
    (life.project / "gone").unlink()
    (life.project / "new").write_bytes(b"")
    refused = life("create", "--savepoint", "latest", "--json")
    assert refused.code == 1
    message = refused.json["error"]["message"]
    assert [
        name for name in ("kept", "changed", "gone", "new") if f"{name} was changed" in message
    ] == [
        "changed",
        "new",
    ]
    (life.project / "changed").unlink()
    (life.project / "new").unlink()
    assert life.json("create", "--savepoint", "latest")["items"] == []


def test_a_session_without_a_transcript_has_no_more(threads: Threads) -> None:
    document = savepoints.open_snapshot(threads.built.paths, threads.savepoint).document
    assert cover.reasons(threads.store, document, None) == []
