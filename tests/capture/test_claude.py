"""What Claude Code's records say: todos, files that were shown, session ids."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture.agents import claude
from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits
from tests.capture.claude_records import at, fed, line_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from savepoint.capture.agents.adapter import Adapter


def test_the_module_is_an_adapter() -> None:
    adapter: Adapter = claude
    assert adapter.NAME == "claude-code"
    assert adapter.Scan.empty().end().messages == 0


# todos and tasks


def todo_write(*todos: object) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": list(todos)}}
    return {"type": "assistant", "message": {"content": [call]}}


OPEN = {"content": "write tests", "status": "pending", "activeForm": "x"}
DOING = {"content": "half\ud83d", "status": "in_progress"}
DONE = {"content": "old", "status": "completed"}


@pytest.mark.parametrize(
    "record",
    [
        todo_write(OPEN, DONE, DOING),
        {"type": "user", "message": {}, "todos": [OPEN, DONE, DOING]},
        {"type": "user", "toolUseResult": {"oldTodos": [], "newTodos": [OPEN, DONE, DOING]}},
        {"type": "attachment", "attachment": {"type": "todo_reminder", "content": [OPEN, DOING]}},
    ],
)
def test_open_todos(record: dict[str, Any]) -> None:
    scan = fed({"type": "user", "message": {}, "todos": []}, record)
    assert scan.todos is not None
    assert scan.todos.length == len(line_of(record))
    assert claude.todos(scan, line_of(record)) == ["write tests", "half\ufffd"]


def test_todos_of_nonsense() -> None:
    record = todo_write(None, 5, [], {}, {"content": 5}, "plain", "plain", {"content": "x" * 9999})
    found = claude.todos(fed(record), line_of(record))
    assert found == ["plain", "x" * limits.PRIORITY_CHARS]
    assert claude.todos(Scan.empty(), None) == []
    assert claude.todos(Scan.empty(), b"\xff{") == []
    many = todo_write(*({"content": f"{n}", "status": "pending"} for n in range(500)))
    assert len(claude.todos(fed(many), line_of(many))) == limits.PRIORITIES


def test_tasks_are_followed_over_many_records() -> None:
    def result(value: dict[str, Any]) -> dict[str, Any]:
        return {"type": "user", "toolUseResult": value}

    def moved(task: str, to: str) -> dict[str, Any]:
        change = {"from": "pending", "to": to}
        return result({"success": True, "taskId": task, "statusChange": change})

    scan = fed(
        result({"task": {"id": "1", "subject": "first"}}),
        result({"task": {"id": "2", "subject": "second"}}),
        moved("1", "in_progress"),
        moved("2", "completed"),
        moved("9", "pending"),
    )
    assert claude.todos(scan, None) == ["first"]
    scan.feed(line_of(moved("1", "deleted")) + b"\n")
    assert claude.todos(scan, None) == []
    listed = [{"id": "7", "subject": "only", "status": "pending"}]
    reminder = {"type": "attachment", "attachment": {"type": "task_reminder", "content": listed}}
    scan.feed(line_of(reminder) + b"\n")
    assert claude.todos(scan, None) == ["only"]


def test_tasks_of_a_real_transcript(shared: Path) -> None:
    scan = Scan.empty()
    scan.feed((shared / "transcripts/claude-2.1.29-images.jsonl").read_bytes())
    assert len(scan.tasks) == 5
    assert list(scan.skills) == [
        "superpowers:brainstorming",
        "superpowers:executing-plans",
        "superpowers:receiving-code-review",
    ]


# files that were shown


def read_result(text: str, first: int, lines: int, total: int) -> dict[str, Any]:
    file = {"filePath": "/p/a.py", "content": text, "numLines": lines, "startLine": first}
    return {
        "type": "user",
        "toolUseResult": {"type": "text", "file": {**file, "totalLines": total}},
    }


def test_every_read_of_the_real_transcripts_is_noted(shared: Path) -> None:
    noted = 0
    for name in ("claude-2.0.64-small", "claude-2.1.5-two-compactions", "claude-2.1.29-images"):
        for line in (shared / f"transcripts/{name}.jsonl").read_bytes().splitlines():
            result = json.loads(line).get("toolUseResult")
            file = result.get("file") if isinstance(result, dict) else None
            if file is not None:
                digest = hashlib.sha256(file["content"].encode()).hexdigest()
                whole = file["numLines"] == file["totalLines"]
                expected = (file["startLine"], file["numLines"], digest, whole)
                assert claude.read_note(line, file["filePath"]) == expected
                noted += 1
    assert noted == 70


def test_files_of_a_real_transcript(shared: Path) -> None:
    data = (shared / "transcripts/claude-2.1.29-images.jsonl").read_bytes()
    scan = Scan.empty()
    scan.feed(data)
    for path, note in scan.files.items():
        result = json.loads(at(data, note))["toolUseResult"]
        assert path in (result.get("filePath"), result.get("file", {}).get("filePath"))
        seen = claude.read_note(at(data, note), path)
        assert (seen is not None) == ("file" in result or "content" in result)


def test_note_of_a_part() -> None:
    record = read_result("b\nc", 2, 2, 9)
    digest = hashlib.sha256(b"b\nc").hexdigest()
    assert claude.read_note(line_of(record), "/p/a.py") == (2, 2, digest, False)
    assert claude.read_note(line_of(record), "/p/b.py") is None


def test_note_of_a_whole_file_with_a_lone_surrogate() -> None:
    note = claude.read_note(line_of(read_result("a\ud800\n", 1, 2, 2)), "/p/a.py")
    text = "a\ud800\n".encode("utf-8", "surrogatepass")
    assert note == (1, 2, hashlib.sha256(text).hexdigest(), True)


def test_note_of_a_written_file() -> None:
    result = {"type": "create", "filePath": "/p/a.py", "content": "x\ny\n"}
    note = claude.read_note(line_of({"type": "user", "toolUseResult": result}), "/p/a.py")
    assert note == (1, 3, hashlib.sha256(b"x\ny\n").hexdigest(), True)


def test_note_of_attachments() -> None:
    file = {"filePath": "/m", "content": "t", "numLines": 1, "startLine": 1, "totalLines": 1}
    digest = hashlib.sha256(b"t").hexdigest()

    def noted(attachment: dict[str, Any]) -> object:
        return claude.read_note(line_of({"type": "attachment", "attachment": attachment}), "/m")

    assert noted({"type": "file", "filename": "/m", "content": {"file": file}}) == (
        1, 1, digest, True,
    )  # fmt: skip
    memory = {"type": "nested_memory", "path": "/m", "content": {"path": "/m", "content": "t"}}
    assert noted(memory) == (1, 1, digest, True)
    assert noted({**memory, "content": {"content": "t", "contentDiffersFromDisk": True}}) is None
    assert noted({"type": "edited_text_file", "filename": "/m", "snippet": "t"}) is None
    assert noted({"type": "compact_file_reference", "filename": "/m"}) is None


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff", b"[]", b'{"type":"user"}', b'{"type":"user","toolUseResult":"Error"}',
        b'{"type":"user","toolUseResult":{"type":"file_unchanged","file":{"filePath":"/p/a.py"}}}',
        b'{"type":"user","toolUseResult":{"filePath":"/p/a.py","oldString":"","newString":""}}',
        b'{"type":"user","toolUseResult":{"file":{"filePath":"/p/a.py","content":"x"}}}',
        b'{"type":"progress","toolUseResult":{"filePath":"/p/a.py","content":"x"}}',
    ],
)  # fmt: skip
def test_records_without_content(line: bytes) -> None:
    assert claude.read_note(line, "/p/a.py") is None


def test_an_image_is_known_by_its_call() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/a.png"}}
    result = {"type": "image", "file": {"base64": "AA==", "type": "image/png"}}
    block = {"tool_use_id": "t1", "type": "tool_result", "content": [{"type": "image"}]}
    message = {"role": "user", "content": [block]}
    scan = fed(
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "message": message, "toolUseResult": result},
    )
    assert list(scan.files) == ["/p/a.png"]
    assert scan.files["/p/a.png"].kind == "read"


def test_a_read_that_failed_is_no_file() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/none"}}
    scan = fed(
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "toolUseResult": "Error: File does not exist."},
    )
    assert scan.files == {}


# sessions


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("cde341db-b80a-44f5-b0f2-94db2ef7a164", "cde341db-b80a-44f5-b0f2-94db2ef7a164"),
        ("my-session", "first"),
        ("", "first"),
        ("cde341db-b80a-44f5-b0f2-94db2ef7a164-copy", "first"),
    ],
)
def test_session_of_a_file(stem: str, expected: str) -> None:
    scan = fed({"type": "mode"}, {"type": "mode", "sessionId": "first"}, {"sessionId": "second"})
    assert claude.session_id(scan, stem) == expected


def test_session_of_a_file_without_any() -> None:
    assert claude.session_id(Scan.empty(), "notes") is None


def test_reading_is_much_faster_than_parsing(shared: Path) -> None:
    data = (shared / "transcripts/claude-2.1.5-two-compactions.jsonl").read_bytes() + b"\n"
    lines = data.splitlines()

    def parse() -> None:
        for line in lines:
            json.loads(line)

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return min(times)

    assert best(lambda: Scan.empty().feed(data)) < best(parse) * 0.8  # measured: 0.4
