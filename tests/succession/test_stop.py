"""References, sessions and triggers, as Stop finds them in real transcripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from succession.dynasty import scores
from succession.dynasty.files.entry import Entry
from succession.dynasty.files.meta import Life
from succession.dynasty.session import calls
from succession.dynasty.session.calls import Call
from tests.fault.scene import session_id

if TYPE_CHECKING:
    from pathlib import Path

    from tests.succession.scene import Scene

_ONE = Entry("decision", "Parser of widgets", "because of tables", "In src/parse/widget.py")
_LIFE = Life(100, 1, 0, "", ())


def _call(*paths: str, words: str = "", time: float = 200, key: str = "k") -> Call:
    return Call(key, time, paths, frozenset(words.split()))


def _points(*made: Call, hits: dict[str, tuple[str, ...]] | None = None) -> int:
    points, _ = scores.score([(_ONE, _LIFE)], made, hits or {})
    return points.get(_ONE.id, 0)


@pytest.mark.parametrize(
    ("call", "points"),
    [
        (_call("src/parse/widget.py"), 2),
        (_call("src/parse/other.py"), 1),
        (_call("src/other.py"), 0),
        (_call("lib/widget.py"), 0),
        (_call(words="widgets tables"), 1),
        (_call(words="widgets"), 0),
        (_call("src/parse/widget.py", words="widgets tables"), 2),
        (_call("src/parse/widget.py", time=100), 0),
        (_call("src/parse/widget.py", time=0), 0),
    ],
)
def test_tiers(call: Call, points: int) -> None:
    assert _points(call) == points


def test_each_path_and_words_once_in_a_session() -> None:
    made = [_call("src/parse/widget.py"), _call("src/parse/a.py"), _call("src/parse/widget.py")]
    made += [_call(words="widgets tables"), _call(words="parser widgets")]
    points, hits = scores.score([(_ONE, _LIFE)], made, {})
    assert points[_ONE.id] == 2 + 1 + 1
    assert _points(*made, hits=hits) == 0


def test_paths_of_a_compressed_text_count() -> None:
    one = _ONE._replace(body="")
    points, _ = scores.score(
        [(one, _LIFE._replace(paths=("src/parse/widget.py",)))], [_call("src/parse/widget.py")], {}
    )
    assert points == {one.id: 2}


def test_what_a_call_touches() -> None:
    given = [
        {"file_path": "/p/src/a.py"},
        {"path": "/p/lib", "pattern": "class Widget"},
        {"command": "cd /p && pytest tests/test_a.py -k slow"},
        {"notebook_path": "/elsewhere/x.ipynb"},
        "rubbish",
        None,
    ]
    content = [
        {"type": "tool_use", "id": f"t{number}", "name": "x", "input": one}
        for number, one in enumerate(given)
    ]
    record = {
        "type": "assistant",
        "timestamp": "2026-11-30T10:00:00.5Z",
        "message": {"content": content},
    }
    read = calls.read(json.dumps(record).encode() + b"\n", "/p")
    assert [one.paths for one in read.calls] == [
        ("src/a.py",),
        ("lib",),
        ("tests/test_a.py",),
        ("/elsewhere/x.ipynb",),
    ]
    assert read.calls[1].words == {"class", "widget"}
    assert read.calls[2].words == {"tests", "test"}
    assert read.calls[0].time == 1796032800.5
    assert read.answered


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-11-30T10:00:00.123Z", 1796032800.123),
        ("2026-11-30T10:00:00Z", 1796032800.0),
        ("2026-11-30T12:00:00.123456+02:00", 1796032800.123456),
        ("2026-11-30T10:00:00.123", 0.0),  # of no zone
        ("2026-02-30T10:00:00.123Z", 0.0),
        ("2026-11-30T10:00:61.123Z", 0.0),
        (7, 0.0),
    ],
)
def test_the_time_of_a_call(written: object, seconds: float) -> None:
    block = {"type": "tool_use", "id": "t", "name": "x", "input": {"path": "a"}}
    record = {"type": "assistant", "timestamp": written, "message": {"content": [block]}}
    (call,) = calls.read(json.dumps(record).encode() + b"\n", "/p").calls
    assert call.time == seconds


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant"}',
        b'{"type":"assistant","message":7}',
        b'{"type":"assistant","message":{"content":[7,{"type":"tool_use"}]}}',
        b'{"type":"assistant","timestamp":"yesterday","message":{"content":[]}}',
        b'\xff"assistant"\x00',
        b'{"type":"assistant"}{"type":"user"}',
    ],
)
def test_odd_lines_are_no_calls(line: bytes) -> None:
    assert calls.read(line + b"\n", "/p").calls == ()


def test_a_line_without_its_end_waits() -> None:
    read = calls.read(b'{"type":"assistant"}\n{"type":"assis', "/p")
    assert read.size == len(b'{"type":"assistant"}\n')


def test_real_transcripts_are_read(shared: Path) -> None:
    for path in sorted((shared / "transcripts").glob("claude-2.*.jsonl")):
        read = calls.read(path.read_bytes(), "/nowhere")
        assert read.answered
        assert read.calls or "all-record-types" in path.name
        assert len({one.key for one in read.calls}) <= len(read.calls)


def test_each_call_counts_once_also_in_a_fork(scene: Scene) -> None:
    one = scene.record("Parser", "because", "src/a.py")
    scene.start(1)
    scene.use(1, file_path=str(scene.project.project / "src/a.py"))
    scene.stop(1)
    scene.stop(1)
    copied = scene.project.transcript(1).read_bytes()
    scene.project.transcript(2).write_bytes(copied)
    scene.start(2, "fork")
    scene.stop(2)
    (found,) = scene.state.day_page.entries
    assert found.ref == 2
    assert scene.state.meta.lives[one.id].referenced == (session_id(1),)


def test_the_recording_session_makes_no_decree(scene: Scene) -> None:
    one = scene.record("Parser", "because", "src/a.py", session=1)
    scene.session(1, "src/a.py")
    scene.session(2, "src/a.py")
    assert scene.state.meta.lives[one.id].referenced == (session_id(2),)


def test_a_transcript_that_was_written_anew_is_read_from_its_start(scene: Scene) -> None:
    scene.record("Parser", "because", "src/a.py")
    scene.session(1, "x.py", "y.py")
    scene.project.transcript(1).write_bytes(b"")
    scene.use(1, file_path=str(scene.project.project / "src/a.py"))
    scene.stop(1)
    (found,) = scene.state.day_page.entries
    assert found.ref == 2


@pytest.mark.parametrize("count", [30, 31])
def test_trigger_of_entries(scene: Scene, count: int) -> None:
    for number in range(count):
        scene.record(f"Number {number}", "because")
    expected = "Day has >30 entries (31)" if count > 30 else ""
    assert scene.session(1).suggestion == expected


def test_trigger_of_sessions(scene: Scene) -> None:
    scene.record("A", "because", "src/a.py")
    told = [scene.session(number, "src/a.py").suggestion for number in range(1, 6)]
    assert told == ["", "", "", "", "5 sessions since last succession"]


def test_trigger_of_staleness(scene: Scene) -> None:
    for name in "abcde":
        scene.record(f"Number {name}", "because", f"{name}/x.py")
    assert scene.session(1, "a/x.py").suggestion == ""
    assert scene.session(2, "b/x.py").suggestion == "60% of entries are stale (3/5)"
    assert scene.state.meta.suggestion is not None
    assert "Succession suggested: 60% of" in (scene.own / "dawn.md").read_text()


def test_what_the_tool_drew_is_not_stale(scene: Scene) -> None:
    """A Day of nothing but its own state of git, or of copies, suggested a succession each time."""
    one = scene.record("About src/paths.py", "because")
    for number in range(2):
        scene.run(scene.covering(number + 1, changed=["src/paths.py"]))
    day = [found.title for found in scene.state.day_page.entries]
    assert day == ["Git state of main before Claude 3", one.title]
    assert {scene.session(number).suggestion for number in range(1, 5)} == {""}
    assert "5 sessions" in scene.session(5).suggestion
    scene.record("Own", "because")
    scene.session(6)
    assert "100% of entries are stale (1/1)" in scene.session(7).suggestion


def test_a_compaction_of_a_session_unseen_is_none(scene: Scene) -> None:
    """As a resume, clear or fork is none."""
    scene.record("A decision", "because")
    scene.start(1, "compact")
    scene.stop(1)
    assert scene.state.meta.sessions == 0


def _suggested(scene: Scene) -> None:
    scene.record("A", "because", "src/a.py")
    for number in range(1, 6):
        scene.session(number, "src/a.py")


def test_suggested_surfaced_and_run_in_the_session_after(scene: Scene) -> None:
    _suggested(scene)
    assert scene.stop(5).due == "", "not in the session that it was noted in"
    assert "Succession suggested: 5 sessions" in scene.start(6)
    assert scene.stop(6).due == "", "nor in the one that is told"
    assert "first turn" in scene.start(7)
    turn = scene.stop(7)
    assert turn.due == "7 sessions since last succession"
    scene.run(reason=turn.due)
    assert scene.state.meta.reason == turn.due
    assert scene.stop(7).due == ""
    assert scene.state.meta.suggestion is None
    assert "suggested" not in (scene.own / "dawn.md").read_text()


def test_what_is_no_longer_so_is_no_longer_due(scene: Scene) -> None:
    for number in range(31):
        scene.record(f"Number {number}", "because", "src/a.py")
    scene.session(1, "src/a.py")
    scene.session(2, "src/a.py")
    day = scene.own / "day.md"
    text = day.read_text()
    day.write_text(text[: text.rindex("### ")])
    assert scene.session(3, "src/a.py").due == ""
    assert scene.state.meta.suggestion is None


def test_a_compaction_is_not_the_session_after(scene: Scene) -> None:
    _suggested(scene)
    for source in ("compact", "resume"):
        scene.start(5, source)
        assert scene.stop(5).due == ""
    scene.start(50, "clear")
    assert scene.stop(50).due == ""
    assert scene.state.meta.suggestion is not None
    assert scene.state.meta.suggestion.surfaced is None


def test_declined_until_another_reason_comes(scene: Scene) -> None:
    from succession.dynasty import record

    _suggested(scene)
    with scene.opened() as held:
        held.write(record.decline(held.state).state, held.seen)
    for number in range(6, 9):
        turn = scene.session(number, "src/a.py")
        assert (turn.suggestion, turn.due) == ("", "")
    for number in range(31):
        scene.record(f"Number {number}", "because")
    assert "Day has >30" in scene.session(9).suggestion
    scene.run()
    assert scene.state.meta.declined == ()


def test_five_compactions_cause_no_succession_and_session_three_knows(scene: Scene) -> None:
    scene.start(1)
    scene.record("Chose tabs", "because of width", session=1)
    scene.stop(1)
    for _ in range(5):
        scene.start(1, "compact")
        scene.stop(1)
    scene.session(2)
    assert "- Chose tabs — Why: because of width" in scene.start(3)
    assert scene.state.meta.current == 1


def test_nothing_is_made_where_nothing_is_remembered(scene: Scene) -> None:
    assert scene.start(1) == ""
    scene.stop(1)
    assert not scene.folder.exists()
