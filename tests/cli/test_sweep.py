"""`sweep` saves what the agent still has and no event has saved."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from tests.cli.scene import OTHER_SESSION, SESSION, Scene, record

if TYPE_CHECKING:
    from pathlib import Path

THIRD = "33333333-2222-4333-8444-555555555555"


def test_every_session_that_is_not_saved_is(cli: Scene) -> None:
    cli.say("another", session=OTHER_SESSION)
    cli.good("create", "--session", SESSION)
    swept = cli.good("sweep", "--json").json
    assert [one["session_id"] for one in swept["saved"]] == [OTHER_SESSION]
    assert (swept["unchanged"], swept["failed"], swept["without_store"]) == (1, [], {})
    cli.say("more", session=SESSION)
    assert "1 session saved, 1 had nothing new" in cli.good("sweep").text
    assert "0 sessions saved, 2 had nothing new" in cli.good("sweep").text
    assert [one["trigger"] for one in cli.good("list", "--json").json["savepoints"]][1:] == [
        "sweep"
    ] * 2


def test_the_oldest_goes_first(cli: Scene) -> None:
    """The agent deletes it first."""
    cli.say("x", session=OTHER_SESSION)
    os.utime(cli.path_of(OTHER_SESSION), (1, time.time() - 9999))
    swept = cli.good("sweep", "--json").json["saved"]
    assert [one["session_id"] for one in swept] == [OTHER_SESSION, SESSION]


def test_projects_without_a_store_are_counted(cli: Scene, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    line = record(stranger, THIRD, {"content": "x"})
    path = cli.transcript.parent.parent / "-stranger" / f"{THIRD}.jsonl"
    path.parent.mkdir()
    path.write_bytes(line)
    ran = cli.good("sweep", "--json").json
    assert ran["without_store"] == {str(stranger): 1}
    assert len(ran["saved"]) == 1
    assert f"1 session of {stranger}, which has no store" in cli.good("sweep").err
    only = cli.good("sweep", "-C", str(cli.project), "--json").json
    assert (only["without_store"], only["unchanged"]) == ({}, 1)


def test_a_session_of_a_worktree_that_is_gone(cli: Scene) -> None:
    gone = cli.project / "gone"
    cli.path_of(SESSION).write_bytes(record(gone, SESSION, {"content": "x"}))
    assert len(cli.good("sweep", "--json").json["saved"]) == 1


def test_what_is_no_session_is_left_alone(cli: Scene) -> None:
    cli.write(b'{"type":"summary"}\n', session=OTHER_SESSION)
    assert len(cli.good("sweep", "--json").json["saved"]) == 1


def test_one_that_fails_does_not_stop_the_others(cli: Scene) -> None:
    cli.say("x", session=OTHER_SESSION)
    cli.good("sweep")
    cli.say("more", session=OTHER_SESSION)
    cli.say("more", session=SESSION)
    at = cli.paths.store.session_lock(OTHER_SESSION)
    os.unlink(at)
    os.mkdir(at)
    ran = cli("sweep", "--json")
    assert ran.code == 1
    assert [one["session_id"] for one in ran.json["failed"]] == [OTHER_SESSION]
    assert [one["session_id"] for one in ran.json["saved"]] == [SESSION]
