"""The chain witness on the command line, on the embedded ledger: verdicts, and the way out."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service import witness
from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger
from savepoint.core import spelling
from savepoint.store import config, trusted
from tests.cli.witnesses import chain_of
from tests.fault.scene import settle
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.ledger import Ledger
    from savepoint.core.verify_chain import Answer, Seen, Who
    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Ran, Scene

pytestmark = pytest.mark.usefixtures("no_worker")


def _failed(ran: Ran) -> dict[str, str]:
    """Rule → detail of what does not pass."""
    found = chain_of(ran)["findings"]
    return {one["rule"]: one["detail"] for one in found if one["result"] != "pass"}


def _change(paths: InstancePaths, change: Callable[[bytearray], None]) -> None:
    """The instance's account in ledger.db."""
    with closing(sqlite3.connect(paths.store.ledger_db)) as db, db:
        asked = "SELECT address, data FROM accounts WHERE length(data) = 465"
        address, data = db.execute(asked).fetchone()
        changed = bytearray(data)
        change(changed)
        db.execute("UPDATE accounts SET data = ? WHERE address = ?", (bytes(changed), address))


def _flip(at: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[at] ^= 1

    return change


def test_anchored_is_verified_and_says_that_it_is_not_independent(anchored: Scene) -> None:
    ran = anchored.good("verify", "--json")
    chain = chain_of(ran)
    assert chain["verdict"] == "VERIFIED"
    assert (chain["ledger"], chain["independent"], chain["covered_by"]) == ("embedded", False, None)
    assert chain["github_commit"] == ran.json["savepoints"][0]["witnesses"]["git"]["commit"]
    assert len(bytes.fromhex(chain["account_data"])) == 465
    assert chain["upgrade_authority"] is None
    text = anchored.good("verify").text
    assert "chain VERIFIED" in text
    assert "chain is consistent, not independent: embedded is no known public cluster" in text


def test_an_older_savepoint_is_covered_and_a_newer_one_pending(anchored: Scene) -> None:
    anchored.say("three")
    anchored.created()
    ran = anchored("verify", "--all", "--json")
    assert (ran.code, ran.json["verdict"]) == (3, "PENDING")
    told = [chain_of(ran, at) for at in range(3)]
    assert [one["verdict"] for one in told] == ["VERIFIED", "VERIFIED", "PENDING"]
    assert [one["covered_by"] for one in told] == [3, None, None]
    assert told[0]["github_commit"] == told[1]["github_commit"]
    anchored.good("sync")
    assert anchored.good("verify", "--all").code == 0


def test_nothing_anchored_yet_is_pending_with_a_way_out(cli: Scene) -> None:
    cli.created()
    cli.good("config", "ledger", "embedded")
    ran = cli("verify")
    assert ran.code == 3
    assert "savepoint sync" in ran.err
    assert not Path(cli.paths.store.ledger_db).exists()  # to look makes none
    cli.good("sync")
    cli.good("verify")


def test_without_a_ledger_the_chain_is_off(cli: Scene) -> None:
    cli.created()
    assert chain_of(cli.good("verify", "--json")) == {
        "verdict": "OFF",
        "findings": [],
        "reason": "not configured",
        "ledger": None,
        "independent": False,
        "covered_by": None,
        "account": None,
        "account_data": None,
        "github_commit": None,
        "upgrade_authority": None,
    }


@pytest.mark.parametrize("at", [1, 20, 40, 60, 80, 120, 180, 230, 464])
def test_a_flipped_byte_of_the_account_is_20(anchored: Scene, at: int) -> None:
    _change(anchored.paths, _flip(at))
    ran = anchored("verify", "--json")
    assert (ran.code, chain_of(ran)["verdict"]) == (20, "TAMPERED")
    fsck = anchored("fsck")
    assert fsck.code == 20
    assert "account" in fsck.text


def test_an_account_that_went_back_or_away_is_22(anchored: Scene) -> None:
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db:
        old = db.execute("SELECT * FROM accounts").fetchall()
    anchored.say("three")
    anchored.created()
    anchored.good("sync")
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db, db:
        db.executemany("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?)", old)
    ran = anchored("verify", "--json")
    assert ran.code == 22
    assert "entry 1; 2 was seen" in _failed(ran)["VERIFY-20"]
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db, db:
        db.execute("DELETE FROM accounts")
    ran = anchored("verify", "--json")
    assert ran.code == 22
    assert "is gone" in _failed(ran)["VERIFY-18"]


def test_an_index_that_lacks_what_was_anchored_is_22(anchored: Scene) -> None:
    """Store and trusted head are put back, the ledger is not."""
    index = Path(anchored.paths.index_file)
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[:-1]))
    ran = anchored("verify", "--json")
    assert ran.code == 22
    assert "the index ends at 2" in _failed(ran)["VERIFY-22"]


def test_a_ledger_that_began_anew_is_told_and_anchored_again(anchored: Scene) -> None:
    for path in Path(anchored.paths.store.path).glob("ledger.db*"):
        path.unlink()
    ran = anchored("verify", "--json")
    assert ran.code == 3
    assert "ledger.db is gone" in _failed(ran)["VERIFY-18"]
    anchored.good("sync")
    anchored.good("verify", "--all")


