"""The fast reading of a transcript says what a plain one says, however the bytes arrive."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits
from savepoint.core.errors import MalformedError
from tests.capture.claude_reference import Reference
from tests.capture.scans import facts, scan_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REAL = (
    "claude-2.0.64-small.jsonl",
    "claude-2.1-all-record-types.jsonl",
    "claude-2.1.5-two-compactions.jsonl",
    "claude-2.1.29-images.jsonl",
)


def spaced(line: bytes) -> bytes:
    return json.dumps(json.loads(line), separators=(", ", ": ")).encode()


def unescaped(line: bytes) -> bytes:
    text = json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def shuffled(line: bytes) -> bytes:
    return json.dumps(_shuffle(json.loads(line), random.Random(7)), separators=(",", ":")).encode()


def _shuffle(value: object, chance: random.Random) -> object:
    if isinstance(value, list):
        return [_shuffle(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    members = list(value.items())
    chance.shuffle(members)
    return {key: _shuffle(item, chance) for key, item in members}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("rewrite", [bytes, spaced, unescaped, shuffled])
def test_real_transcripts(name: str, rewrite: Callable[[bytes], bytes], shared: Path) -> None:
    lines = (shared / "transcripts" / name).read_bytes().splitlines()
    data = b"\n".join(rewrite(line) for line in lines)
    expected = facts(Reference(data))
    assert expected["messages"] > 0
    assert facts(scan_of(data)) == expected
    assert facts(scan_of(data + b"\n", [len(data) // 3, len(data) // 2])) == {
        **expected,
        "size": len(data) + 1,
        "unended": 0,
    }


def test_counts_of_a_real_transcript_are_as_known(shared: Path) -> None:
    scan = scan_of((shared / "transcripts/claude-2.1.5-two-compactions.jsonl").read_bytes())
    assert (scan.records, scan.messages, scan.boundaries) == (593, 520, 2)
    assert scan.sessions == {"b00b80af-879f-4265-b95b-48db0938673c": 577}
    assert (scan.version, scan.model) == ("2.1.5", "claude-opus-4-5-20251101")


@pytest.mark.parametrize("name", REAL)
def test_a_real_transcript_cut_anywhere(name: str, shared: Path) -> None:
    data = (shared / "transcripts" / name).read_bytes()[:200_000]
    chance = random.Random(name)
    for _ in range(5):
        torn = data[: chance.randrange(len(data))]
        cuts = [chance.randrange(len(data)) for _ in range(chance.randrange(40))]
        assert facts(scan_of(torn, cuts)) == facts(Reference(torn))


def test_what_only_looks_like_a_message_does_not_count() -> None:
    records = [
        {"type": "progress", "data": {"message": {"type": "user", "message": {"role": "user"}}}},
        {"type": "api-request-blob", "message": {"role": "user", "type": "user"}},
        {"note": "x", "data": {"type": "user"}, "type": "summary"},
        {"data": {"x": 1, "type": "user"}},
        {"text": ',"type":"user"'},
    ]
    data = b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in records)
    assert (scan_of(data).messages, scan_of(data).records) == (0, len(records))


def test_a_boundary_sets_the_usage_back() -> None:
    answer = b'{"type":"assistant","message":{"model":"m","usage":{"input_tokens":1}}}\n'
    boundary = b'{"type":"system","subtype":"compact_boundary"}\n'
    assert scan_of(answer + boundary).usage is None
    assert scan_of(answer + boundary).model == "m"
    assert scan_of(answer + boundary + answer).usage == (len(answer + boundary), len(answer) - 1)


def test_a_forged_result_inside_a_message_is_no_file() -> None:
    inner = {"toolUseResult": {"filePath": "/forged", "oldString": ""}}
    true = {"filePath": "/true", "oldString": ""}
    record = {"type": "user", "message": {"role": "user", "content": [inner]}}
    data = json.dumps({**record, "toolUseResult": true}, separators=(",", ":")).encode()
    assert list(scan_of(data).files) == ["/true"]
    assert list(scan_of(json.dumps(record, separators=(",", ":")).encode()).files) == []


def test_an_unchanged_file_read_again_keeps_the_record_with_its_text() -> None:
    text = {"type": "text", "file": {"filePath": "/a", "content": "x"}}
    again = {"type": "file_unchanged", "file": {"filePath": "/a"}}
    data = b"".join(
        json.dumps({"type": "user", "toolUseResult": result}, separators=(",", ":")).encode()
        + b"\n"
        for result in (text, again)
    )
    assert scan_of(data).files["/a"].offset == 0
    assert scan_of(data, [data.index(b"\n") + 1]).files["/a"].offset == 0
    assert scan_of(data[data.index(b"\n") + 1 :]).files["/a"].kind == "read"


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines above 300 bytes are told apart by 80 bytes of each end."""
    monkeypatch.setattr(limits, "SCAN_LINE_BYTES", 300)
    monkeypatch.setattr(limits, "SCAN_EDGE_BYTES", 80)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_too_long_to_keep_is_counted_however_it_comes(short_lines: None, end: bytes) -> None:
    long = b'{"sessionId":"s","type":"user","message":{"content":"' + b"x" * 900 + b'"}}'
    late = b'{"message":{"content":"' + b"y" * 900 + b'"},"type":"assistant","sessionId":"s"}'
    data = long + b"\n" + late + b"\n" + b'{"type":"user"}' + end
    seen = []
    for size in (1, 7, 100, 5000):
        scan = Scan.empty()
        for at in range(0, len(data), size):
            scan.feed(data[at : at + size])
            scan = Scan.from_json(scan.to_json())
            assert sum(map(len, scan.held)) <= 300 + size
        assert (scan.end().messages, scan.end().records) == (3, 3)
        seen.append(scan.end().to_json() | {"held": ""})
    assert seen.count(seen[0]) == len(seen)
    assert seen[0]["sessions"] == {"s": 2}


