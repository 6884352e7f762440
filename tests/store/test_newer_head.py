"""A trusted head of a newer version is kept as it is, and nothing is taken from it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import UnsupportedFormatError
from savepoint.core.verdicts import Verdict
from savepoint.store.fsck import repair
from savepoint.store.fsck.fsck import fsck
from savepoint.store.keys import retirement
from savepoint.store.witness.witness import verify_local
from tests.store.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable

_NEWER = b'{"v":2,"seq":1,"record":"%s","recreated":false,"gaps":[],"x":1}\n' % (b"ab" * 32)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    one = Place(tmp_path)
    one.save()
    Path(one.paths.trusted).write_bytes(_NEWER)
    return one


@pytest.mark.parametrize("how", ["save", "retire", "repair"])
def test_nothing_is_written_in_its_place(place: Place, how: str) -> None:
    """A head of ours there would have forgotten what was seen: a rollback left no trace."""
    index = Path(place.paths.index_file)
    before = index.read_bytes()
    run: dict[str, Callable[[], object]] = {
        "save": place.save,
        "retire": lambda: retirement.retire(place.paths, 1_800_000_001),
        "repair": lambda: repair.repair(place.paths.store, 0, time.monotonic() + 60),
    }
    with pytest.raises(UnsupportedFormatError, match="version 2"):
        run[how]()
    assert (Path(place.paths.trusted).read_bytes(), index.read_bytes()) == (_NEWER, before)


def test_verify_and_fsck_cannot_tell_and_say_so(place: Place) -> None:
    """Its sequence is below the index's end, and its hash is of no record: neither counts."""
    report = verify_local(place.paths)
    assert (report.verdict, report.exit_code) == (Verdict.UNVERIFIABLE, 23)
    checked = fsck(place.paths.store, time.time())
    assert checked.exit_code == 23
    (told,) = [one.detail for one in checked.items if one.exit_code]
    assert told.endswith("is of version 2")
