"""The embedded ledger keeps what it acknowledged: over processes, kills, and two at a time."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers import open_ledger
from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger
from anchor_service.transaction import signed
from savepoint.core import accounts, limits
from savepoint.core.entry import NO_ENTRY
from savepoint.core.errors import (
    DiskError,
    LedgerRefusedError,
    LedgerUnreachableError,
    RejectedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.store.layout import Home
from tests.conftest import PROJECT
from tests.ledger.entries import SOL, Author, land, read, send

if TYPE_CHECKING:
    from pathlib import Path

_WRITER = """
import sys
from anchor_service.ledgers.embedded import EmbeddedLedger
from tests.ledger.entries import Author, read, send
ledger = EmbeddedLedger(sys.argv[1])
author = Author(bytes.fromhex(sys.argv[2]))
account = read(ledger, author)
while True:
    if account is None:
        send(ledger, author)
    else:
        send(ledger, author, account.seq + 1, account.hash)
    account = read(ledger, author)
    print(account.seq, account.hash, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


def test_another_process_finds_it_as_it_was(path: str) -> None:
    author = Author()
    first = EmbeddedLedger(path)
    sent = land(first, author)
    second = EmbeddedLedger(path)
    assert second.genesis() == first.genesis()
    assert read(second, author) == read(first, author)
    assert second.landing(sent.signature, history=False) is not None
    assert second.height() == first.height()
    with pytest.raises(RejectedError, match="AlreadyProcessed"):
        second.send(sent.transaction, second.blockhash())


def test_each_file_is_another_cluster(tmp_path: Path) -> None:
    one, two = (EmbeddedLedger(str(tmp_path / name)) for name in ("a", "b"))
    assert one.genesis() != two.genesis()
    author = Author()
    land(one, author)
    blockhash = one.blockhash()
    made, _ = signed(
        [author.instruction(one.genesis(), 1, NO_ENTRY)],
        author.wallet,
        [],
        blockhash.hash,
        units=25_000,
    )
    with pytest.raises(RejectedError, match="BlockhashNotFound"):
        two.send(made, blockhash)


@pytest.mark.timeout(180)
def test_a_kill_leaves_every_acknowledged_entry(path: str) -> None:
    author = Author()
    known = (0, "")
    for round_ in range(4):
        known = max(known, _write_until_killed(path, author, 0.05 + 0.11 * round_))
        account = read(EmbeddedLedger(path), author)
        assert account is not None
        assert account.seq - known[0] in (0, 1), "the last one may not have been told any more"
        assert account.seq > known[0] or account.hash == known[1]
        known = (account.seq, account.hash)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM transactions").fetchone() == (known[0],)
    db.close()


def _write_until_killed(path: str, author: Author, seconds: float) -> tuple[int, str]:
    """(sequence, hash) of the last entry that it acknowledged before it was killed."""
    command = [sys.executable, "-c", _WRITER, path, author.seed.hex()]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]  # it is at work
        assert lines[0]
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        lines += [line for line in writer.stdout if line.endswith("\n")]
    seq, hash_ = lines[-1].split()
    return int(seq), hash_