def test_an_embedded_ledger_of_another_machine_does_not_count(anchored: Scene) -> None:
    """The keys and the heads were brought here, and neither ledger.db nor the rows of anchoring."""
    store = Path(anchored.paths.store.path)
    for path in (*store.glob("ledger.db*"), *store.glob("outbox.db*")):
        path.unlink()
    ran = anchored.good("verify", "--json")
    assert chain_of(ran)["verdict"] == "OFF"
    assert "stays on its machine" in chain_of(ran)["reason"]


def test_an_embedded_ledger_put_back_from_a_copy_is_told_and_not_waited_for(
    anchored: Scene,
) -> None:
    """It was taken for an endpoint that lags: sync --wait without --timeout never came back."""
    db = Path(anchored.paths.store.ledger_db)
    before = db.read_bytes()
    anchored.say("three")
    anchored.created()
    anchored.good("sync")
    db.write_bytes(before)
    anchored.say("four")
    anchored.created()
    for command in (("sync", "--wait"), ("verify",)):
        ran = anchored(*command)
        assert ran.code == 22
        assert "can be moved away" in ran.err
    db.unlink()
    anchored.good("sync", "--wait")
    anchored.good("verify", "--all")


def test_offline_names_what_was_skipped_and_the_last_contact(anchored: Scene) -> None:
    """sigstore-python#1175: an offline check with old trust looks fine."""
    paths = anchored.paths
    chosen = config.load(paths.store)._replace(ledger="devnet", program=spelling.base58(PROGRAM))
    chosen.save(paths.store)
    ran = anchored("verify", "--offline", "--json")
    assert ran.code == 21
    chain = chain_of(ran)
    assert chain["independent"] is False
    assert [one["rule"] for one in chain["findings"]] == [f"VERIFY-{n}" for n in range(17, 29)]
    assert {one["result"] for one in chain["findings"]} == {"skipped"}
    assert "devnet was not asked: it was never seen" in chain["findings"][0]["detail"]
    told = anchored("verify", "--offline")
    assert "VERIFY-17 to VERIFY-28 skipped: devnet was not asked" in told.text
    embedded = anchored("verify", "--offline", "--ledger", "embedded", "--json")
    assert chain_of(embedded)["verdict"] == "VERIFIED"  # it needs no network


def test_a_ledger_that_does_not_answer_is_21(anchored: Scene) -> None:
    nobody = ("--ledger", "http://127.0.0.1:9", "--program", spelling.base58(PROGRAM))
    ran = anchored("verify", *nobody, "--json")
    assert (ran.code, chain_of(ran)["verdict"]) == (21, "UNVERIFIABLE")
    assert anchored("verify", "--ledger", "http://127.0.0.1:9").code == 21  # which program?


def test_the_account_that_a_verifier_names(anchored: Scene) -> None:
    account = chain_of(anchored.good("verify", "--json"))["account"]
    anchored.good("verify", "--account", account)
    assert anchored("verify", "--account", spelling.base58(PROGRAM)).code == 20
    assert anchored("verify", "--account", "0OIl").code == 2
    assert anchored("verify", "--program", "x").code == 2


def test_a_lost_trusted_head_is_not_made_good_by_a_ledger_beside_it(anchored: Scene) -> None:
    """The embedded ledger would be put back with the store."""
    Path(anchored.paths.trusted).unlink()
    assert anchored("verify").code == 21


def test_the_number_of_questions_does_not_grow(
    anchored: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counting(name: str) -> Callable[..., object]:
        real = getattr(EmbeddedLedger, name)

        def counted(*args: object, **more: object) -> object:
            asked.append(name)
            return real(*args, **more)

        return counted

    for name in ("genesis", "account", "accounts", "landing", "blockhash", "balance"):
        monkeypatch.setattr(EmbeddedLedger, name, counting(name))
    for number in range(3):
        anchored.say(f"more {number}")
        anchored.created()
    anchored("verify", "--all")
    assert asked == ["genesis", "accounts"]


def test_a_backup_of_the_store_keeps_what_was_seen(anchored: Scene) -> None:
    """The trusted head lies outside the store: the ledger cannot be put back with it unseen."""
    store = Path(anchored.paths.store.path)
    shutil.copytree(store, store.with_name("copy"))
    anchored.say("three")
    anchored.created()
    anchored.good("sync")
    head = trusted.load(anchored.paths)
    assert head is not None
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(store)
    store.with_name("copy").rename(store)
    ran = anchored("verify", "--json")
    assert ran.code == 22
    assert "VERIFY-20" in _failed(ran)


def test_who_asks_no_ledger_loads_no_library_of_solana(cli: Scene) -> None:
    cli.created()
    code = (
        "import sys; from savepoint.cli import main; code = main.run(['verify']); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'solders', 'solana'}))"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(PROJECT)!r}); {code}"]
    done = subprocess.run(command, cwd=cli.project, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_is_anchored_while_it_is_asked_is_no_rollback(
    anchored: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry was ahead of an index that had been read before: ROLLED_BACK, `fsck --repair`."""
    ask = witness.ask

    def late(ledger: Ledger, who: Who, genesis: bytes, seen: Seen) -> Answer:
        monkeypatch.setattr(witness, "ask", ask)
        anchored.say("meanwhile")
        anchored.created()
        anchored.good("sync")
        return ask(ledger, who, genesis, seen)

    monkeypatch.setattr(witness, "ask", late)
    anchored.good("verify")
