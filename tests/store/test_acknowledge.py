"""What a save adds to an index that is not what the trusted head has seen."""

import os
import time
from pathlib import Path

import pytest

from savepoint.core import spelling
from savepoint.core.verdicts import Verdict
from savepoint.store import trusted
from savepoint.store.fsck import repair
from savepoint.store.keys import retirement
from tests.store.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def forked(place: Place) -> Place:
    """The index has another record 3 than the trusted head has seen."""
    place.save()
    index = Path(place.paths.index_file)
    before = index.read_bytes()
    place.save()
    head = trusted.load(place.paths)
    index.write_bytes(before)  # put back, with a head that forgot: another record 3 is made
    Path(place.paths.trusted).unlink()
    place.save()
    assert head is not None
    trusted.save(place.paths, head)
    assert place.verdict() is Verdict.ROLLED_BACK
    return place


def test_a_save_on_a_forked_index_does_not_cover_the_fork(forked: Place) -> None:
    assert forked.save() == 4
    assert forked.verdict() is Verdict.ROLLED_BACK
    repair.repair(forked.paths.store, 1_800_000_001, time.monotonic() + 120)
    assert forked.verdict() is Verdict.VERIFIED


def test_a_retirement_on_a_forked_index_does_not_cover_the_fork(forked: Place) -> None:
    seen = trusted.load(forked.paths)
    retired = retirement.retire(forked.paths, 1_800_000_001)
    assert (retired.seq, trusted.load(forked.paths)) == (4, seen)
    assert forked.verdict() is Verdict.ROLLED_BACK


def test_a_retirement_is_known_to_the_trusted_head(place: Place) -> None:
    place.save()
    assert retirement.retire(place.paths, 1_800_000_001).seq == 3
    head = trusted.load(place.paths)
    assert head is not None
    assert head.seq == 3
    assert place.verdict() is Verdict.VERIFIED


def test_many_snapshots_of_one_second_have_a_name_each(place: Place) -> None:
    assert [place.save() for _ in range(4)] == [2, 3, 4, 5]
    names = sorted(one.name for one in Path(place.paths.snapshots).iterdir())
    stem = "snapshot_" + spelling.time_text(1_800_000_000).replace(":", "-")
    assert names == sorted([f"{stem}.json", *(f"{stem}_{seq}.json" for seq in (3, 4, 5))])


def test_a_name_that_a_crash_left_taken_is_not_used_again(place: Place) -> None:
    place.save()
    stem = "snapshot_" + spelling.time_text(1_800_000_000).replace(":", "-")
    left = Path(place.paths.snapshots) / f"{stem}_3.json"
    left.write_bytes(b"of a save that was killed before its record")
    assert place.save() == 3
    assert left.read_bytes() == b"of a save that was killed before its record"
    assert place.verdict() is Verdict.VERIFIED


def test_a_fifo_in_the_place_of_a_log_does_not_hang_the_save(place: Place) -> None:
    place.save()
    Path(place.paths.status_log).unlink()
    os.mkfifo(place.paths.status_log)
    assert place.save() == 3
    assert place.verdict() is Verdict.VERIFIED
