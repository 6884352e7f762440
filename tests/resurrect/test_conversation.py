"""A saved transcript as a session: every byte as it was, but for what is said to be put right;
messages equal the original's under that. Real transcripts, and generated ones with damage.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits
from savepoint.resurrect import transcript_lines
from tests.resurrect.talk import Talk, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.scene import Scene


def back(data: bytes, *, full: bool = False, size: int = 1 << 20) -> tuple[bytes, Any]:
    """The session of a saved file that comes in pieces of so many bytes."""

    def pieces() -> Iterator[bytes]:
        return (data[at : at + size] for at in range(0, len(data), size))

    session = read(pieces(), full=full)
    return b"".join(session.pieces(pieces())), session


def messages(data: bytes) -> list[Any]:
    """What the messages say, each lone surrogate as U+FFFD."""
    found = []
    for line in data.split(b"\n"):
        if line.strip():
            record = json.loads(line)
            if record.get("type") in ("user", "assistant"):
                found.append(_clean(record["message"]))
    return found


def _clean(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    text = json.dumps(value, ensure_ascii=False)
    return json.loads("".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text))


CLAUDE = [
    "claude-2.0.64-small",
    "claude-2.1.5-two-compactions",
    "claude-2.1.29-images",
    "claude-2.1-all-record-types",
]


@pytest.mark.parametrize("name", CLAUDE)
@pytest.mark.parametrize("full", [False, True], ids=["as-it-was", "full"])
def test_a_real_transcript_has_the_same_messages(name: str, full: bool, shared: Path) -> None:
    saved = (shared / "transcripts" / f"{name}.jsonl").read_bytes()
    made, session = back(saved, full=full)
    whole = messages(saved)
    assert messages(made) == whole[: len(messages(made))]
    assert full or messages(made) == whole
    assert made.endswith(b"\n")
    assert session.shown + session.hidden >= session.messages * (not full) - len(whole)
    if not session.repairs:
        assert saved.startswith(made[:-1])


@pytest.mark.parametrize("name", ["codex-0.146-small", "copilot-small", "gemini-0.40-small"])
def test_another_agents_transcript_has_no_session_but_comes_back(
    name: str, shared: Path, bare: Scene
) -> None:
    bare.good("init")
    saved = (shared / "transcripts" / f"{name}.jsonl").read_bytes()
    bare.created("--transcript", str(shared / "transcripts" / f"{name}.jsonl"))
    made = bare.good("resurrect", "--json").json
    assert made["session"] is None
    assert Path(made["folder"], "conversation.jsonl").read_bytes() == saved


@pytest.mark.parametrize("name", CLAUDE)
def test_a_real_transcript_resurrects_through_the_command_line(
    name: str, shared: Path, bare: Scene
) -> None:
    bare.good("init")
    saved = (shared / "transcripts" / f"{name}.jsonl").read_bytes()
    bare.created("--transcript", str(shared / "transcripts" / f"{name}.jsonl"))
    made = bare.good("resurrect", "--json").json
    assert messages(Path(made["session"]["file"]).read_bytes()) == messages(saved)


_TEXT = st.text(max_size=30) | st.just("half \ud83d") | st.just("\udc00 \ud83d\ude00 \\ud83d")
_DAMAGE = st.sampled_from(
    [b"", b"\n", b"null\n", b'{"type":"user","mess\n', b"\xff\xfe\n", b"[]\n", b"\0\n", b"  \n"]
)


@st.composite
def _transcripts(draw: st.DrawFn) -> bytes:
    talk = Talk()
    for text in draw(st.lists(_TEXT, min_size=1, max_size=12)):
        step = draw(st.sampled_from(["user", "answer", "compact", "lose", "user"]))
        if step == "compact":
            talk.compact(text)
        elif step == "lose":
            talk.lose_the_link().user(text)
        else:
            getattr(talk, step)(text)
    lines = [draw(_DAMAGE) + json.dumps(one).encode() + b"\n" for one in talk.records]
    glued = draw(st.integers(0, len(lines)))
    whole = b"".join(line[:-1] if n == glued else line for n, line in enumerate(lines))
    return whole + draw(st.sampled_from([b"", b'{"type":"user","uuid":"torn', b"\n"]))


@given(_transcripts(), st.booleans(), st.sampled_from([1, 7, 64, 1 << 20]))
def test_generated_transcripts_with_damage(data: bytes, full: bool, size: int) -> None:
    expected = [
        _clean(record["message"])
        for line in transcript_lines.lines([data])
        for record in transcript_lines.tell(line).records
        if record.get("type") in ("user", "assistant")
    ]
    made, session = back(data, full=full, size=size)
    got = messages(made)
    assert got == expected[: len(got)]
    assert full or got == expected
    assert not made or made.endswith(b"\n")
    assert b"\\ud83d h" not in made
    again, second = back(made, full=False)
    assert again == made, "what came back needs no repair"
    assert second.messages == session.messages


@given(_transcripts())
def test_links_hold_behind_the_last_boundary(data: bytes) -> None:
    made, session = back(data)
    records = [json.loads(line) for line in made.splitlines() if line.strip()]
    starts = [n for n, one in enumerate(records) if one.get("subtype") == "compact_boundary"]
    last = records[starts[-1] if starts else 0 :]
    known = {one["uuid"] for one in last}
    lost = [one for one in last[1:] if one["parentUuid"] and one["parentUuid"] not in known]
    assert not lost or session.hidden, "what hangs on nothing is counted"


def test_calls_made_at_once_are_all_shown() -> None:
    """Blocks of one answer and their results branch off: the client puts them together again."""
    talk = Talk().user("go")
    call = {"id": "msg_x", "role": "assistant", "content": []}
    talk.add("assistant", {**call, "content": [{"type": "tool_use", "id": "a"}]})
    first = talk.records[-1]["uuid"]
    talk.add("assistant", {**call, "content": [{"type": "tool_use", "id": "b"}]})
    second = talk.records[-1]["uuid"]
    results = {name: [{"type": "tool_result", "tool_use_id": name}] for name in "ab"}
    talk.add("user", {"role": "user", "content": results["a"]})
    talk.records[-1]["parentUuid"] = first
    talk.add("user", {"role": "user", "content": results["b"]})
    talk.records[-1]["parentUuid"] = second
    talk.answer("done")
    _, session = back(talk.data)
    assert (session.shown, session.hidden) == (6, 0)


def test_a_branch_that_was_left_is_counted() -> None:
    talk = Talk().say(1, "A")
    fork = talk.records[-1]["uuid"]
    talk.say(2, "LEFT").user("back")
    talk.records[-1]["parentUuid"] = fork
    _, session = back(talk.data)
    assert (session.shown, session.hidden) == (3, 4)


def test_a_circle_ends() -> None:
    talk = Talk().say(2, "A")
    talk.records[0]["parentUuid"] = talk.records[-1]["uuid"]
    _, session = back(talk.data)
    assert session.shown == 4


def test_an_oversized_record_is_left_out_under_its_id() -> None:
    big = "x" * (limits.RESTORE_LINE_BYTES + 100)
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": big}]
    talk = Talk().user("go").answer("calling")
    talk.add("user", {"role": "user", "content": result}).answer("done")
    made, session = back(talk.data)
    assert len(made) < 10_000
    (left,) = [one for one in map(json.loads, made.splitlines()) if "left out" in json.dumps(one)]
    assert left["message"]["content"][0]["tool_use_id"] == "toolu_1"
    assert left["uuid"] == talk.records[2]["uuid"]
    assert (session.shown, session.hidden) == (4, 0)
    assert session.repairs == {"oversized records": 1}


def test_memory_does_not_grow_with_the_file() -> None:
    """pi#9613: 2.6 GB of inline pictures could not be opened."""
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "x" * 2_000_000}})
    count = 60

    def pieces() -> Iterator[bytes]:
        for number in range(count):
            yield line.replace('{"type"', f'{{"uuid":"{number}","type"', 1).encode() + b"\n"

    tracemalloc.start()
    session = read(pieces(), full=False)
    total = sum(len(one) for one in session.pieces(pieces()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > count * 2_000_000
    assert peak < 40_000_000


_ODD = [
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":1e999}',
    b'{"a":%b}' % (b"1" * 5000),
    b'{"a":%b%b}' % (b"[" * 300, b"]" * 300),
    b'{"a":1,"a":2}',
    b'{"a":01}',
    b'{"a":"half \\ud83d"}',
    b'{"a":"\\ud83d\\ude00 \\\\ud83d"}',
    b'{"a":"\\udc00\\ud83d"}',
    b'{"a":"\xff \xed\xa0\x80"}',
    b'{"a":"raw \t"}',
    b'{"a":"\\x41"}',
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":1}{"a":2}',
    b'{"a":1,}',
    b'{"a":tru}',
    b'\x0c{"a":1}',
    b' {"a":1}\t\r',
    b"[]",
    b"null",
    b"",
]


@pytest.mark.parametrize("data", _ODD)
def test_a_line_is_told_alike_with_and_without_the_fast_parser(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parsers of one format that differ are two formats."""
    line = transcript_lines.Line(0, len(data), data, ended=True)
    fast = transcript_lines.tell(line)
    monkeypatch.setattr(transcript_lines, "plain", lambda _: None)
    slow = transcript_lines.tell(line)
    assert repr(fast) == repr(slow)
