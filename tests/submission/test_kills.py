"""The worker dies anywhere: at most one entry a savepoint, and every savepoint covered."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service import queue
from anchor_service.ledgers import database
from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger
from savepoint.core import entry, spelling
from savepoint.store import config, trusted
from tests.submission import dying
from tests.work import scene as work

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from tests.submission.scene import Anchoring

_DYING = str(Path(dying.__file__))


@pytest.fixture
def own(it: Anchoring) -> Anchoring:
    """Anchored on the embedded ledger, by real workers."""
    it.choose(ledger=config.EMBEDDED, program=None)
    return it


def die(it: Anchoring, point: str) -> int:
    """The exit code of a worker that dies there, if it comes there."""
    home, store, folder = it.store.home, it.store.id, work.around().config_dir
    command = [sys.executable, "-I", _DYING, point, home, store, folder]
    env = dict(work.around().environment)
    return subprocess.run(command, env=env, check=False, timeout=work.SECONDS).returncode


def account_of(it: Anchoring) -> entry.Account:
    """What the one account holds; each transaction that ever landed was an entry of it."""
    (address,) = {row.account for row in it.rows()}
    ledger = EmbeddedLedger(it.store.ledger_db, PROGRAM)
    state = ledger.account(spelling.key_bytes(address), "finalized")
    assert state is not None
    account = entry.parse(state.data)
    with database.reading(it.store.ledger_db) as db:
        (count,) = db.execute("SELECT count(*) FROM transactions").fetchone()
    assert account.seq == count
    return account


def check(it: Anchoring, newest: Record, count: int) -> None:
    """The newest savepoint is what the account names; `count` entries were made, each of another
    savepoint, and nothing is under way.
    """
    account = account_of(it)
    assert (account.metadata.rec, account.seq) == (newest.hash, count)
    assert [row.state for row in it.rows()] == [queue.VERIFIED] * count
    assert len({row.record for row in it.rows()}) == count
    head = trusted.load(it.paths)
    assert head is not None
    genesis = it.rows()[0].genesis
    assert head.ledgers == {genesis: {"seq": account.seq, "entry": account.hash}}


@pytest.mark.parametrize("point", dying.POINTS)
def test_killed_at_every_state(own: Anchoring, point: str) -> None:
    """The fault between "sent" and "stored" is `behind send`."""
    assert die(own, point) == -signal.SIGKILL
    assert work.run(own.store).returncode == 0
    check(own, own.layer.built.records()[-1], 1)


@pytest.mark.parametrize("point", ["behind PREPARED", "behind send", "before VERIFIED"])
def test_killed_and_another_savepoint_before_the_next_worker(own: Anchoring, point: str) -> None:
    assert die(own, point) == -signal.SIGKILL
    newest = own.save()
    assert work.run(own.store).returncode == 0
    check(own, newest, 2)


def test_killed_again_and_again(own: Anchoring) -> None:
    for point in ("behind PREPARED", "before send", "behind send", "before head", "behind head"):
        assert die(own, point) == -signal.SIGKILL
    assert work.run(own.store).returncode == 0
    check(own, own.layer.built.records()[-1], 1)


def test_killed_at_any_moment(own: Anchoring) -> None:
    """Wherever it is: entries are numbered without a gap, none names a savepoint twice."""
    chance = random.Random(5)
    for _ in range(4):
        own.save()
        running = work.start(own.store)
        time.sleep(chance.uniform(0.1, 1.0))
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(work.SECONDS)
    newest = own.save()
    assert work.run(own.store).returncode == 0
    check(own, newest, account_of(own).seq)
