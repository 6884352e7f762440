"""What a check of our repository finds: nothing where it is sound, and each fault elsewhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyrage  # type: ignore[import-untyped]  # it ships no types
import pytest

from savepoint.core.errors import RolledBackError, TamperedError
from savepoint.core.packs import compress
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer import tree
from savepoint.gitlayer.commits import by_hand
from savepoint.gitlayer.repair import restore
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.witness import check, held
from savepoint.store.keys import agekeys
from savepoint.store.witness.witness import verify_local
from tests.gitlayer.layer import SECONDS, Layer
from tests.gitlayer.test_commit import append
from tests.verify.builder import flip

if TYPE_CHECKING:
    from savepoint.gitlayer.witness.check import Checked, Fault
    from savepoint.gitlayer.witness.held import Held


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    """Savepoints 2 and 3."""
    layer = Layer.new(tmp_path)
    layer.saved(b"one\n", loaded={"a.py": b"a\n"}, spilled=True)
    layer.saved(b"one\ntwo\n", loaded={"a.py": b"b\n"}, spilled=True)
    return layer


def repo_of(layer: Layer, **env: str) -> Repository:
    store = layer.paths.store
    return Repository.of(store, {**os.environ, **env}, time.monotonic() + SECONDS)


def checked(layer: Layer, *, blind: bool = False) -> Checked:
    identities = [] if blind else agekeys.identities(layer.paths.store)
    return check.check(repo_of(layer), layer.paths, identities)


def faults(layer: Layer) -> list[Fault]:
    return checked(layer).faults


def opened(layer: Layer, commit: str) -> Held:
    return held.held(repo_of(layer), commit, agekeys.identities(layer.paths.store))


def one_fault(layer: Layer, words: str, verdict: Verdict = Verdict.TAMPERED) -> None:
    """There is one fault, of savepoint 3."""
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (verdict, 3)
    assert words in fault.detail


def test_a_sound_repository_has_no_fault(layer: Layer) -> None:
    seen = []
    identities = agekeys.identities(layer.paths.store)
    found = check.check(repo_of(layer), layer.paths, identities, lambda *at: seen.append(at))
    assert found.faults == []
    assert [(step.commit, step.said.seq) for step in found.steps] == list(
        zip(layer.history(), (2, 3), strict=True)
    )
    assert seen == [(1, 2), (2, 2)]


def test_chunks_riders_retirement_and_a_successors_birth_are_sound(tmp_path: Path) -> None:
    layer = Layer.new(tmp_path)
    Path(layer.paths.bootstrap).write_bytes(b"{}\n")
    layer.commit()
    for number in range(34):
        layer.save(b"%d\n" % number)
        if number == 9:
            append(layer, "accept", reason="recreated", first=None, last=None, tip=None)
    append(layer, "retire")
    while layer.commit():
        pass
    assert faults(layer) == []
    assert len(layer.history()) == 36


def test_before_the_first_commit_there_is_no_fault(tmp_path: Path) -> None:
    layer = Layer.new(tmp_path)
    assert check.branch(repo_of(layer), layer.paths) == ([], [])


def test_a_savepoint_that_waits_is_no_fault(layer: Layer) -> None:
    layer.save(b"three\n")
    assert faults(layer) == []


# bytes on the disk


def git_files(layer: Layer) -> list[Path]:
    return sorted((layer.git_dir / "objects/pack").glob("pack-*.*"))


@pytest.mark.parametrize("suffix", [".pack", ".idx"])
def test_a_flipped_byte_anywhere_is_found(layer: Layer, suffix: str) -> None:
    for path in git_files(layer):
        if path.suffix != suffix:
            continue
        path.chmod(0o600)
        size = path.stat().st_size
        for at in (0, size // 3, size // 2, size - 30, size - 1):
            flip(path, at)
            assert Verdict.TAMPERED in {one.verdict for one in faults(layer)}, (path, at)
            flip(path, at)
    assert faults(layer) == []


def test_a_lost_git_pack_is_found(layer: Layer) -> None:
    for path in [path for path in git_files(layer) if path.suffix == ".pack"]:
        data = path.read_bytes()
        path.unlink()
        assert Verdict.TAMPERED in {one.verdict for one in faults(layer)}
        path.write_bytes(data)


@pytest.mark.parametrize("content", [b"", b"ab" * 20 + b"\n", b"banana\n"])
def test_a_ref_that_leads_nowhere_is_found(layer: Layer, content: bytes) -> None:
    layer.ref_file.write_bytes(content)
    assert {one.verdict for one in faults(layer)} == {Verdict.TAMPERED}


# a commit that is not what it must be, though git finds nothing wrong


def test_a_changed_readme(layer: Layer) -> None:
    """People run what it says."""
    layer.forge({"README.md": layer.store_blob(by_hand.README.replace(b"rm -rf", b"rm -rf ~"))})
    one_fault(layer, "README.md is not what it must be")


def test_the_readme_of_an_earlier_commit(layer: Layer) -> None:
    """What was committed before its text was changed is whole."""
    blob = layer.store_blob(by_hand.EARLIER_README)
    assert blob == "fd569d3874a121076f142322d688d98b2278995f", "git's id of what was written then"
    layer.forge({"README.md": blob})
    assert faults(layer) == []


def test_a_file_too_many(layer: Layer) -> None:
    layer.forge({".github/workflows/x.yml": layer.store_blob(b"on: push\n")})
    one_fault(layer, "1 files that no savepoint has")


def test_a_link(layer: Layer) -> None:
    """A clone would read through it."""
    layer.forge({"objects/x": layer.store_blob(b"/etc/passwd")}, mode="120000")
    one_fault(layer, "no plain file")


def test_another_index(layer: Layer) -> None:
    older = layer.tree(layer.history()[0])
    layer.forge({tree.OPEN_CHUNK: older[tree.OPEN_CHUNK]})
    one_fault(layer, "precompact-savepoint.jsonl is not what it must be")


def test_an_index_cut_in_other_places(layer: Layer) -> None:
    lines = layer.built.lines
    layer.forge(
        {
            tree.OPEN_CHUNK: layer.store_blob(b"\n".join(lines[1:]) + b"\n"),
            tree.closed_chunk(1): layer.store_blob(lines[0] + b"\n"),
        }
    )
    one_fault(layer, "is not what it must be")


def test_the_snapshot_of_another_savepoint(layer: Layer) -> None:
    first, second = layer.built.records()[1:]
    before = layer.tree(layer.history()[0])
    layer.forge({tree.snapshot(second.snapshot_file): before[tree.snapshot(first.snapshot_file)]})
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (Verdict.TAMPERED, 3)


@pytest.mark.parametrize("what", ["pack", "recover", "snapshot"])
def test_encrypted_content_that_is_lacking(layer: Layer, what: str) -> None:
    layer.forge({_path(layer, what): None})
    one_fault(layer, "is missing")


@pytest.mark.parametrize("what", ["pack", "recover", "snapshot"])
def test_encrypted_content_of_other_bytes(layer: Layer, what: str) -> None:
    """Anybody can encrypt to the recipients: they are public."""
    layer.forge({_path(layer, what): layer.seal(compress(b"other"))})
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (Verdict.TAMPERED, 3)


@pytest.mark.parametrize("what", ["pack", "recover", "snapshot"])
def test_content_that_is_no_age_message(layer: Layer, what: str) -> None:
    layer.forge({_path(layer, what): layer.store_blob(b"age-encryption.org/v1\n-> x\n")})
    one_fault(layer, "is no whole age message")


@pytest.mark.parametrize("what", ["pack", "recover", "snapshot"])
def test_content_that_is_encrypted_to_somebody_else(layer: Layer, what: str) -> None:
    stranger = pyrage.x25519.Identity.generate().to_public()
    layer.forge({_path(layer, what): layer.store_blob(pyrage.encrypt(b"x", [stranger]))})
    one_fault(layer, "does not open", Verdict.UNVERIFIABLE)


def test_a_snapshot_that_opens_without_end(layer: Layer) -> None:
    bomb = layer.seal(compress(b"\0" * 50_000_000))
    layer.forge({_path(layer, "snapshot"): bomb})
    one_fault(layer, "another length than stated")


def test_a_pack_that_is_larger_than_any(layer: Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_PACK_BYTES", 1000)
    layer.forge({_path(layer, "pack"): layer.seal(os.urandom(200_000))})
    one_fault(layer, "is larger than")


def _path(layer: Layer, what: str) -> str:
    files = layer.tree(layer.tip())
    if what == "recover":
        return tree.RECOVER
    start = "objects/" if what == "pack" else "logs/precompact-saves/"
    return next(path for path in files if path.startswith(start))


# the branch


@pytest.mark.parametrize(
    "message",
    [
        "x\n",
        "x\n\nSavepoint-Seq: 3\n",
        "x\n\nSavepoint-Seq: 03\nSavepoint-Record: " + "ab" * 32 + "\n",
        "x\n\nSavepoint-Seq: 3\nSavepoint-Record: AB" + "ab" * 31 + "\n",
        "x\n\nSavepoint-Seq: 3\nSavepoint-Record: " + "ab" * 32 + "\nX: y\n",
        "x\n\nSavepoint-Seq: 3\nSavepoint-Record: " + "ab" * 32 + "\n",
    ],
)
def test_a_commit_that_names_no_record_of_ours(layer: Layer, message: str) -> None:
    layer.forge({}, message=message)
    assert Verdict.TAMPERED in {one.verdict for one in faults(layer)}


def test_a_savepoint_that_was_taken_out(layer: Layer) -> None:
    layer.forge({}, parent="")
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq, fault.detail) == (
        Verdict.TAMPERED,
        2,
        "record 2 has no commit",
    )


def test_a_savepoint_that_stands_there_twice(layer: Layer) -> None:
    layer.forge({}, parent=layer.tip())
    (fault,) = faults(layer)
    assert fault.seq == 3
    assert "does not follow" in fault.detail


def test_a_merge(layer: Layer) -> None:
    first = layer.history()[0]
    other = layer.lines(
        *("-c", "user.name=e", "-c", "user.email=e@e"),
        *("commit-tree", "-m", "x", f"{first}^{{tree}}"),
    )[0]
    layer.forge({}, parent=f"{first} {other}")
    (fault,) = faults(layer)
    assert "does not follow" in fault.detail


def test_an_index_that_went_back(layer: Layer) -> None:
    layer.built.write_lines(*layer.built.lines[:-1])
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (Verdict.ROLLED_BACK, 3)


def test_a_record_that_nobody_signed_is_no_rollback(layer: Layer) -> None:
    lines = layer.built.lines
    forged = lines[-1].replace(b'"manual"', b'"forged"')
    layer.built.write_lines(*lines[:-1], forged)
    index = layer.store_blob(layer.built.index_file.read_bytes())
    digest = hashlib.sha256(forged).hexdigest()
    layer.forge(
        {tree.OPEN_CHUNK: index}, message=f"x\n\nSavepoint-Seq: 3\nSavepoint-Record: {digest}\n"
    )
    layer.built.write_lines(*lines[:-1])
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (Verdict.TAMPERED, 3)


def test_a_shallow_history(layer: Layer, tmp_path: Path) -> None:
    whole = layer.git_dir.rename(tmp_path / "whole")
    clone = ["git", "clone", "-q", "--bare", "--depth=1", "--no-single-branch"]
    subprocess.run([*clone, f"file://{whole}", str(layer.git_dir)], check=True, capture_output=True)
    (fault,) = faults(layer)
    assert (fault.verdict, fault.seq) == (Verdict.UNVERIFIABLE, 2)


# what could not be looked at is not what is wrong


def test_without_a_key_content_is_unverifiable(layer: Layer) -> None:
    found = checked(layer, blind=True)
    assert {(one.verdict, one.seq) for one in found.faults} == {
        (Verdict.UNVERIFIABLE, 2),
        (Verdict.UNVERIFIABLE, 3),
    }


def test_without_git_nothing_is_known(layer: Layer, tmp_path: Path) -> None:
    repo = repo_of(layer, PATH=str(tmp_path))
    found = check.check(repo, layer.paths, agekeys.identities(layer.paths.store))
    assert {one.verdict for one in found.faults} == {Verdict.UNVERIFIABLE}


# putting back


def test_everything_comes_back_from_git(layer: Layer) -> None:
    for pack in layer.built.packs():
        pack.unlink()
    for one in layer.built.records()[1:]:
        flip(layer.built.snapshot(one), 20)
    assert verify_local(layer.paths).exit_code == 20
    for commit, one in zip(layer.history(), layer.built.records()[1:], strict=True):
        done = restore.savepoint(opened(layer, commit), layer.paths, one)
        assert len(done) >= 2
        assert restore.savepoint(opened(layer, commit), layer.paths, one) == []
    assert verify_local(layer.paths).exit_code == 0


def test_nothing_comes_back_that_was_not_signed(layer: Layer) -> None:
    (commit, one) = layer.forge({_path(layer, "pack"): layer.seal(b"x")}), layer.built.records()[-1]
    for pack in layer.built.packs():
        pack.unlink()
    with pytest.raises(TamperedError):
        restore.savepoint(opened(layer, commit), layer.paths, one)


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_lost_records_come_back(layer: Layer, keep: int) -> None:
    before = layer.built.index_file.read_bytes()
    layer.built.write_lines(*layer.built.lines[:keep])
    assert restore.records(repo_of(layer), layer.paths) == 3 - keep
    assert layer.built.index_file.read_bytes() == before
    assert restore.records(repo_of(layer), layer.paths) == 0


def test_damaged_records_come_back_and_later_ones_stay(layer: Layer) -> None:
    layer.save(b"later\n")
    before = layer.built.index_file.read_bytes()
    flip(layer.built.index_file, 30)
    spoilt = layer.built.index_file.read_bytes()
    assert restore.records(repo_of(layer), layer.paths) == 1
    assert layer.built.index_file.read_bytes() == before
    (aside,) = layer.built.index_file.parent.glob("*.damaged-*")
    assert aside.read_bytes() == spoilt
    assert verify_local(layer.paths).exit_code == 0


def test_a_fork_is_not_written_over(layer: Layer) -> None:
    lines, last = layer.built.lines, layer.built.records()[-1]
    other = layer.built.make(
        "save", 3, last.prev, {**last.body, "trigger": "auto"}, layer.built.seed
    )
    layer.built.write_lines(*lines[:-1], other.line)
    before = layer.built.index_file.read_bytes()
    with pytest.raises(RolledBackError):
        restore.records(repo_of(layer), layer.paths)
    assert layer.built.index_file.read_bytes() == before


def test_a_commit_of_a_record_that_a_newer_version_wrote_is_no_rollback(layer: Layer) -> None:
    path = Path(layer.paths.index_file)
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(before) + last.replace(b'"v":1,', b'"v":9,', 1))
    (fault,) = faults(layer)
    assert (fault.finding.rule, fault.finding.unsupported) == ("VERIFY-10", True)
