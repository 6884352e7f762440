"""Candidates: what they are, and where the line is that says so."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits
from savepoint.core.segments import Segment
from succession.handoff import gather
from succession.handoff.gather import Found
from tests.handoff.threads import Threads, agent, result, user
from tests.verify import builder

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.core.strict_json import Json


def todos(*items: tuple[str, str]) -> dict[str, Any]:
    listed = [{"content": text, "status": status} for text, status in items]
    return {"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": listed}}


def found(*lines: bytes) -> list[tuple[str, str, int | None]]:
    return [one[:3] for one in gather.of_conversation(b"".join(lines))]


def test_todos_not_done() -> None:
    first = agent(todos(("old", "pending")))
    last = agent(todos(("a", "pending"), ("b", "completed"), ("c", "in_progress")))
    assert found(first, last) == [("todo", "a", len(first)), ("todo", "c", len(first))]


def test_tasks_that_are_open() -> None:
    made = [
        result("1", toolUseResult={"task": {"id": str(n), "subject": f"task {n}"}}) for n in (1, 2)
    ]
    done = result("2", toolUseResult={"taskId": "1", "statusChange": {"to": "completed"}})
    begun = result("3", toolUseResult={"taskId": "2", "statusChange": {"to": "in_progress"}})
    at = len(b"".join([*made, done]))
    assert found(*made, done, begun) == [("todo", "task 2", at)]


def test_questions_and_offers_of_the_last_turns() -> None:
    lines = [
        *(user("1"), agent("Shall I do the old thing?")),
        *(user("2"), agent("It works. Which one do you mean? Let me know if it fails.")),
        *(user("3"), agent("```\nis this code?\n```\nI can also write the docs.")),
        *(user("4"), agent("**Do you want me to push?**\nDone.")),
    ]
    at = [sum(map(len, lines[:n])) for n in range(len(lines))]
    assert found(*lines) == [
        ("question", "Which one do you mean?", at[3]),
        ("offer", "Let me know if it fails.", at[3]),
        ("offer", "I can also write the docs.", at[5]),
        ("offer", "Do you want me to push?", at[7]),
    ]


def test_pull_requests_once_each_at_their_newest_line() -> None:
    url = "https://github.com/o/r/pull/7"
    link = json.dumps({"type": "pr-link", "prUrl": url}).encode() + b"\n"
    spoken = agent(f"See {url} and https://gitlab.example/a/b/-/merge_requests/3.")
    assert found(link, user("so?"), spoken) == [
        ("pull_request", url, len(link) + len(user("so?"))),
        (
            "pull_request",
            "https://gitlab.example/a/b/-/merge_requests/3",
            len(link) + len(user("so?")),
        ),
    ]


def test_running_tasks_and_crons() -> None:
    begun = result("1", toolUseResult={"backgroundTaskId": "b7"})
    assert found(begun) == [("task", "background task b7", 0)]
    assert gather.of_running((["b1 sleep"], ["c1 daily"])) == [
        Found("task", "b1 sleep", None, "b1 sleep"),
        Found("cron", "c1 daily", None, "c1 daily"),
    ]
    assert gather.of_running(None) == []


# Checked in: what is found in real sessions. Each offset must point at the line that says so.
EXPECTED = {
    "claude-2.0.64-small.jsonl": {"question": 2},
    "claude-2.1-all-record-types.jsonl": {"todo": 1, "pull_request": 1},
    "claude-2.1.29-images.jsonl": {"offer": 1, "pull_request": 1},
    "claude-2.1.5-two-compactions.jsonl": {"offer": 1},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_sessions(shared: Path, name: str) -> None:
    data = (shared / "transcripts" / name).read_bytes()
    candidates = gather.of_conversation(data)
    assert Counter(one.what for one in candidates) == EXPECTED[name]
    for one in candidates:
        assert one.offset is not None
        assert one.offset == 0 or data[one.offset - 1 : one.offset] == b"\n"
        line = data[one.offset :].partition(b"\n")[0]
        assert one.text in json.dumps(json.loads(line), ensure_ascii=False)


def test_every_real_session_is_listed(shared: Path) -> None:
    names = {one.name for one in (shared / "transcripts").glob("claude-*.jsonl")}
    assert names == set(EXPECTED)


def test_changes_are_those_of_the_savepoint(threads: Threads) -> None:
    document = _document(threads, files=["a.py", {"b64": "/w=="}], deleted=["b.py"])
    told = [
        (one.what, one.text, one.offset) for one in gather.of_savepoint(threads.store, document)
    ]
    assert told == [
        ("uncommitted", "a.py", None),
        ("uncommitted", "\\xff", None),
        ("uncommitted", "deleted: b.py", None),
    ]


def _document(
    threads: Threads,
    files: list[Json],
    deleted: list[Json],
    changes: list[Json] | None = None,
    commit: str | None = None,
) -> dict[str, Json]:
    from savepoint.store import savepoints

    document = dict(savepoints.open_snapshot(threads.built.paths, threads.savepoint).document)
    git = document["git_state"]
    assert isinstance(git, dict)
    listed: list[Json] = [
        {"path": path, "kind": "untracked", "mode": "100644", "bytes": 0, "segments": []}
        for path in files
    ]
    found: Json = {
        "files": changes or listed,
        "deleted": deleted,
        "excluded": [],
        "omitted": None,
    }
    document["git_state"] = {**git, "current_commit": commit, "changes": found}
    return document


def test_the_conversation_is_that_of_the_savepoint(threads: Threads) -> None:
    one = builder.save(threads.built, user("go") + agent("Shall I?"))
    from savepoint.store import savepoints

    document = savepoints.open_snapshot(threads.built.paths, one).document
    (candidate,) = gather.of_savepoint(threads.store, document)
    assert (candidate.what, candidate.offset) == ("offer", len(user("go")))


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_branches_with_commits_that_no_remote_has(tmp_path: Path, threads: Threads) -> None:
    project = threads.project
    _git(tmp_path, "init", "-q", "--bare", "remote.git")
    _git(project, "init", "-q")
    assert _branches(threads) == []
    _git(project, "commit", "-q", "--allow-empty", "-m", "1")
    assert _branches(threads) == ["main: 1 commit that no remote has"]
    _git(project, "remote", "add", "origin", str(tmp_path / "remote.git"))
    _git(project, "push", "-q", "origin", "main")
    assert _branches(threads) == []
    _git(project, "switch", "-q", "-c", "topic")
    for _ in range(2):
        _git(project, "commit", "-q", "--allow-empty", "-m", "x")
    assert _branches(threads) == ["topic: 2 commits that no remote has"]


def _branches(threads: Threads) -> list[str]:
    os.makedirs(threads.store.path, exist_ok=True)  # of a test
    project = str(threads.project)
    env = dict(os.environ)
    return [one.text for one in gather.of_branches(threads.store, project, project, env)]


def test_no_repository_has_no_branches(threads: Threads) -> None:
    assert _branches(threads) == []


def test_the_same_thing_is_the_same_candidate_next_time(threads: Threads) -> None:
    thread = threads.open()
    one = Found("todo", "a", 3, "a")
    (first,) = threads.gather(thread, [one, one])
    threads.add("dismiss", thread, candidate=first, reason="no")
    assert threads.gather(thread, [one._replace(offset=99)]) == []
    assert len(threads.gather(thread, [Found("todo", "b", 3, "b")])) == 1


def keys(*lines: bytes) -> list[str]:
    return [one.key for one in gather.of_conversation(b"".join(lines))]


def task(status: str) -> bytes:
    change = {"taskId": "1", "statusChange": {"to": status}}
    return result("2", toolUseResult=change)


LISTED = agent(todos(("a", "pending")))
MADE = result("1", toolUseResult={"task": {"id": "1", "subject": "a"}})
SEEN = agent("See https://github.com/o/r/pull/7.")


@pytest.mark.parametrize(
    ("first", "same", "anew"),
    [
        ([LISTED], [agent(todos(("a", "in_progress"), ("b", "completed")))], [DONE, LISTED])
        for DONE in (agent(todos(("a", "completed"))), agent(todos()))
    ]
    + [
        ([MADE], [task("in_progress")], [task("completed"), task("pending")]),
        ([SEEN], [SEEN], [user("reopened"), SEEN]),
    ],
)
def test_what_is_owed_anew_is_another_candidate(
    first: list[bytes], same: list[bytes], anew: list[bytes]
) -> None:
    """It was dismissed as done; what came after that was never asked about."""
    (before,) = keys(*first)
    assert keys(*first, *same) == [before]
    assert keys(*first, *anew) not in ([], [before])


def _changed(threads: Threads, **more: Json) -> list[str]:
    document = _document(threads, **{"files": [], "deleted": [], **more})  # type: ignore[arg-type]
    return [one.key for one in gather.of_savepoint(threads.store, document)]


def test_a_file_that_was_changed_anew_is_another_candidate(threads: Threads) -> None:
    def one(content: str, kind: str = "working") -> Json:
        digest = hashlib.sha256(content.encode()).hexdigest()
        segment = Segment(digest, 1, 0, "a" * 64, 24, 9).to_json()
        return {"path": "a", "kind": kind, "mode": "100644", "bytes": 1, "segments": [segment]}

    (first,) = _changed(threads, changes=[one("1")])
    assert _changed(threads, changes=[one("1", "staged")]) == [first]
    assert _changed(threads, changes=[one("1", "staged"), one("1")]) == [first]
    assert _changed(threads, changes=[one("2")]) != [first]
    assert _changed(threads, changes=[one("1", "staged"), one("2")]) != [first]


def test_a_file_that_was_deleted_anew_is_another_candidate(threads: Threads) -> None:
    (first,) = _changed(threads, deleted=["a"], commit="1" * 40)
    assert _changed(threads, deleted=["a"], commit="1" * 40) == [first]
    assert _changed(threads, deleted=["a"], commit="2" * 40) != [first]


def test_others_that_are_left_out_are_another_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOFF_CANDIDATES", 1)
    first, other = ([("a", "pending"), (name, "pending")] for name in "bc")
    assert keys(agent(todos(*first))) != keys(agent(todos(*other)))
    assert keys(agent(todos(*first))) == keys(agent(todos(*first)))


def test_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOFF_CANDIDATES", 2)
    listed = agent(todos(*((f"todo {n}", "pending") for n in range(5))))
    assert [text for _, text, _ in found(listed)] == ["todo 0", "todo 1", "and 3 more"]


@pytest.mark.parametrize("text", ["a\ud800b?", "x" * 100_000 + "?", "\u202e?", "\x1b[2J?"])
def test_any_text_can_be_written_down(threads: Threads, text: str) -> None:
    thread = threads.open()
    candidates = gather.of_conversation(user("go") + agent(text))
    assert len(threads.gather(thread, candidates)) == 1
