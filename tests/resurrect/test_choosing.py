"""Which savepoint `resurrect` takes where the current instance does not have the one meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import config, registry
from tests.resurrect.talk import SESSION, Talk

if TYPE_CHECKING:
    from tests.cli.scene import Scene


@pytest.fixture
def born(cli: Scene) -> Scene:
    """#215 has savepoints 2 and 3; #216 was born of 3, is current, and has none."""
    cli.transcript.unlink()
    cli.write(Talk().say(2, "A").data)
    cli.created()
    cli.say("and on")
    cli.created()
    cli.good("resurrect")
    return cli


def saves(scene: Scene) -> list[dict[str, str]]:
    found: list[dict[str, str]] = scene.good("list", "--instance", "Gabriel #215", "--json").json[
        "savepoints"
    ]
    return found


def brought(scene: Scene, *arguments: str) -> tuple[str, int]:
    back = scene.good("resurrect", *arguments, "--json").json
    return back["previous_instance"], back["savepoint"]["seq"]


def test_a_newborn_leads_to_the_savepoint_it_comes_from(born: Scene) -> None:
    ran = born.good("resurrect")
    assert "Gabriel #217" in ran.text
    assert "has no such savepoint; this is one of Gabriel #215" in ran.err
    assert brought(born) == ("Gabriel #215", 3)


def test_one_that_comes_from_an_older_savepoint_leads_to_that(born: Scene) -> None:
    assert brought(born, "2", "--instance", "Gabriel #215") == ("Gabriel #215", 2)
    assert brought(born) == ("Gabriel #215", 2)


@pytest.mark.parametrize("which", ["number", "hash", "prefix", "session", "time"])
def test_of_a_newborn_all_selectors_are_of_its_line(born: Scene, which: str) -> None:
    first = saves(born)[0]["snapshot_hash"].removeprefix("sha256:")
    arguments = {
        "number": ("2",),
        "hash": (f"sha256:{first}",),
        "prefix": (f"sha256:{first[:10]}",),
        "session": ("--session", SESSION),
        "time": ("@2100-01-01T00:00:00Z",),
    }[which]
    expected = 3 if which in ("session", "time") else 2
    assert brought(born, *arguments) == ("Gabriel #215", expected)


def test_a_session_is_looked_for_in_the_whole_store(born: Scene) -> None:
    """`resurrect --session` of another instance's said that there is none."""
    path = born.say("new", session="99999999-2222-4333-8444-555555555555")
    born.created("--transcript", str(path))
    assert brought(born, "--session", SESSION) == ("Gabriel #215", 3)
    assert born("resurrect", "--session", SESSION, "--instance", "Gabriel #216").code == 1


def test_a_session_is_named_as_list_shows_it(born: Scene) -> None:
    """`list` shows 8 digits; `--session` with them said that there is none, and led to `list`."""
    shown = born.good("list", "--instance", "Gabriel #215").text
    assert f" {SESSION[:8]} " in shown
    assert brought(born, "--session", SESSION[:8]) == ("Gabriel #215", 3)
    other = f"{SESSION[:8]}-0000-4333-8444-555555555555"
    born.created("--transcript", str(born.say("new", session=other)))
    several = born("resurrect", "--session", SESSION[:8])
    assert (several.code, f"{other}, {SESSION}" in several.err) == (1, True)
    assert brought(born, "--session", SESSION[:12]) == ("Gabriel #215", 3)
    assert born("resurrect", "--session", SESSION[:7]).code == 1


def test_status_of_a_newborn_names_what_the_others_have(born: Scene) -> None:
    """It said "savepoints  0", and no word of those that were resurrected a moment ago."""
    assert "in this store are also 2 of Gabriel #215 (--instance" in born.good("status").err
    assert "also" not in born.good("status", "--instance", "Gabriel #216").err


def test_a_number_of_another_instance_is_told_with_it(cli: Scene) -> None:
    """`sweep` said "savepoint 3" of five sessions, each of another instance."""
    cli.created()
    cli.good("resurrect")
    own, fresh = cli.say("more"), cli.say("new", session="99999999-2222-4333-8444-555555555555")
    told = cli.good("sweep").text
    (line,) = [one for one in told.splitlines() if own.stem in one]
    assert line.startswith("savepoint 3 of Gabriel #215 (key ")
    (line,) = [one for one in told.splitlines() if fresh.stem in one]
    assert re.match(r"savepoint \d+: session ", line)


def test_list_of_a_successor_names_what_the_others_have(born: Scene) -> None:
    """After its first own savepoint the list had that alone, and no word of the others."""
    path = born.say("new", session="99999999-2222-4333-8444-555555555555")
    born.created("--transcript", str(path))
    told = born.good("list").err
    assert "in this store are also 2 of Gabriel #215" in told
    assert "--graph shows all" in told
    for more in (["--graph"], ["--instance", "Gabriel #216"]):
        assert "also" not in born.good("list", *more).err


def test_a_hash_is_looked_for_in_the_whole_store(born: Scene) -> None:
    path = born.say("new", session="99999999-2222-4333-8444-555555555555")
    born.created("--transcript", str(path))
    first = saves(born)[0]["snapshot_hash"]
    assert brought(born, first) == ("Gabriel #215", 2)


def test_a_number_is_of_the_current_instance_once_it_has_savepoints(born: Scene) -> None:
    path = born.say("new", session="99999999-2222-4333-8444-555555555555")
    born.created("--transcript", str(path))
    ran = born("resurrect", "9")
    assert ran.code == 1
    assert "there are also 2 of Gabriel #215 (--instance gabriel-215-" in ran.err


def test_an_instance_that_is_named_is_the_one_that_is_meant(born: Scene) -> None:
    ran = born("resurrect", "--instance", "Gabriel #216")
    assert (ran.code, "has no savepoint yet" in ran.err) == (1, True)


def test_a_newborn_without_its_document_leads_nowhere(born: Scene) -> None:
    store = registry.find(born.home, str(born.project))
    Path(store.instance(config.load(store).instance).bootstrap).unlink()
    ran = born("resurrect")
    assert (ran.code, "comes from another" in ran.err) == (20, True)
    assert "fsck --repair" in ran.err


def test_what_is_applied_is_counted(born: Scene) -> None:
    """It was "Applied to: PROJECT" of a savepoint without files, and nothing was put there."""
    assert f"Applied to: {born.project} (0 loaded files)" in born.good("resurrect", "--apply").text
