"""What the dynasty remembers is part of each savepoint, and costs nothing where it is nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest

from savepoint.core.errors import BusyError
from savepoint.store.locks import Lock
from succession.dynasty import whole
from succession.dynasty.joining import bundle
from tests.hook.test_imports import imported

if TYPE_CHECKING:
    from tests.fault.scene import Scene as Project
    from tests.succession.scene import Scene


def _held(scene: Scene) -> dict[str, bytes] | None:
    """The dynasty in the newest savepoint."""
    found = scene.project.files()
    data = next((found[name] for name in found if name.startswith("succession:")), None)
    return None if data is None else whole.unpack(data)


def test_each_savepoint_holds_the_dynasty(scene: Scene) -> None:
    scene.project.say(3)
    assert scene.project.fire().is_quiet
    assert _held(scene) is None
    scene.record("A decision", "because")
    scene.run()
    scene.project.say(1)
    assert scene.project.fire().is_quiet
    assert scene.project.log() == []
    assert _held(scene) == scene.files()
    assert scene.project.saves()[-1].body["consciousness_preserved"]
    assert scene.project.damage() == []


def test_the_state_before_a_succession_comes_back(scene: Scene) -> None:
    scene.record("A decision", "because")
    before = scene.files()
    scene.project.say(3)
    assert scene.project.fire().is_quiet
    scene.run()
    scene.run()
    found = scene.project.files()
    data = next(found[name] for name in found if name.startswith("succession:"))
    bundle.put_back(scene.store, data, scene.branch.folder, force=True)
    after = scene.files()
    assert after["archive.jsonl"].startswith(before.pop("archive.jsonl")), "it only grows"
    assert {one: after[one] for one in before} == before
    assert scene.state.meta.current == 1


def test_what_did_not_change_is_stored_once(scene: Scene) -> None:
    scene.record("A decision", "because")
    for _ in range(3):
        scene.project.say(2)
        assert scene.project.fire().is_quiet
    assert len(scene.project.saves()) == 3
    assert scene.project.stored_twice() == []


@pytest.mark.timeout(120)
def test_a_dynasty_that_is_being_changed_stops_no_save(scene: Scene) -> None:
    scene.record("A decision", "because")
    scene.project.say(3)
    with Lock(str(scene.folder / ".lock"), time.monotonic() + 5):
        assert scene.project.fire().is_quiet
    assert _held(scene) is None
    (omitted,) = cast("list[dict[str, str]]", scene.project.document()["omitted"])
    assert omitted["what"] == "dynasty"
    assert not scene.project.saves()[-1].body["consciousness_preserved"]
    with pytest.raises(BusyError), Lock(str(scene.folder / ".lock"), time.monotonic() + 5):
        Lock(str(scene.folder / ".lock"), time.monotonic()).__enter__()


def test_a_save_imports_nothing_of_it(scene: Scene) -> None:
    project: Project = scene.project
    project.say(3)
    without = imported(project)
    scene.record("A decision", "because")
    project.say(3)
    found = imported(project)
    assert not [name for name in found if name.startswith("succession")]
    assert {name for name in found - without if "savepoint" in name} <= {
        "savepoint.capture.memory",
        "savepoint.store.packs",
    }
