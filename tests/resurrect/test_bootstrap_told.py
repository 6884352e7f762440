"""What the commands say of a store that was fetched, and whose history has a border."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from savepoint.cli.ledger import layer3
from savepoint.store import config, registry, savepoints
from savepoint.store.locks import Lock
from tests.resurrect.talk import Talk
from tests.resurrect.test_bootstrap import Machine, branches, cheap_scrypt, git, machine

if TYPE_CHECKING:
    import pytest

    from tests.cli.scene import Scene

__all__ = ["cheap_scrypt", "machine"]


def test_what_lies_behind_the_border_is_not_queued_and_a_newborn_is_drawn(
    machine: Machine,
) -> None:
    scene = machine.scene
    scene.say("later")
    scene.created()
    scene.good("sync")
    machine.lose()
    assert machine.bootstrap().code == 0
    scene.good("sync")
    shown = scene.good("list", "--graph").text
    assert "QUEUED_FOR_COMMIT" not in shown
    assert shown.count("PUSHED_TO_GITHUB") == 2
    (born,) = [line for line in shown.splitlines() if "Gabriel #216" in line]
    assert "restore" in born


def test_a_second_older_savepoint_is_fetched_too(machine: Machine) -> None:
    """The first one made the history whole, and git was told to make it whole again: "R cannot be
    reached: fatal: --unshallow on a complete repository", for every one but the first.
    """
    scene = machine.scene
    older = [str(scene.good("list", "--json").json["savepoints"][0]["seq"])]
    for words in ("later", "newest"):
        scene.say(words)
        older.append(str(scene.created()["seq"]))
    scene.good("sync")
    machine.lose()
    assert machine.bootstrap().code == 0
    for seq in reversed(older[:2]):
        back = scene.good("resurrect", seq, "--instance", "Gabriel #215", "--json").json
        assert back["savepoint"]["seq"] == int(seq)


def test_a_strangers_branch_is_no_instance_that_can_be_brought(machine: Machine) -> None:
    """Whoever can push to the remote can put one there; and an index that was lost is no absence:
    what git has of it goes further than what was pushed.
    """
    machine.scene.good("sync")
    (own,) = branches(machine)
    machine.lose()
    assert machine.bootstrap().code == 0
    forged = "gabriel-900-deadbeef"
    where = ("--git-dir", str(machine.remote), "update-ref")
    git(*where, f"refs/heads/savepoints/{forged}", f"refs/heads/savepoints/{own}")
    store = registry.find(machine.scene.home, str(machine.scene.project))
    ran = machine.scene("resurrect", "--instance", forged)
    assert (ran.code, "this store has no instance" in ran.err) == (1, True), ran.err
    os.unlink(store.instance(own).index_file)
    ran = machine.scene("resurrect", "--instance", own)
    assert (ran.code, "has lost its records here" in ran.err) == (1, True), ran.err
    machine.scene("fsck", "--repair")
    machine.scene.good("resurrect", "--instance", own)


def test_without_keys_it_is_said_first_that_nothing_comes_back(machine: Machine) -> None:
    scene = machine.scene
    scene.good("resurrect")
    scene.good("sync")
    machine.lose()
    ran = scene("bootstrap", "--remote", str(machine.remote))
    assert ran.code == 1
    assert "error: without --keys nothing is brought back" in ran.err
    assert "hint: --keys FILE names what" in ran.err
    assert "name one with --instance" in ran.err


def test_every_instance_that_was_fetched_has_its_key(machine: Machine) -> None:
    """#216 was born after the backup, so keys that were restored before lack its own."""
    scene = machine.scene
    scene.good("resurrect")
    scene.good("sync")
    machine.lose()
    words = ("--passphrase-file", str(machine.words))
    scene.good("keys", "restore", str(machine.keys), *words)
    assert machine.bootstrap("--json").json["instance"] == "Gabriel #217"
    store = registry.find(scene.home, str(scene.project))
    every = savepoints.instances(store)
    assert len(every) == 3
    assert [one.slug for one in every if not os.path.lexists(one.authority)] == []


def test_a_path_that_only_the_agent_can_name_a_folder_for_is_told(
    machine: Machine, tmp_path: Path
) -> None:
    machine.lose()
    other = tmp_path / ("long\n" + "ü" * 100) / ("x" * 100)
    other.mkdir(parents=True)
    ran = machine.bootstrap("--project", str(other))
    assert ran.code == 0, ran.err
    assert "Session:" not in ran.text
    assert "only the agent knows where it keeps sessions" in ran.err
    assert "start it there once, then run `savepoint resurrect`" in ran.err


def test_status_and_doctor_say_whose_a_job_is(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("savepoint.work.start.start", lambda _store, _around: None)
    store = registry.find(cli.home, str(cli.project))
    config.load(store)._replace(ledger="embedded").save(store)
    cli.created()
    old = config.load(store).instance
    shown = cli.good("status").text
    assert "up to 2, for" in shown
    cli.good("resurrect", "--allow-unverified")
    shown = cli.good("status").text
    assert f"up to 2 of {old}," in shown
    checked = cli("doctor").text
    assert f"up to 2 of {old}," in checked
    assert "the worker is at it" not in checked
    with Lock(store.worker_lock, 0.0):
        assert "the worker is at it" in cli("doctor").text  # nothing that a person has to do


def test_a_missing_key_leads_to_what_makes_it_again() -> None:
    assert "fsck --repair" in layer3.what_to_do("key_file")
    assert "doctor" not in layer3.what_to_do("key_file")


def test_what_bootstrap_left_at_the_remote_is_named_and_can_be_brought(machine: Machine) -> None:
    """What was lost is of #215; the newest of the line is #216, born by a look at something."""
    scene = machine.scene
    scene.say("later")
    older, newest = scene.good("list", "--json").json["savepoints"][0], scene.created()
    back = scene.good("resurrect", "--json").json
    with Path(back["session"]["file"]).open("ab") as file:
        file.write(Talk(back["session"]["id"]).user("a look").data)
    scene.created("--transcript", back["session"]["file"])
    scene.good("sync")
    machine.lose()
    ran = machine.bootstrap()
    (first,) = [slug for slug in branches(machine) if slug.startswith("gabriel-215-")]
    for told in (ran.err, scene.good("status").err, scene.good("list").err):
        assert f"left at the remote: {first}; `savepoint resurrect --instance {first}`" in told
    assert f"`savepoint resurrect --instance {first}`" in scene("show", "--instance", first).err
    assert scene("resurrect", "--instance", first, "--offline").code == 1
    assert scene("resurrect", "--instance", "Gabriel #999").code == 1
    for wanted, args in ((newest, ()), (older, (str(older["seq"]),))):
        came = scene.good("resurrect", *args, "--instance", "Gabriel #215", "--json").json
        assert came["savepoint"]["snapshot_hash"] == wanted["snapshot_hash"]
    assert "left at the remote" not in scene.good("status").err
    assert scene("fsck").code == 0
    assert scene.good("verify", "--all", "--instance", first, "--deep").code == 0
