"""The fast reading of a transcript says what a plain one says, however the bytes arrive."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits, strict_json
from savepoint.core.errors import MalformedError
from tests.capture.claude_reference import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REAL = (
    "claude-2.0.64-small.jsonl",
    "claude-2.1-all-record-types.jsonl",
    "claude-2.1.5-two-compactions.jsonl",
    "claude-2.1.29-images.jsonl",
)
COUNTS = ("size", "messages", "records", "boundaries", "glued", "unparsable", "unended", "torn")
LASTS = ("session_id", "version", "cwd", "model", "usage", "todos")
MAPS = ("sessions", "files", "tasks", "skills", "backups")


def scan_of(data: bytes, cuts: list[int] | None = None) -> Scan:
    return fed(data, cuts or []).end()


def fed(data: bytes, cuts: list[int]) -> Scan:
    scan = Scan.empty()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, stop in itertools.pairwise(edges):
        scan.feed(data[start:stop])
    return scan


def facts(scan: Scan | Reference) -> dict[str, Any]:
    found = {name: getattr(scan, name) for name in (*COUNTS, *LASTS, *MAPS)}
    offsets = [file[1] for file in scan.files.values()]
    assert offsets == sorted(offsets)
    return found


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


# Records of the shapes that clients write, around values that look like records and are none.

_LOOKALIKES = (
    '"type":"user"', ',"type":"assistant","uuid":"x"}', '{"type":"user"', '}{"type":"user"}',
    '"toolUseResult":{"filePath":"/no"', ']},"uuid":"', "\\", '\\"', '"', "}", "}\n{", "\u2028",
    "\0", "\ud83d", "\r\n", "é", '"todos":[]', '"sessionId":"no"',
)  # fmt: skip
_strings = st.lists(st.one_of(st.sampled_from(_LOOKALIKES), st.text(max_size=4)), max_size=4).map(
    "".join
)
_scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 10**12), st.floats(0, 1), _strings)
_inner = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "x"])},
    optional={
        "message": st.just({"role": "user", "content": "x"}),
        "sessionId": st.just("inner"),
        "version": st.just("inner"),
        "toolUseResult": st.just({"filePath": "/inner"}),
    },
)
_values = st.recursive(
    st.one_of(_scalars, _inner),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(_strings, inside, max_size=3)
    ),
    max_leaves=6,
)
_paths = st.sampled_from(["/a", "/b c", 'C:\\x\\"q"', "/é", "/u\u2028"])
_sessions = st.sampled_from(["s1", "s2", "11111111-2222-3333-4444-555555555555"])


def _with(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **members})


def _block(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"tool_use_id": st.sampled_from(["t1", "t2"]), "type": st.just("tool_result"), **members},
        optional={"is_error": st.booleans()},
    )


_results = st.one_of(
    st.fixed_dictionaries({"filePath": _paths, "oldString": _strings, "originalFile": _values}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["text", "file_unchanged", "notebook"]),
            "file": st.fixed_dictionaries({"filePath": _paths, "content": _strings}),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("image"), "file": st.fixed_dictionaries({"base64": _strings})}
    ),
    st.fixed_dictionaries({"type": st.just("create"), "filePath": _paths, "content": _strings}),
    st.fixed_dictionaries({"stdout": _strings, "stderr": _strings}),
    st.fixed_dictionaries({"oldTodos": st.just([]), "newTodos": st.lists(_inner, max_size=2)}),
    st.fixed_dictionaries({"task": st.just({"id": "1", "subject": "s"})}),
    st.just({"success": True, "taskId": "1", "statusChange": {"from": "a", "to": "b"}}),
    _strings,
    st.lists(_inner, max_size=2),
)
_calls = st.one_of(
    st.fixed_dictionaries({"file_path": _paths}).map(lambda i: ("Read", i)),
    st.fixed_dictionaries({"file_path": _paths, "content": _strings}).map(lambda i: ("Write", i)),
    st.just(("TodoWrite", {"todos": [{"content": "x", "status": "pending"}]})),
    st.just(("Skill", {"skill": "brainstorm"})),
    _values.map(lambda v: ("mcp__x", {"v": v})),
).flatmap(
    lambda call: st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": st.sampled_from(["t1", "t2"]),
            "name": st.just(call[0]),
            "input": st.just(call[1]),
        }
    )
)
_assistants = _with(
    "assistant",
    message=st.fixed_dictionaries(
        {
            "model": st.sampled_from(["claude-x", "<synthetic>"]),
            "content": st.lists(
                st.one_of(
                    _calls, st.fixed_dictionaries({"type": st.just("text"), "text": _strings})
                ),
                max_size=2,
            ),
        },
        optional={"usage": st.just({"input_tokens": 3, "output_tokens": 1})},
    ),
    isSidechain=st.booleans(),
)
_users = st.one_of(
    _with(
        "user",
        message=st.fixed_dictionaries(
            {
                "role": st.just("user"),
                "content": st.lists(
                    _block(content=st.one_of(_strings, st.lists(_inner, max_size=1))),
                    min_size=1,
                    max_size=2,
                ),
            }
        ),
        uuid=st.just("u"),
        timestamp=_strings,
        toolUseResult=_results,
    ),
    _with("user", message=st.fixed_dictionaries({"role": st.just("user"), "content": _values})),
    _with("user", message=_values, todos=st.lists(_inner, max_size=1)),
)
_others = st.one_of(
    _with("system", subtype=st.sampled_from(["compact_boundary", "api_error"]), error=_values),
    _with("system", error=_values),
    _with("progress", data=_inner),
    _with("api-request-blob", message=_inner),
    _with("attachment", attachment=_with("file", filename=_paths, content=_values)),
    _with("attachment", attachment=_with("compact_file_reference", filename=_paths)),
    _with("attachment", attachment=_with("hook_success", stdout=_strings)),
    _with("attachment", attachment=_with("todo_reminder", content=st.just([]))),
    _with("summary", summary=_strings),
    _with(
        "file-history-snapshot",
        snapshot=st.just({"trackedFileBackups": {"a\\b": {"backupFileName": "1f@v1"}}}),
    ),
    _with("file-history-delta", backup=st.just({"backupFileName": "2f@v1"})),
    st.dictionaries(_strings, _values, min_size=1, max_size=3),
)
_common = st.fixed_dictionaries(
    {},
    optional={
        "parentUuid": st.one_of(st.none(), _strings, st.just(f"{1:036}")),
        "sessionId": _sessions,
        "version": st.sampled_from(["2.1.5", "2.1.332"]),
        "cwd": _strings,
        "imagePasteIds": st.just([1, 2]),
    },
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """One line: a record with the client's or any order of members, compact or not."""
    record = draw(st.one_of(_assistants, _users, _others))
    common = draw(_common)
    record = {**common, **record} if draw(st.booleans()) else {**record, **common}
    if draw(st.booleans()):
        record = dict(draw(st.permutations(list(record.items()))))
    separators = (", ", ": ") if draw(st.integers(0, 5)) == 0 else (",", ":")
    text = json.dumps(record, separators=separators, ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def transcripts(draw: st.DrawFn) -> bytes:
    """Lines with LF or CRLF, blank ones and glued ones between them, the last one torn or not."""
    data = b""
    for _ in range(draw(st.integers(1, 8))):
        data += draw(lines())
        data += draw(st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"\n \n", b""]))
    return data[: len(data) - draw(st.sampled_from([0, 0, 0, 1, 2, 30]))]


@given(transcripts(), st.lists(st.integers(0, 10**4), max_size=6))
def test_made_transcripts(data: bytes, cuts: list[int]) -> None:
    expected = facts(Reference(data))
    assert facts(scan_of(data)) == expected
    assert facts(scan_of(data, cuts)) == expected


@given(transcripts(), st.integers(0, 10**4))
def test_a_scan_goes_on_from_its_cache(data: bytes, cut: int) -> None:
    first = Scan.empty()
    first.feed(data[: cut % (len(data) + 1)])
    again = Scan.from_json(strict_json.parse(strict_json.dump(first.to_json())))
    assert again.to_json() == first.to_json()
    again.feed(data[first.size :])
    assert facts(again.end()) == facts(Reference(data))


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=3))
def test_never_raises_on_content(data: bytes, cuts: list[int]) -> None:
    scan = fed(data, cuts)
    assert scan.end().size == len(data)
    assert Scan.from_json(strict_json.parse(strict_json.dump(scan.to_json()))).size == len(data)


@given(transcripts())
def test_a_copy_is_independent(data: bytes) -> None:
    scan = Scan.empty()
    scan.feed(data)
    before = scan.to_json()
    scan.end()
    scan.copy().feed(data)
    assert scan.to_json() == before


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
