"""The fast reading of made-up transcripts says what a plain one does."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import strict_json
from tests.capture.claude_reference import Reference
from tests.capture.scans import facts, fed, scan_of

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