def test_two_at_a_time_write_one_history(path: str) -> None:
    author = Author()
    land(EmbeddedLedger(path), author)
    taken: list[int] = []

    def append() -> None:
        ledger = EmbeddedLedger(path)
        while len(taken) < 12:
            account = read(ledger, author)
            assert account is not None
            try:
                send(ledger, author, account.seq + 1, account.hash)
            except RejectedError:
                continue  # the other was first
            taken.append(account.seq + 1)

    threads = [threading.Thread(target=append) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    account = read(EmbeddedLedger(path), author)
    assert account is not None
    assert sorted(taken) == list(range(2, account.seq + 1)), "no sequence twice, none left out"


def test_who_holds_it_is_waited_for_and_no_longer(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EmbeddedLedger(path)
    blockhash = ledger.blockhash()
    author = Author()
    made, _ = signed(
        [author.instruction(ledger.genesis(), 1, NO_ENTRY)],
        author.wallet,
        [],
        blockhash.hash,
        units=25_000,
    )
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnreachableError, match="another process"):
        ledger.send(made, blockhash)
    assert read(ledger, author) is None, "reading goes on meanwhile"
    holder.close()
    ledger.send(made, blockhash)


def test_what_is_refused_changes_nothing(path: str) -> None:
    ledger = EmbeddedLedger(path)
    author = Author()
    land(ledger, author)
    before = (ledger.height(), ledger.account(author.wallet.public, "confirmed"))
    with pytest.raises(RejectedError):
        send(ledger, author)
    assert (ledger.height(), ledger.account(author.wallet.public, "confirmed")) == before


def test_a_blockhash_lasts_for_150_transactions(path: str) -> None:
    ledger = EmbeddedLedger(path)
    author = Author()
    blockhash = ledger.blockhash()
    made, _ = signed(
        [author.instruction(ledger.genesis(), 1, NO_ENTRY)],
        author.wallet,
        [],
        blockhash.hash,
        units=25_000,
    )
    _put_slot(path, blockhash.last_valid_height)
    with pytest.raises(RejectedError, match="BlockhashNotFound"):
        ledger.send(made, blockhash)
    _put_slot(path, blockhash.last_valid_height - 1)
    ledger.send(made, blockhash)
    assert ledger.height() == blockhash.last_valid_height


def _put_slot(path: str, slot: int) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE cluster SET slot = ?", (slot,))
    db.close()


def test_a_clock_that_goes_back_does_not_take_the_chain_along(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EmbeddedLedger(path)
    author = Author()
    land(ledger, author)
    first = read(ledger, author)
    assert first is not None
    assert abs(first.chain_time - time.time()) < 600
    monkeypatch.setattr(time, "time", lambda: 1.0)
    land(ledger, author, 2, first.hash)
    second = read(ledger, author)
    assert second is not None
    assert second.chain_time == first.chain_time


def test_who_pays_is_given_what_is_missing(path: str) -> None:
    ledger = EmbeddedLedger(path)
    author = Author()
    assert ledger.balance(author.wallet.public) == limits.EMBEDDED_LAMPORTS
    land(ledger, author)
    ledger.airdrop(author.wallet.public, 20 * SOL)
    assert ledger.balance(author.wallet.public) > 29 * SOL
    for wrong in (0, -1, 2**63):
        with pytest.raises(LedgerRefusedError):
            ledger.airdrop(author.wallet.public, wrong)


def test_the_program_can_have_another_id(path: str) -> None:
    other = os.urandom(32)
    ledger = EmbeddedLedger(path, other)
    assert ledger.account(PROGRAM, "finalized") is None
    found = ledger.accounts([other, accounts.program_data(other)], "finalized")
    assert [one is not None and one.executable for one in found] == [True, False]


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(LedgerRefusedError, match=r"ledger\.db"):
        EmbeddedLedger(path).genesis()
    with open(path, "rb") as file:
        assert file.read() == content, "it is not replaced"


def test_a_later_version_is_refused(path: str) -> None:
    EmbeddedLedger(path).genesis()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(UnsupportedFormatError):
        EmbeddedLedger(path).genesis()


def test_no_folder_is_a_matter_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        EmbeddedLedger(str(tmp_path / "missing/ledger.db")).genesis()


def test_it_is_private_and_lies_in_the_store(tmp_path: Path) -> None:
    store = Home(str(tmp_path)).store("00" * 16)
    os.makedirs(store.path)
    old = os.umask(0)
    try:
        ledger = open_ledger("embedded", store=store, program=None)
        ledger.genesis()
    finally:
        os.umask(old)
    assert os.stat(store.ledger_db).st_mode & 0o777 == 0o600
    assert (ledger.name, ledger.is_public, ledger.endpoints) == ("embedded", False, 1)
    with pytest.raises(UsageError):
        open_ledger("embedded", store=None, program=None)
