"""A part of a conversation: by number, by time, by thread."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import SelectorError
from savepoint.resurrect import selection
from savepoint.resurrect.selection import Span
from savepoint.store import savepoints
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from tests.cli.scene import Scene


def said(data: bytes) -> list[str]:
    found = []
    for line in data.splitlines():
        content = json.loads(line)["message"]["content"]
        found.append(content if isinstance(content, str) else content[0].get("text", "result"))
    return found


def timed(count: int) -> bytes:
    talk = Talk().say(count, "T")
    for minute, one in enumerate(talk.records):
        one["timestamp"] = f"2026-11-30T10:{minute:02}:00.000Z"
    return talk.data


def at(minute: int) -> float:
    return savepoints.moment(f"2026-11-30T10:{minute:02}:00Z")


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(1, 2), ["T-u0", "T-a0"]),
        (Span(3, 3), ["T-u1"]),
        (Span(4, 5), ["T-u1", "T-a1", "T-u2"]),
        (Span(7, 99), ["T-u3", "T-a3"]),
        (Span(since=at(6)), ["T-u3", "T-a3"]),
        (Span(until=at(1)), ["T-u0", "T-a0"]),
        (Span(since=at(3), until=at(4)), ["T-u1", "T-a1", "T-u2"]),
    ],
)
def test_a_span_begins_with_its_prompt(span: Span, expected: list[str]) -> None:
    data = timed(4)
    pieces = [data[i : i + 100] for i in range(0, len(data), 100)]
    found = selection.cut(pieces, span)
    assert said(b"".join(selection.sliced(pieces, found.start, found.end))) == expected


def test_the_result_of_a_tool_is_no_prompt() -> None:
    talk = Talk().user("ask")
    call = {"type": "tool_use", "id": "x", "name": "Read", "input": {}}
    talk.add("assistant", {"role": "assistant", "content": [call]})
    talk.add("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]})
    talk.answer("done")
    found = selection.cut([talk.data], Span(4, 4))
    assert (found.start, found.first) == (0, 1)


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_time_without_a_zone_is_told_as_it_was_given(cli: Scene, option: str) -> None:
    cli.created()
    ran = cli("resurrect", option, "yesterday")
    assert (ran.code, "error: yesterday is no time" in ran.err) == (2, True)
    told = ran.err.rpartition("like ")[2].split()[0]
    assert cli("resurrect", option, told).code in (0, 1)
    assert "like @2026" in cli("show", "@yesterday").err


def test_the_report_says_from_which_message_on_a_span_came_back(cli: Scene) -> None:
    """`--messages 383-391` gave 72 messages, and no word of why."""
    cli.transcript.unlink()
    cli.write(Talk().say(3, "A").data)
    cli.created()
    told = cli.good("resurrect", "--messages", "4-5").text
    assert "Messages: from number 3 on" in told
    back = cli.good("resurrect", "2", "--messages", "1-2", "--json").json
    assert back["session"]["first_message"] == 1


def test_the_report_names_full_where_a_compaction_hides_messages(cli: Scene) -> None:
    cli.transcript.unlink()
    cli.write(Talk().say(2, "A").compact().say(1, "B").data)
    cli.created()
    text = cli.good("resurrect").text
    assert "messages; `--full` shows those before" in text, text
    assert "`--full`" not in cli.good("resurrect", "2", "--full").text


def test_nothing_in_a_span_is_told() -> None:
    with pytest.raises(SelectorError) as raised:
        selection.cut([timed(2)], Span(9, 10))
    assert re.fullmatch(r"there are \d+ messages, from (\S+Z) to (\S+Z)", raised.value.hint)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--messages", "5"),
        ("--messages", "3-2"),
        ("--messages", "0-2"),
        ("--since", "yesterday"),
        ("--full", "--messages", "1-2"),
        ("--thread", "x", "--only", "files"),
    ],
)
def test_what_is_no_part_is_wrong_use(cli: Scene, arguments: tuple[str, ...]) -> None:
    cli.created()
    assert cli("resurrect", *arguments).code == 2


def test_a_thread_that_is_not_there_names_those_that_are(cli: Scene) -> None:
    folder = cli.transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abc.jsonl").write_bytes(Talk().say(1, "S").data)
    cli.created()
    ran = cli("resurrect", "--thread", "nobody")
    assert ran.code == 1
    assert "it has: abc" in ran.err
    back = cli.good("resurrect", "--thread", "abc", "--json").json
    assert back["recovered"]["messages"] == 2
    assert Path(back["session"]["file"]).read_bytes() == (folder / "agent-abc.jsonl").read_bytes()
