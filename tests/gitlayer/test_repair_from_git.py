"""`fsck --repair` on a store with git: what comes back from where, and what never changes."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import RolledBackError
from savepoint.gitlayer.repair import mend
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.witness import findings
from savepoint.store.witness.witness import verify_local
from tests.gitlayer.layer import SECONDS, Layer
from tests.gitlayer.remotes import Pushing
from tests.verify.builder import NOW, flip

if TYPE_CHECKING:
    from savepoint.gitlayer.repair.mend import Outcome


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    """Savepoints 2 and 3, pushed; 4 and 5, committed."""
    it = Pushing.new(tmp_path)
    it.saved(2)
    it.push()
    it.saved(2)
    return it


def _repo(layer: Layer) -> Repository:
    return Repository.of(layer.paths.store, dict(os.environ), time.monotonic() + SECONDS)


def _mend(layer: Layer) -> Outcome:
    store = layer.paths.store
    return mend.mend(_repo(layer), store, NOW + 1_000_000, time.monotonic() + SECONDS)


def _is_sound(layer: Layer) -> bool:
    found = findings.find(_repo(layer), layer.paths.store, [layer.paths.slug])
    damage = [one for one in found.items if one.severity == "damage"]
    return not damage and verify_local(layer.paths).exit_code == 0


def _pack_of(layer: Layer, commit: str) -> Path:
    """The git pack that holds a commit."""
    for index in (layer.git_dir / "objects/pack").glob("*.idx"):
        if commit in layer.git("verify-pack", "-v", str(index)).decode():
            pack = index.with_suffix(".pack")
            pack.chmod(0o600)
            return pack
    raise AssertionError(commit)


def test_a_sound_store_is_left_as_it_is(it: Pushing) -> None:
    def files() -> dict[Path, bytes]:
        every = Path(it.layer.paths.store.path).rglob("*")
        return {path: path.read_bytes() for path in every if path.is_file()}

    before = files()
    assert _mend(it.layer) == ((), ())
    after = files()
    assert {path: after[path] for path in before} == before


def test_a_pushed_object_comes_back_and_unpushed_commits_stay(it: Pushing) -> None:
    before = it.layer.history()
    flip(_pack_of(it.layer, before[0]), 60)
    outcome = _mend(it.layer)
    assert outcome.problems == ()
    assert it.layer.history() == before
    assert _is_sound(it.layer)
    (aside,) = Path(it.layer.paths.store.path).glob("repo.git.damaged-*")
    assert aside.is_dir()
    it.push()
    it.check_pushed()


def test_an_unpushed_object_is_committed_again_and_the_rest_stays(it: Pushing) -> None:
    before = it.layer.history()
    flip(_pack_of(it.layer, before[3]), 60)
    outcome = _mend(it.layer)
    after = it.layer.history()
    assert after[:3] == before[:3]
    assert after[3] != before[3]
    told = [one.what for one in outcome.done if one.seq == 5]
    assert any(before[3] in one and "lost" in one for one in told)
    assert _is_sound(it.layer)
    it.push()
    it.check_pushed()


def test_every_object_that_is_lost(it: Pushing) -> None:
    shutil.rmtree(it.layer.git_dir / "objects")
    _mend(it.layer)
    assert it.layer.history()[:2] == it.bare.git(
        "rev-list", "--reverse", f"refs/heads/savepoints/{it.slug}"
    ).split("\n")
    assert len(it.layer.history()) == 4
    assert _is_sound(it.layer)
    it.push()
    it.check_pushed()


def test_a_ref_that_went_back_is_moved_on_from_the_remote(it: Pushing) -> None:
    it.push()
    before = it.layer.history()
    it.layer.git("update-ref", it.layer.ref, before[0])
    _mend(it.layer)
    assert it.layer.history() == before
    assert _is_sound(it.layer)


def test_a_lost_instance_folder_comes_back(it: Pushing) -> None:
    it.push()
    shutil.rmtree(it.layer.paths.path)
    outcome = _mend(it.layer)
    assert outcome.problems == ()
    assert _is_sound(it.layer)
    assert len(verify_local(it.layer.paths).savepoints) == 4


def test_a_fork_is_left_to_its_owner(it: Pushing) -> None:
    """No repair chooses between two histories."""
    it.bare.put(it.slug, it.bare.foreign_commit(it.bare.tip(it.slug)))
    before = it.layer.tip()
    outcome = _mend(it.layer)
    (problem,) = outcome.problems
    assert isinstance(problem, RolledBackError)
    assert "--accept-remote" in problem.hint
    assert (it.layer.tip(), outcome.done) == (before, ())


def test_without_a_key_what_is_encrypted_does_not_come_back(it: Pushing) -> None:
    Path(it.layer.paths.store.age_identity).unlink()
    for pack in it.layer.built.packs():
        pack.unlink()
    outcome = _mend(it.layer)
    assert len(outcome.problems) == 1
    assert not _is_sound(it.layer)


def test_a_second_repair_finds_nothing_to_do(it: Pushing) -> None:
    flip(_pack_of(it.layer, it.layer.history()[3]), 60)
    _mend(it.layer)
    assert _mend(it.layer) == ((), ())
