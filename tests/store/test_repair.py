"""Repair without another witness: what is lost is accepted by signed records, in one command."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.chain import Gap
from savepoint.core.errors import BusyError, KeyFileError
from savepoint.store import durable, trusted
from savepoint.store.fsck.fsck import fsck
from savepoint.store.fsck.repair import repair
from savepoint.store.locks import Lock
from savepoint.store.witness.witness import verify_local
from tests.verify import builder
from tests.verify.builder import Built, flip

if TYPE_CHECKING:
    from savepoint.store.fsck.repair import Repaired


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("template")
    return builder.store_of(folder / "home", folder / "project", 3)


@pytest.fixture
def built(template: Built, tmp_path: Path) -> Built:
    """Records 1 to 4: the birth and three savepoints."""
    return builder.copy(template, tmp_path / "home")


def fix(built: Built) -> list[Repaired]:
    return repair(built.paths.store, builder.NOW + 9000, time.monotonic() + 1)


def codes(built: Built) -> tuple[int, int]:
    """Exit codes of verify and fsck; they always agree."""
    found = verify_local(built.paths).exit_code
    assert fsck(built.paths.store, time.time()).exit_code == found
    return found, len(built.lines)


def put_back_after(built: Built, more: int, aside: Path) -> None:
    """`more` savepoints, then the store's folder as it was before them; trusted/ stays."""
    store = Path(built.paths.store.path)
    shutil.copytree(store, aside)
    for number in range(more):
        builder.save(built, b"lost %d\n" % number)
    shutil.rmtree(store)
    shutil.copytree(aside, store)


def test_whole_store_is_left_as_it_is(built: Built) -> None:
    before = built.index_file.read_bytes(), built.trusted.read_bytes()
    assert fix(built) == []
    assert before == (built.index_file.read_bytes(), built.trusted.read_bytes())


def test_store_put_back_from_an_older_copy_gets_out_with_one_command(
    built: Built, tmp_path: Path
) -> None:
    """borgbackup#4908: five saves, the folder as after the third, a save, verify, its hint."""
    put_back_after(built, 2, tmp_path / "aside")
    assert codes(built) == (22, 4)
    one = builder.save(built, b"goes on\n")
    assert one.seq == 7
    assert codes(built) == (22, 5)
    assert verify_local(built.paths).hint == "run `savepoint fsck --repair`"
    (accepted,) = fix(built)
    assert (accepted.record.seq, accepted.record.kind) == (8, "accept")
    assert accepted.what == "records 5 to 6 accepted as lost"
    assert codes(built) == (0, 6)
    builder.save(built, b"and on\n")
    assert codes(built) == (0, 7)
    assert fix(built) == []
    log = Path(built.paths.continuity_log).read_text(encoding="utf-8")
    assert "record 8: records 5 to 6 accepted as lost" in log


def test_store_put_back_and_not_saved_since(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 2, tmp_path / "aside")
    (accepted,) = fix(built)
    assert (accepted.record.seq, accepted.record.body["first"]) == (7, 5)
    head = trusted.load(built.paths)
    assert head is not None
    assert (head.seq, head.record, head.gaps) == (7, accepted.record.hash, (Gap(5, 6),))
    assert codes(built) == (0, 5)


def test_store_put_back_twice(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "one")
    builder.save(built, b"goes on\n")
    put_back_after(built, 1, tmp_path / "two")
    assert codes(built) == (22, 5)
    assert [one.what for one in fix(built)] == [
        "records 5 to 5 accepted as lost",
        "records 7 to 7 accepted as lost",
    ]
    assert codes(built) == (0, 7)


def test_rollback_behind_an_acceptance_is_a_new_rollback(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "one")
    aside = tmp_path / "two"
    shutil.copytree(built.paths.store.path, aside)
    fix(built)
    assert codes(built) == (0, 5)
    shutil.rmtree(built.paths.store.path)
    shutil.copytree(aside, built.paths.store.path)
    assert codes(built) == (22, 4)
    assert [one.record.body["last"] for one in fix(built)] == [6]
    assert codes(built) == (0, 5)


@pytest.mark.parametrize("ruin", [None, b"", b"{}"])
def test_missing_trusted_head_is_accepted_as_it_is_now(built: Built, ruin: bytes | None) -> None:
    built.trusted.unlink() if ruin is None else built.trusted.write_bytes(ruin)
    assert codes(built) == (21, 4)
    (accepted,) = fix(built)
    assert accepted.record.body["reason"] == "recreated"
    assert codes(built) == (0, 5)


