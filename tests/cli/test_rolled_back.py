"""What is told of an index that was cut: no tick by a number that another record had."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import standing

if TYPE_CHECKING:
    from tests.cli.scene import Scene

pytestmark = pytest.mark.usefixtures("no_worker")
_MEND = "run `savepoint fsck --repair`"


def _cut(cli: Scene, *, to: int) -> None:
    """Leave so many records of the index."""
    path = Path(cli.paths.index_file)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:to]))


def test_a_new_record_of_an_old_number_is_neither_committed_nor_anchored(anchored: Scene) -> None:
    """Git and the ledger hold a record 3 that is gone; nothing is left that says so but they."""
    _cut(anchored, to=2)
    shutil.rmtree(Path(anchored.paths.trusted).parent)
    anchored.say("three")
    told = anchored("create")
    assert told.code == 1
    assert "Layer 2: QUEUED_FOR_COMMIT: git has another record of that number" in told.text
    assert "Layer 3: QUEUED_FOR_BLOCKCHAIN (embedded)" in told.text
    old, new = anchored.good("list", "--json").json["savepoints"]
    assert (old["seq"], new["seq"]) == (2, 3)
    assert old["layer_2_status"] == "COMMITTED_LOCALLY"
    assert new["layer_2_status"] == "QUEUED_FOR_COMMIT"
    assert new["layer_3_status"] == "QUEUED_FOR_BLOCKCHAIN"
    shown = anchored.good("show", "3").text
    assert "QUEUED_FOR_COMMIT, layer 3 QUEUED_FOR_BLOCKCHAIN" in shown
    status = anchored.good("status").text
    assert not re.search("all (committed|pushed|anchored)", status)
    assert "QUEUED_FOR_COMMIT up to 3" in status
    assert "BLOCKCHAIN_VERIFIED" not in standing.events(anchored.paths, 3)
    assert "the index has not that record" in anchored("doctor").text


@pytest.mark.parametrize("to", [0, 2], ids=["emptied", "cut"])
def test_an_index_that_lost_records_is_told_of_at_each_look(anchored: Scene, to: int) -> None:
    """They said that all is well, or that `savepoint create` makes the first one."""
    assert "ROLLED BACK" not in anchored.good("status").err
    _cut(anchored, to=to)
    for command in ("status", "list"):
        ran = anchored.good(command)
        assert f"record 3 was seen; {_MEND}" in ran.err
        assert "makes one" not in ran.err
    anchored.good("fsck", "--repair")
    for command in ("status", "list"):
        assert "ROLLED BACK" not in anchored.good(command).err


def test_a_gap_that_was_gone_on_from_is_told_of_until_it_is_closed(anchored: Scene) -> None:
    _cut(anchored, to=2)
    anchored.say("three")
    assert anchored("create").code == 1
    assert f"the index lacks the records 3 to 3; {_MEND}" in anchored.good("status").err
    anchored.good("fsck", "--repair")
    assert "ROLLED BACK" not in anchored.good("status").err
    assert len(anchored.good("list", "--json").json["savepoints"]) == 3


def test_a_number_that_the_outbox_makes_up_anchors_nothing(anchored: Scene) -> None:
    """It was told as fact, and nothing was anchored any more."""
    with closing(sqlite3.connect(anchored.paths.store.outbox)) as box, box:
        box.execute("UPDATE submissions SET record_seq = 9999")
    anchored.say("three")
    assert "Layer 3: QUEUED_FOR_BLOCKCHAIN" in anchored.good("create").text
    assert "all anchored" not in anchored.good("status").text
    anchored.good("sync")
    assert anchored.good("list", "--json").json["savepoints"][-1]["layer_3_status"] == (
        "BLOCKCHAIN_VERIFIED"
    )
    assert "all anchored" in anchored.good("status").text
    anchored.good("verify", "--all")


@pytest.mark.parametrize(
    ("number", "record"),
    [(4, None), (2**63 - 1, None), (2**64 - 1, None), (2**63 - 1, "7" * 64), (2**64 - 1, "7" * 64)],
)
def test_a_number_that_a_trusted_head_makes_up_is_not_gone_on_from(
    anchored: Scene, number: int, record: str | None
) -> None:
    """The file is unsigned: what it said became a signed gap up to there, for good."""
    path = Path(anchored.paths.trusted)
    text = path.read_text().replace('"seq":3,"record"', f'"seq":{number},"record"')
    if record is not None:
        text = re.sub('"record":"[0-9a-f]{64}', f'"record":"{record}', text)
    path.write_text(text)
    assert f"is damaged: it names a record {number}" in anchored.good("status").err
    anchored.say("three")
    anchored.good("create")
    assert anchored.good("list", "--json").json["savepoints"][-1]["seq"] == 4
    assert anchored("verify", "--all").code == 21  # as after any head that was made anew
    anchored.good("fsck", "--repair")
    anchored.good("sync")
    anchored.good("verify", "--all")
