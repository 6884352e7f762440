"""A bootstrap that dies anywhere is finished by doing it again, whatever it left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import registry, savepoints
from tests.resurrect.test_bootstrap import Machine, cheap_scrypt, machine

if TYPE_CHECKING:
    from tests.cli.scene import Ran

__all__ = ["cheap_scrypt", "machine"]

# Dies without a word before number N of what changes names below our home, counted from the first
# folder that has its place: what is before that is only ever below a temporary name.
_DIES = """
import os, sys
left = int(sys.argv.pop(1))
from savepoint.cli import main
from savepoint.resurrect import bootstrap
from savepoint.store.keys import backup
backup.unseal = lambda sealed, *_: sealed.removeprefix(b"age-encryption.org/v1\\n")
def dying(real):
    def call(*args, **more):
        global left
        left -= 1
        if left == 0:
            os._exit(137)
        return real(*args, **more)
    return call
real = bootstrap.publish
def publish(*args):
    for name in ("rename", "link", "mkdir", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name)))
    return real(*args)
bootstrap.publish = publish
os._exit(main.run(sys.argv[1:]))
"""


def killed(machine: Machine, number: int) -> int:
    keys = ("--keys", str(machine.keys), "--passphrase-file", str(machine.words))
    command = ("bootstrap", "--remote", str(machine.remote), *keys)
    return subprocess.run(
        [sys.executable, "-c", _DIES, str(number), *command],
        cwd=machine.scene.project,
        capture_output=True,
        check=False,
        timeout=120,
    ).returncode


def restore_keys(machine: Machine) -> Ran:
    words = ("--passphrase-file", str(machine.words))
    return machine.scene.good("keys", "restore", str(machine.keys), *words)


def left_behind(machine: Machine) -> list[str]:
    return [one for one in os.listdir(machine.scene.home.path) if one.startswith(".tmp-")]


def check_whole(machine: Machine) -> None:
    scene = machine.scene
    store = registry.find(scene.home, str(scene.project))
    assert [savepoints.name_of(one) for one in savepoints.instances(store)] == [
        "Gabriel #215",
        "Gabriel #216",
    ]
    assert scene.good("resurrect", "--instance", "Gabriel #215", "--only", "files").code == 0
    assert scene("fsck").code == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("number", [2, 4, 6, 9, 12])
def test_killed_while_the_store_gets_its_place_it_is_done_again(
    machine: Machine, number: int, restored: bool
) -> None:
    machine.lose()
    if restored:
        restore_keys(machine)
    assert killed(machine, number) == 137
    ran = machine.bootstrap()
    if "has store" not in ran.err:  # else it died behind the rename: the store is there
        assert ran.code == 0, ran.err
    else:
        machine.scene.good("resurrect")
    check_whole(machine)


def test_what_an_older_version_left_half_way_is_no_hindrance(machine: Machine) -> None:
    """It put the pieces of a store over those of `keys restore`, one after the other."""
    machine.lose()
    restore_keys(machine)
    store = machine.scene.home.store(registry.homeless(machine.scene.home)[0].id)
    Path(store.objects, "aa").mkdir()
    Path(store.objects, "aa", "pack").write_text("kept")
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err
    (aside,) = Path(machine.scene.home.path).glob("*.damaged-*")
    assert str(aside) in ran.err
    assert (aside / "objects/aa/pack").read_text() == "kept"
    check_whole(machine)


def test_a_folder_that_was_given_to_restored_keys_is_no_hindrance(machine: Machine) -> None:
    machine.lose()
    restore_keys(machine)
    store = registry.homeless(machine.scene.home)[0]
    machine.scene.good("init", "--adopt", store.id[:8])
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err
    check_whole(machine)


def test_of_two_at_once_the_second_is_told_that_the_store_is_here(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from savepoint.resurrect import bootstrap as making

    machine.lose()
    real, raced = making.publish, list[bool]()

    def publish(*args: object) -> object:
        if not raced:
            raced.append(True)
            assert machine.bootstrap().code == 0
        return real(*args)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(making, "publish", publish)
    ran = machine.bootstrap()
    assert (ran.code, "has store" in ran.err) == (1, True), ran.err
    check_whole(machine)


@pytest.mark.parametrize("command", ["bootstrap", "resurrect", "gc"])
def test_keys_that_a_dead_run_left_go_with_the_next_run(machine: Machine, command: str) -> None:
    machine.lose()
    assert killed(machine, 1) == 137
    (left,) = left_behind(machine)
    found = [one for one in Path(machine.scene.home.path, left).rglob("*") if one.is_file()]
    assert any(one.name == "root.seed" for one in found)
    machine.bootstrap()
    assert left_behind(machine) == [left], "another run may still be at work in it"
    for one in [Path(machine.scene.home.path, left), *found]:
        os.utime(one, (time.time() - 7200,) * 2)
    listed = machine.scene.good("gc").text
    assert left in listed
    if command == "bootstrap":
        assert machine.bootstrap().code == 1
    else:
        machine.scene.good(
            *{"gc": ("gc", "--yes")}.get(command, ("resurrect", "--instance", "Gabriel #215"))
        )
    assert left_behind(machine) == []