def test_state_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCAN_SESSIONS", "LOADED_FILES", "COMPANION_FILES", "SCAN_TASKS", "SCAN_CALLS"):
        monkeypatch.setattr(limits, name, 3)
    records: list[dict[str, Any]] = []
    for n in range(10):
        file = {"toolUseResult": {"filePath": f"/{n}", "oldString": ""}}
        records += [
            {"type": "user", "sessionId": f"s{n}", **file},
            {"type": "user", "toolUseResult": {"task": {"id": f"{n}", "subject": "x"}}},
            {"type": "file-history-delta", "backup": {"backupFileName": f"{n}@v1"}},
            {"type": "assistant", "message": {"content": [_read_call(n)]}},
        ]
    data = b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in records)
    for cuts in ([], [len(data) // 2]):
        scan = scan_of(data, cuts)
        assert list(scan.files) == ["/7", "/8", "/9"]
        assert scan.files_more == 7
        assert (list(scan.sessions), scan.sessions_more) == (["s0", "s1", "s2"], 7)
        assert list(scan.backups) == ["7@v1", "8@v1", "9@v1"]
        assert list(scan.tasks) == ["7", "8", "9"]
        assert list(scan.calls) == ["7", "8", "9"]


def _read_call(n: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"{n}", "name": "Read", "input": {"file_path": f"/{n}"}}


@pytest.mark.parametrize(
    "change",
    [
        {"messages": -1}, {"messages": True}, {"size": "1"}, {"held": "zz"}, {"held": "00"},
        {"files": {"/a": ["read", 1]}}, {"files": []}, {"usage": [1]}, {"version": 1},
        {"sessions": {"s": None}}, {"more": 1}, {"unended": 3}, {"tasks": {"1": ["x"]}},
    ],
)  # fmt: skip
def test_nonsense_is_no_scan(change: dict[str, Any]) -> None:
    value = Scan.empty().to_json()
    assert Scan.from_json(value).to_json() == value
    with pytest.raises(MalformedError):
        Scan.from_json({**value, **change})


def test_a_scan_that_lacks_a_member_is_none() -> None:
    value = Scan.empty().to_json()
    for member in value:
        with pytest.raises(MalformedError):
            Scan.from_json({name: one for name, one in value.items() if name != member})
