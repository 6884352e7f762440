"""What the hook imports, by name: every fire pays for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.fault.scene import HOOK, Scene, hook, run

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

_LINE = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)$", re.MULTILINE)
# What we import, what that imports, and what the interpreter has of it already.
OURS = {"binascii", "errno", "fcntl", "gc", "hashlib", "hmac", "json", "os", "re", "select"}
OURS |= {"stat", "struct", "sys", "time", "types", "unicodedata", "savepoint"}
THEIRS = {"collections", "copyreg", "enum", "functools", "itertools", "keyword"}
THEIRS |= {"operator", "reprlib"}
SAVING = {"backports", "compression", "contextlib", "cryptography", "pyrage", "typing", "warnings"}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def imported(scene: Scene, event: str = "PreCompact", says: str = "") -> set[str]:
    """Every module that a fire imports beyond what a bare interpreter does. says: what it prints
    holds; nothing is printed where that is empty.
    """
    timed = [HOOK[0], "-X", "importtime", *hook(event)[1:]]
    fired = run(timed, scene.project, scene.environment(), scene.payload(event=event))
    assert fired.code == 0
    assert says.encode() in fired.out if says else fired.out == b""
    bare = run([HOOK[0], "-X", "importtime", "-I", "-c", "pass"], scene.project, {}, b"")
    return set(_LINE.findall(fired.err)) - set(_LINE.findall(bare.err))


def tops(modules: AbstractSet[str]) -> set[str]:
    """The modules and packages that they belong to, without private parts of the library."""
    names = {module.partition(".")[0] for module in modules}
    return {name for name in names if not name.startswith("_")}


def test_a_fire_with_nothing_new(scene: Scene) -> None:
    assert scene.fire().is_quiet
    found = imported(scene)
    assert tops(found) - OURS - THEIRS == set(), "neither typing nor what signs or compresses"
    assert not [name for name in found if name.startswith(("savepoint.gitlayer", "savepoint.cli"))]
    assert len(scene.saves()) == 1


def test_a_session_that_is_told_what_was_learned(scene: Scene) -> None:
    """It reads the dynasty, and needs neither OpenSSL's hashes nor what saves."""
    told = ("--title", "Locks are files", "--why", "Two hooks run at once", "--what", "flock")
    assert scene.command("succession", "record", "decision", *told).code == 0
    assert scene.fire().is_quiet
    found = imported(scene, "SessionStart", says="Locks are files")
    assert "succession.dynasty.session.start" in found
    saving = {"_hashlib", "typing", "savepoint.save", "savepoint.store.savepoints"}
    assert found & saving == set()


def test_a_save(scene: Scene) -> None:
    found = imported(scene)
    assert len(scene.saves()) == 1
    assert tops(found) - OURS - THEIRS - SAVING == set()
    assert not [
        name for name in found if name.startswith(("savepoint.cli", "savepoint.store.fsck.fsck"))
    ]
    assert {"backports", "cryptography"} & tops(found), "else this test would measure nothing"