def test_trusted_head_that_a_save_made_anew_is_accepted(built: Built) -> None:
    shutil.rmtree(built.trusted.parent)
    builder.save(built, b"goes on\n")
    assert codes(built) == (21, 5)
    (accepted,) = fix(built)
    assert (accepted.record.seq, accepted.what) == (6, "the trusted head accepted as it is now")
    assert codes(built) == (0, 6)


def test_acceptance_of_a_head_does_not_outlive_that_head(built: Built) -> None:
    """Else whoever removes the head of a store that once accepted one could roll it back."""
    shutil.rmtree(built.trusted.parent)
    fix(built)
    assert codes(built)[0] == 0
    shutil.rmtree(built.trusted.parent)
    assert codes(built)[0] == 21
    builder.save(built, b"goes on\n")
    assert codes(built)[0] == 21


def test_gap_under_a_missing_head_is_accepted_with_it(built: Built) -> None:
    builder.save(built, b"last\n")
    built.write_lines(*built.lines[:2], *built.lines[3:])
    built.trusted.unlink()
    assert codes(built)[0] == 20
    assert [one.record.body["reason"] for one in fix(built)] == ["gap", "recreated"]
    assert codes(built)[0] == 0


def test_fork_is_accepted_and_names_its_sequence(built: Built, tmp_path: Path) -> None:
    """The same store on two machines: each made record 5."""
    other = builder.copy(built, tmp_path / "other")
    builder.save(built, b"here\n")
    builder.save(other, b"there\n")
    shutil.rmtree(built.paths.store.path)
    shutil.copytree(other.paths.store.path, built.paths.store.path)
    assert codes(built) == (22, 5)
    (accepted,) = fix(built)
    assert (accepted.record.body["first"], accepted.record.body["last"]) == (5, 5)
    assert codes(built) == (0, 6)


def test_torn_tail_is_settled_on_the_way(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "aside")
    with built.index_file.open("ab") as file:
        file.write(b'{"v":1,"seq":6,"pre')
    fix(built)
    assert codes(built) == (0, 5)


def test_changed_bytes_are_never_accepted(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "aside")
    flip(built.index_file, 600)
    before = built.index_file.read_bytes()
    assert fix(built) == []
    assert built.index_file.read_bytes() == before
    assert codes(built)[0] == 20


def test_changed_snapshot_stays_tampered_after_a_repair(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "aside")
    flip(built.snapshot(built.records()[1]), 100)
    assert len(fix(built)) == 1
    report = verify_local(built.paths)
    assert [str(one.verdict) for one in report.savepoints] == ["TAMPERED", "VERIFIED", "VERIFIED"]
    assert report.exit_code == 20


def test_repair_without_the_key_says_so_and_changes_nothing(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "aside")
    Path(built.paths.authority).unlink()
    before = built.index_file.read_bytes(), built.trusted.read_bytes()
    with pytest.raises(KeyFileError):
        fix(built)
    assert before == (built.index_file.read_bytes(), built.trusted.read_bytes())


def test_repair_waits_for_the_store_lock(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 1, tmp_path / "aside")
    with Lock(built.paths.store.lock, time.monotonic()), pytest.raises(BusyError):
        repair(built.paths.store, builder.NOW, time.monotonic())
    assert codes(built) == (22, 4)


@pytest.mark.parametrize("step", ["append", "replace"])
@pytest.mark.parametrize("call", [1, 2])
def test_repair_that_is_killed_is_finished_by_the_next(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int
) -> None:
    """Before and after the record, before and after the head: nothing looks cut out."""
    put_back_after(built, 1, tmp_path / "one")
    head = trusted.load(built.paths)
    assert head is not None
    trusted.save(built.paths, head._replace(recreated=True))
    calls = 0
    real = getattr(durable, step)

    def dying(*given: object, **named: object) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(durable, step, dying)
        with pytest.raises(KeyboardInterrupt):
            fix(built)
    assert codes(built)[0] in (21, 22)
    fix(built)
    assert codes(built)[0] == 0
    assert fix(built) == []


def test_no_sequence_is_used_twice_by_a_repair(built: Built, tmp_path: Path) -> None:
    put_back_after(built, 2, tmp_path / "aside")
    fix(built)
    seqs = [one.seq for one in built.records()]
    assert seqs == [1, 2, 3, 4, 7]
