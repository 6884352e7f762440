"""What was signed and paid is not lost with the file that it stands in, nor taken for nothing."""

from __future__ import annotations

import multiprocessing
import resource
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service import queue, witness
from anchor_service.queue import Queue
from savepoint.core import limits
from savepoint.core.errors import BusyError, DiskError, FundsError
from savepoint.core.verdicts import Verdict
from savepoint.store import durable, outbox_file, trusted
from savepoint.store.witness.witness import verify_local
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import InstancePaths, Store
    from tests.cli.scene import Scene
    from tests.submission.scene import Anchoring

_SPEND = 10**12


def _tear(store: Store) -> None:
    """As a copy of a running store comes out."""
    Path(store.outbox).write_bytes(b"SQLite format 3\0" + b"torn")


def _without_space(store: Store) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        Outbox(store).__enter__()
    except DiskError:
        return
    raise SystemExit(1)


def test_a_full_disk_takes_no_submission(it: Anchoring) -> None:
    """The file was deleted on any error of SQLite; the cap of a day was counted anew."""
    it.step()
    row = it.row()
    child = multiprocessing.get_context("fork").Process(target=_without_space, args=(it.store,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert it.row() == row
    with Queue(it.store) as box:
        assert box.spent_since(0) == row.planned > 0


@pytest.mark.parametrize("code", ["SQLITE_BUSY_RECOVERY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED"])
def test_who_holds_it_is_not_taken_for_damage(
    it: Anchoring, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """261 is BUSY_RECOVERY, and was not 5."""
    it.step()
    failure = sqlite3.OperationalError("locked")
    failure.sqlite_errorcode = getattr(sqlite3, code)
    monkeypatch.setattr(outbox_file, "_open", _raising(failure))
    for table in (Outbox, Queue):
        with pytest.raises(BusyError):
            table(it.store).__enter__()
    assert len(it.rows()) == 1


def _raising(failure: Exception) -> Callable[..., None]:
    def raising(*_: object) -> None:
        raise failure

    return raising


def test_a_torn_outbox_is_set_aside_with_what_it_knew(
    it: Anchoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.finish()
    it.save()
    it.step()
    _leave_wal(it)
    kept = {ending: Path(it.store.outbox + ending).read_bytes() for ending in ("", "-wal")}
    failure = sqlite3.DatabaseError("malformed")
    failure.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    opened = outbox_file._open
    monkeypatch.setattr(
        outbox_file,
        "_open",
        lambda path, schema: (
            opened(path, schema) if outbox_file.set_aside(it.store) else _raising(failure)()
        ),
    )
    with Outbox(it.store):
        pass
    ((aside, _),) = outbox_file.set_aside(it.store)
    assert {ending: Path(aside + ending).read_bytes() for ending in kept} == kept
    with closing(sqlite3.connect(aside)) as db:
        assert db.execute("SELECT count(*) FROM submissions").fetchone() == (2,)
    assert it.rows() == []


def _leave_wal(it: Anchoring) -> None:
    """As a killed worker does: what it wrote last stands in the -wal alone."""
    with closing(sqlite3.connect(it.store.outbox)) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("UPDATE submissions SET error = 'in the -wal'")
        db.commit()
        wal = Path(it.store.outbox + "-wal").read_bytes()
    Path(it.store.outbox + "-wal").write_bytes(wal)


def test_two_torn_outboxes_of_one_second(it: Anchoring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    for _ in range(2):
        _tear(it.store)
        with Outbox(it.store):
            pass
    assert len(outbox_file.set_aside(it.store)) == 2


def test_nothing_is_spent_within_a_cap_that_a_torn_outbox_knew(
    it: Anchoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.finish()
    it.choose(spend=_SPEND)
    _tear(it.store)
    it.finish()  # the account tells of its entry, not of what was paid
    it.save()
    with pytest.raises(FundsError, match="not known, and there is a cap"):
        it.step()
    ((aside, _),) = outbox_file.set_aside(it.store)
    monkeypatch.setattr(limits, "SPEND_SECONDS", -1)  # a day later
    it.finish()
    assert Path(aside).exists()


def test_once_it_is_moved_away_the_owner_has_seen_it(it: Anchoring) -> None:
    it.finish()
    it.choose(spend=_SPEND)
    _tear(it.store)
    it.finish()
    newest = it.save()
    with pytest.raises(FundsError):
        it.step()
    durable.remove(outbox_file.set_aside(it.store)[0][0])
    it.finish()
    it.check_covered(newest)


def test_doctor_and_fsck_tell_of_a_torn_outbox(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    _tear(cli.paths.store)
    cli.good("sync")
    checks = cli("doctor", "--json").json["checks"]
    (found,) = [one for one in checks if one["name"] == "outbox"]
    assert found["result"] == "warn"
    assert "set aside" in found["detail"]
    told = cli("fsck").text
    assert "damaged, and set aside" in told
    assert "does not belong" not in told


def test_what_cannot_be_read_is_not_nothing(cli: Scene) -> None:
    """`status` and `verify` said that nothing was anchored."""
    cli.created()
    cli.good("sync")
    _tear(cli.paths.store)
    with pytest.raises(DiskError, match="not a database"):
        witness.was_anchored(cli.paths, "embedded")
    assert cli("status").code == 40
    (listed,) = cli.good("list", "--json").json["savepoints"]
    assert listed["layer_3_status"] == "QUEUED_FOR_BLOCKCHAIN"
    assert "cannot be read" in witness.last_contact(cli.paths, "embedded")
    durable.remove(cli.paths.store.ledger_db)
    (told,) = cli("verify", "--json").json["savepoints"]
    assert told["witnesses"]["chain"]["verdict"] == "UNVERIFIABLE"


def test_tables_that_nobody_made_are_empty(it: Anchoring) -> None:
    with Outbox(it.store):
        pass
    assert queue.rows(it.store, it.paths.slug) == []


def test_each_question_fails_in_our_words(it: Anchoring) -> None:
    """A bare sqlite3.Error left two of them."""
    it.step()
    with Outbox(it.store) as box, Queue(it.store) as rows:
        for table in ("attempts", "submissions"):
            with closing(sqlite3.connect(it.store.outbox)) as db:
                db.execute(f"DROP TABLE {table}")
        with pytest.raises(DiskError):
            box.attempt(Job("push", "a", 1, 0))
        with pytest.raises(DiskError):
            rows.spent_since(0)
        with pytest.raises(DiskError):
            rows.rows(it.paths.slug)


def _without_head(paths: InstancePaths) -> None:
    head = trusted.load(paths)
    assert head is not None
    trusted.save(paths, head._replace(recreated=True))


def test_the_embedded_ledger_vouches_for_no_head_that_was_made_anew(cli: Scene) -> None:
    """It was put back with the store: a store that was rolled back, without its head, was green."""
    cli.created()
    _without_head(cli.paths)
    for _ in range(2):
        cli.good("sync", "--wait")
        head = trusted.load(cli.paths)
        assert head is not None
        assert (head.recreated, len(head.ledgers)) == (True, 1)
        assert verify_local(cli.paths).verdict is Verdict.UNVERIFIABLE
        cli.say("more")
        cli.created()
    cli.good("fsck", "--repair")
    assert verify_local(cli.paths).verdict is Verdict.VERIFIED


def test_another_ledger_vouches_for_a_head_that_was_made_anew(it: Anchoring) -> None:
    _without_head(it.paths)
    it.finish()
    assert it.row().state == queue.VERIFIED
    head = trusted.load(it.paths)
    assert head is not None
    assert not head.recreated
