"""`savepoint list`: newest last, as data, as a table, as lines of descent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.cli.shapes.savepoints import Listing
from savepoint.cli.view import graph
from savepoint.cli.view import list as listing
from savepoint.core import record
from tests.cli.scene import OTHER_SESSION, SESSION, Scene, program

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json


def test_json_is_newest_last_and_fits_its_shape(cli: Scene) -> None:
    made = [cli.created() for _ in range(3)]
    listed = cli.good("list", "--json").json
    Listing.model_validate(listed)
    assert [one["seq"] for one in listed["savepoints"]] == [2, 3, 4]
    extra = {"status", "tokens_used"}
    folded = [{name: one[name] for name in one.keys() - extra} for one in made]
    assert listed["savepoints"] == folded


def test_records_shows_the_birth_as_well(cli: Scene) -> None:
    cli.created()
    listed = cli.good("list", "--records", "--json").json
    Listing.model_validate(listed)
    assert [one["kind"] for one in listed["savepoints"]] == ["birth", "save"]
    assert "birth" in cli.good("list", "--records").text
    assert "birth" not in cli.good("list").text


def test_nothing_yet(cli: Scene) -> None:
    ran = cli.good("list")
    assert ran.out == b""
    assert "no savepoint yet" in ran.err
    assert cli.good("list", "--json").json == {"savepoints": []}


def test_a_table_for_a_person(cli: Scene) -> None:
    made = cli.created()
    heads, row = cli.good("list").text.splitlines()
    assert heads.split() == [
        "SEQ",
        "TIME",
        "TRIGGER",
        "SESSION",
        "TOKENS",
        "USED",
        "STATUS",
        "SNAPSHOT",
    ]
    *cells, shown = row.split()
    assert cells == ["2", made["timestamp"], "manual", SESSION[:8], "COMMITTED_LOCALLY"]
    begin = made["snapshot_hash"].removeprefix("sha256:")[:12]
    assert shown.removeprefix("sha256:") == begin  # it stands before one that is all digits


def test_digits_that_are_a_hash_are_shown_as_one() -> None:
    assert listing._hash(_save(12, None)) == "sha256:000000000000"
    assert listing._hash(_save(12, None, start="abc")) == "abc000000000"


def test_an_incomplete_one_is_marked(cli: Scene) -> None:
    (cli.project / "session_current.json").write_bytes(b"{ no json")
    assert cli.created()["consciousness_preserved"] is False
    assert "incomplete" in cli.good("list").text


def test_damaged_lines_are_counted(cli: Scene) -> None:
    cli.created()
    with Path(cli.paths.index_file).open("ab") as file:
        file.write(b"rubbish\n")
    ran = cli.good("list", "--json")
    assert len(ran.json["savepoints"]) == 1
    assert "1 line of the index cannot be read" in ran.err


def test_two_sessions_are_two_lines(cli: Scene) -> None:
    cli.say("of another session", session=OTHER_SESSION)
    for session in (SESSION, OTHER_SESSION, SESSION, OTHER_SESSION):
        cli.created("--session", session)
    lines = cli.good("list", "--graph").text.splitlines()
    marks = [line.partition("  20")[0].rstrip("2345 ") for line in lines]
    assert marks == ["●", "│ ●", "● │", "  ●"]


def test_plain_characters_where_there_are_no_others(cli: Scene) -> None:
    for _ in range(2):
        cli.created()
    env = {"PYTHONIOENCODING": "ascii"}
    done = program("list", "--graph", cwd=cli.project, env=env)
    assert done.returncode == 0
    assert [line[:1] for line in done.stdout.splitlines()] == [b"*", b"*"]


def test_graph_is_a_drawing(cli: Scene) -> None:
    assert cli("list", "--graph", "--json").code == 2


_SEED = bytes(32)


def _save(number: int, origin: int | None, start: str = "") -> Record:
    parent: Json = None
    if origin is not None:
        signer = "4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS"
        parent = {"signer": signer, "seq": origin, "snapshot_hash": f"sha256:{origin:064x}"}
    body: dict[str, Json] = {
        "session_id": "s",
        "from": parent,
        "trigger": "manual",
        "snapshot_hash": "sha256:" + start.ljust(64, "0") if start else f"sha256:{number:064x}",
        "snapshot_size_bytes": 1,
        "snapshot_file": "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z.json",
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": True,
    }
    return record.make(
        "save", seq=number, prev="0" * 64, timestamp=0, instance="A #1", seed=_SEED, body=body
    )


@pytest.mark.parametrize(
    ("origins", "drawn"),
    [
        ({2: None, 3: 2, 4: 3}, ["● 2", "● 3", "● 4"]),
        ({2: None, 3: None, 4: None}, ["● 2", "  ● 3", "● 4"]),  # none looks like another's child
        ({2: None, 3: 2, 4: 2}, ["● 2", "├─╮", "│ ● 3", "● 4"]),
        ({2: None, 3: 2, 4: 3, 5: 2}, ["● 2", "├─╮", "│ ● 3", "│ ● 4", "● 5"]),
        (
            {2: None, 3: None, 4: 2, 5: 3, 6: 2, 7: 3},
            ["● 2", "│ ● 3", "├─┼─╮", "│ │ ● 4", "│ ├───╮", "│ │   ● 5", "● │ 6", "  ● 7"],
        ),
        ({9: 1}, ["● 9"]),  # what it comes from is another instance's
    ],
)
def test_lines_of_descent(origins: dict[int, int | None], drawn: list[str]) -> None:
    saves = [_save(number, origin) for number, origin in origins.items()]
    lines = graph.draw(saves, lambda one: str(one.seq), fancy=True)
    assert [re.sub(r" +(?=[0-9])", " ", line) for line in lines] == drawn


def test_labels_stand_below_one_another() -> None:
    saves = [_save(number, origin) for number, origin in {2: None, 3: 2, 4: 2}.items()]
    lines = list(graph.draw(saves, lambda one: f"seq {one.seq}", fancy=True))
    assert [line.find("seq") for line in lines] == [5, -1, 5, 5]


def test_three_savepoints_of_one_session_are_one_line(cli: Scene) -> None:
    for said in ("once", "twice", "and again"):
        cli.say(said)
        cli.created()
    rows = [line.split() for line in cli.good("list", "--graph").text.splitlines()]
    assert [row[:2] for row in rows] == [["●", "2"], ["●", "3"], ["●", "4"]]
    table = cli.good("list").text.splitlines()[1:]
    assert [row[1:] for row in rows] == [line.split() for line in table]
