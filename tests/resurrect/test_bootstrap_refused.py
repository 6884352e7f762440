"""A bootstrap that is refused: what it says of the remote, and a way out that can be followed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tests.fault.scene import remove
from tests.resurrect.test_bootstrap import Machine, branches, cheap_scrypt, git, home_of, machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.scene import Scene

__all__ = ["cheap_scrypt", "machine"]


def pushed(machine: Machine) -> str:
    """Pushed, and known to be when the backup was made; the branch."""
    machine.scene.good("sync")
    machine.back_up()
    (slug,) = branches(machine)
    machine.lose()
    return slug


def test_a_remote_that_has_lost_the_branch_is_rolled_back(machine: Machine) -> None:
    slug = pushed(machine)
    git("--git-dir", str(machine.remote), "update-ref", "-d", f"refs/heads/savepoints/{slug}")
    before = home_of(machine.scene)
    ran = machine.bootstrap()
    assert (ran.code, f"has lost {slug}" in ran.err) == (22, True), ran.err
    assert "another copy of the remote" in ran.err
    assert home_of(machine.scene) == before


def test_an_empty_remote_in_its_place_is_rolled_back(machine: Machine) -> None:
    pushed(machine)
    shutil.rmtree(machine.remote)
    git("init", "-q", "--bare", str(machine.remote))
    assert machine.bootstrap().code == 22
    assert machine.bootstrap("--instance", "Gabriel #215").code == 22


def test_a_remote_that_never_had_it_is_not(bare: Scene, tmp_path: Path) -> None:
    bare.good("init", "--instance", "Gabriel #215")
    machine = object.__new__(Machine)
    machine.scene, machine.remote = bare, tmp_path / "remote.git"
    machine.keys, machine.words = tmp_path / "keys.age", tmp_path / "words"
    machine.words.write_text("correct horse")
    machine.words.chmod(0o600)
    git("init", "-q", "--bare", str(machine.remote))
    machine.back_up()
    remove(os.environ["SAVEPOINT_HOME"])
    ran = machine.bootstrap()
    assert ran.code == 1
    assert "nothing had been pushed there when the backup was made" in ran.err


def test_the_way_out_of_a_remote_that_is_not_there_needs_no_store(machine: Machine) -> None:
    pushed(machine)
    machine.remote.rename(machine.remote.with_name("away.git"))
    for ran in (
        machine.bootstrap(),
        machine.scene("bootstrap", "--remote", str(machine.remote)),
    ):
        assert ran.code == 30, ran.err
        assert "run the same again when the remote answers" in ran.err
        assert "savepoint sync" not in ran.err


def test_the_way_out_of_a_changed_remote_needs_no_store(machine: Machine) -> None:
    slug = pushed(machine)
    bare = ("--git-dir", str(machine.remote))
    tree = git(*bare, "rev-parse", f"savepoints/{slug}^{{tree}}").strip()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    made = git(*who, *bare, "commit-tree", "-m", "not ours", tree).strip()
    git(*bare, "update-ref", f"refs/heads/savepoints/{slug}", made)
    ran = machine.bootstrap()
    assert ran.code == 20, ran.err
    assert "another copy of the remote" in ran.err
    assert "savepoint fsck" not in ran.err


def test_the_way_out_of_files_that_differ_is_one_that_bootstrap_has(machine: Machine) -> None:
    pushed(machine)
    (machine.scene.project / "a.py").write_text("mine\n")
    ran = machine.bootstrap("--apply")
    assert ran.code == 1, ran.err
    assert "leave out --apply; then `savepoint resurrect --only files --apply --force`" in ran.err
    machine.bootstrap()
    machine.scene.good("resurrect", "--only", "files", "--apply", "--force")
    assert (machine.scene.project / "a.py").read_text() == "one\n"


def test_the_way_out_where_a_folder_has_another_store(machine: Machine, tmp_path: Path) -> None:
    pushed(machine)
    machine.scene.good("init", "--instance", "Other #1")
    ran = machine.bootstrap()
    assert (ran.code, "belongs to another store" in ran.err) == (1, True)
    other = tmp_path / "other"
    other.mkdir()
    assert machine.bootstrap("--project", str(other)).code == 0
    again = machine.bootstrap("--project", str(other))
    assert (again.code, "another SAVEPOINT_HOME begins anew" in again.err) == (1, True)
