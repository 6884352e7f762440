"""What was passed on is in place on a machine that had nothing but the remote and the keys."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from savepoint.store import registry
from tests.cli.conftest import bare, project
from tests.resurrect.test_bootstrap import Machine, cheap_scrypt, machine
from tests.succession.test_back import _append

if TYPE_CHECKING:
    from tests.cli.scene import Scene

__all__ = ["bare", "cheap_scrypt", "machine", "project"]


def _decide(scene: Scene, title: str) -> None:
    scene.good("succession", "record", "decision", "--title", title, "--why", f"{title} it is")


def _on(scene: Scene, branch: str) -> None:
    subprocess.run(
        ["git", "-C", str(scene.project), "checkout", "-q", "-B", branch], check=True, timeout=180
    )


def _begin(scene: Scene) -> None:
    subprocess.run(["git", "-C", str(scene.project), "init", "-q"], check=True, timeout=180)
    _on(scene, "main")


def _save(machine: Machine) -> None:
    machine.scene.say("more")
    machine.scene.created()
    machine.scene.good("sync")


def test_what_was_passed_on_is_in_place_on_a_new_machine(machine: Machine) -> None:
    """It lay in restored/… alone: no session was told, `status` had no entry, `doctor` said ok."""
    scene = machine.scene
    _begin(scene)
    _decide(scene, "Tabs")
    scene.good("succession", "run")
    _decide(scene, "LF")
    _on(scene, "side")
    _decide(scene, "Aside")
    _on(scene, "main")
    before = scene.good("succession", "briefing").text
    _save(machine)
    machine.lose()
    _begin(scene)
    ran = machine.bootstrap("--json")
    assert ran.code == 0, ran.err
    assert ran.json["dynasty"] == [
        {"branch": "main", "ruler": "Claude 2", "entries": 2},
        {"branch": "side", "ruler": "Claude 1", "entries": 1},
    ]
    assert scene.good("succession", "briefing").text == before
    assert "- LF — Why: LF it is" in before
    _on(scene, "side")
    (one,) = scene.good("succession", "day", "--json").json["entries"]
    assert one["title"] == "Aside"
    found = scene.good("succession", "lineage", "--search", "Tabs").text
    assert "Tabs it is" in found
    told = scene.good("resurrect").text
    assert "Memory: 2 entries of Claude 2 on main in place" in told


def test_a_branch_that_is_damaged_in_it_stays_out_and_the_way_back_is_told(
    machine: Machine, tmp_path: Path
) -> None:
    scene = machine.scene
    _begin(scene)
    _decide(scene, "Tabs")
    _save(machine)
    whole = scene.good("list", "--json").json["savepoints"][-1]["seq"]
    _on(scene, "side")
    _decide(scene, "Aside")
    _append(Path(scene.paths.store.path, "dynasty/main/dynasty.json"), "{bad")
    _save(machine)
    machine.lose()
    _begin(scene)
    ran = machine.bootstrap("--json")
    assert ran.code == 0, ran.err
    assert [one["branch"] for one in ran.json["dynasty"]] == ["side"]
    assert "not all comes back: main is not put back: dynasty/main/dynasty.json" in ran.err
    assert "`savepoint resurrect SELECTOR --only memory` of an older savepoint" in ran.err
    out = tmp_path / "out"
    wanted = (str(whole), "--instance", "Gabriel #215", "--only", "memory")
    scene.good("resurrect", *wanted, "-o", str(out), "--allow-unverified")
    scene.good("succession", "import", str(out), "--force")
    assert "Tabs it is" in scene.good("succession", "briefing").text


def test_an_empty_briefing_names_the_branches_that_have_one(machine: Machine) -> None:
    """It said "3 entries on main in place", and then nothing in a folder that was no clone."""
    scene = machine.scene
    _begin(scene)
    _decide(scene, "Tabs")
    assert "there are entries" not in scene.good("succession", "briefing").err
    _on(scene, "side")
    told = scene.good("succession", "briefing").err
    assert "the briefing is empty on side; there are entries on main" in told


def test_a_store_without_a_dynasty_has_none_after_it(machine: Machine) -> None:
    machine.lose()
    back = json.loads(machine.bootstrap("--json").out)
    assert back["dynasty"] == []
    store = registry.find(machine.scene.home, str(machine.scene.project))
    assert not os.path.lexists(Path(store.path, "dynasty"))
