"""Anchoring from the command line: what it shows, and what the owner chooses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service import queue
from savepoint.cli import precompact
from savepoint.cli.ledger import config as ledger_config
from savepoint.cli.shapes.store import Status
from savepoint.core import errors, spelling
from savepoint.store import config, durable, savepoints
from savepoint.store.keys import keyring
from tests.work import scene as work

if TYPE_CHECKING:
    from tests.cli.scene import Scene

_PROGRAM = "EYGXmrH71MqjV4KpxovBYBQzPkAK5hVG93bPJKneqXCf"


def test_a_new_store_anchors_on_its_embedded_ledger(cli: Scene) -> None:
    made = cli.created()
    assert (made["layer_3_status"], made["layer_3_task_id"]) == (
        "QUEUED_FOR_BLOCKCHAIN",
        "anchor-2",
    )
    told = cli.good("status", "--json").json
    Status.model_validate(told)
    assert told["ledger"] == "embedded"
    assert told["cost"] == {"spent": 0, "next": None, "cap": None}
    (job,) = told["jobs"]
    assert (job["seq"], job["kind"], job["state"]) == (2, "anchor", "QUEUED")
    done = cli.good("sync", "--json").json
    assert {"kind": "anchor", "key": cli.paths.slug, "seq": 2} in done["done"]
    told = cli.good("status", "--json").json
    assert (told["jobs"], told["cost"]["next"]) == ([], 10_000)
    assert told["cost"]["spent"] > 10_000
    (listed,) = cli.good("list", "--json").json["savepoints"]
    assert listed["layer_3_status"] == "BLOCKCHAIN_VERIFIED"
    shown = cli.good("show", "--json").json["savepoint"]
    assert shown["layer_3_status"] == "BLOCKCHAIN_VERIFIED"
    assert "BLOCKCHAIN_VERIFIED" in cli.good("list").text
    assert "layer 3 BLOCKCHAIN_VERIFIED" in cli.good("show").text


def test_what_a_person_reads(cli: Scene) -> None:
    ran = cli.good("create")
    assert "Layer 3: QUEUED_FOR_BLOCKCHAIN (embedded)" in ran.text
    assert "Background task ID: anchor-2" in ran.text
    assert "no independent witness" in cli.good("status").text
    assert "QUEUED up to 2, for" in cli.good("status").text
    assert f"anchored up to savepoint 2 of {cli.paths.slug} on embedded" in cli.good("sync").text
    text = cli.good("status").text
    assert "embedded: all anchored, but no independent witness" in text
    assert "lamports" not in text  # what it takes there is no money


def test_the_status_log_has_where_it_is(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    lines = Path(cli.paths.status_log).read_text(encoding="utf-8").splitlines()
    told = json.loads(lines[-1])
    row = queue.rows(cli.paths.store, cli.paths.slug)[-1]
    assert (told["seq"], told["event"], told["ledger"]) == (2, "BLOCKCHAIN_VERIFIED", "embedded")
    assert (told["account"], told["slot"]) == (row.account, row.slot)
    assert (told["signature"], told["commitment"]) == (
        spelling.base58(row.signature),
        "finalized",
    )


def test_a_covered_savepoint_is_verified(cli: Scene) -> None:
    cli.created()
    cli.created()
    cli.good("sync")
    states = [one["layer_3_status"] for one in cli.good("list", "--json").json["savepoints"]]
    assert states == ["BLOCKCHAIN_VERIFIED"] * 2
    assert len(queue.rows(cli.paths.store, cli.paths.slug)) == 1


@pytest.mark.parametrize(("ledger", "code"), [(None, 0), ("embedded", 1)])
def test_precompact_is_partial_while_anchoring_is_pending(
    cli: Scene, capsysbinary: pytest.CaptureFixture[bytes], ledger: str | None, code: int
) -> None:
    config.load(cli.paths.store)._replace(ledger=ledger).save(cli.paths.store)
    assert precompact.run(["-C", str(cli.project)]) == code
    word = "DISABLED" if ledger is None else "QUEUED_FOR_BLOCKCHAIN"
    assert f"Layer 3: {word}" in capsysbinary.readouterr().out.decode()


def test_without_a_ledger_nothing_is_anchored(cli: Scene) -> None:
    cli.good("config", "ledger", "--unset")
    made = cli.created()
    assert (made["layer_3_status"], made["layer_3_task_id"]) == ("DISABLED", None)
    cli.good("sync")
    told = cli.good("status", "--json").json
    assert (told["ledger"], told["cost"], told["jobs"]) == (None, None, [])
    assert not Path(cli.paths.store.ledger_db).exists()
    assert cli("ledger", "status").code == 2
    assert "ledger: off" in cli("doctor").text


def test_a_ledger_that_is_silent_leaves_it_queued(cli: Scene) -> None:
    cli.good("config", "program", _PROGRAM)
    cli.good("config", "ledger", "http://127.0.0.1:1")
    cli.good("config", "program", _PROGRAM)
    cli.created()
    ran = cli("sync")
    assert ran.code == 31
    (job,) = cli.good("status", "--json").json["jobs"]
    assert (job["kind"], job["state"]) == ("anchor", "QUEUED")
    assert "127.0.0.1" in job["error"]
    assert job["hint"]
    (listed,) = cli.good("list", "--json").json["savepoints"]
    assert listed["layer_3_status"] == "QUEUED_FOR_BLOCKCHAIN"
    events = Path(cli.paths.status_log).read_text(encoding="utf-8")
    assert '"event":"QUEUED_FOR_BLOCKCHAIN"' in events


def test_a_cluster_without_a_known_program_says_what_to_do(cli: Scene) -> None:
    cli.good("config", "ledger", "localnet")
    cli.created()
    ran = cli("sync")
    assert ran.code == 31
    assert "savepoint ledger deploy" in ran.err
    (job,) = cli.good("status", "--json").json["jobs"]
    assert job["state"] == "QUEUED"
    (listed,) = cli.good("list", "--json").json["savepoints"]
    assert listed["layer_3_status"] == "BLOCKCHAIN_FAILED"


def test_another_ledger_is_tried_at_once(cli: Scene) -> None:
    """What the old one refused is not the new one's: no pause of an hour."""
    cli.good("config", "ledger", "localnet")
    cli.created()
    cli("sync")
    cli.good("config", "ledger", "embedded")
    assert work.run(cli.paths.store).returncode == 0
    (listed,) = cli.good("list", "--json").json["savepoints"]
    assert listed["layer_3_status"] == "BLOCKCHAIN_VERIFIED"


def test_a_ledger_that_began_anew_is_found_by_sync(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    for ending in ("", "-wal", "-shm"):
        durable.remove(cli.paths.store.ledger_db + ending)
    assert cli.good("sync", "--json").json["done"] == [
        {"kind": "anchor", "key": cli.paths.slug, "seq": 2}
    ]
    states = [one.state for one in queue.rows(cli.paths.store, cli.paths.slug)]
    assert states == ["ORPHANED_BY_RESET", "VERIFIED"]
    assert cli.good("sync", "--json").json["done"] == []


def test_config_of_the_ledger(cli: Scene, tmp_path: Path) -> None:
    told = cli.good("config", "ledger", "devnet").err
    assert "`savepoint ledger deploy` puts the program there" in told
    assert "`savepoint config program ID`" in told
    cli.good("config", "program", _PROGRAM)
    cli.good("config", "spend", "50000")
    wallet = tmp_path / "id.json"
    wallet.write_bytes(keyring.keypair(bytes(31) + b"\1"))
    wallet.chmod(0o600)
    cli.good("config", "payer", str(wallet))
    told = cli.good("config", "--json").json
    assert {key: told[key] for key in ledger_config.KEYS} == {
        "ledger": "devnet",
        "program": _PROGRAM,
        "payer": str(wallet),
        "spend": 50000,
    }
    for key in ("program", "payer", "spend", "ledger"):
        assert cli.good("config", key, "--unset", "--json").json == {key: None}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ledger", "mainnet"), 2),
        (("ledger", "ftp://example.org"), 2),
        (("ledger", "http://example.org"), 2),
        (("ledger", "mainnet-beta"), 2),  # there is no cap yet
        (("program", "abc"), 2),
        (("spend", "-1"), 2),
        (("spend", "1.5"), 2),
        (("payer", "/nowhere/id.json"), 12),
    ],
)
def test_what_cannot_be_chosen(cli: Scene, arguments: tuple[str, ...], code: int) -> None:
    before = Path(cli.paths.store.config).read_bytes()
    assert cli("config", *arguments).code == code
    assert Path(cli.paths.store.config).read_bytes() == before


def test_a_further_endpoint_of_a_ledger_leaves_its_program(cli: Scene) -> None:
    """It was forgotten, and who followed the hint to deploy would have paid a second time."""
    one, two = "http://127.0.0.1:1", "http://127.0.0.1:2"
    cli.good("config", "ledger", one)
    cli.good("config", "program", _PROGRAM)
    assert cli.good("config", "ledger", f"{one} {two}").err.count("nothing is anchored yet") == 0
    cli.good("config", "ledger", two)
    assert cli.good("config", "program", "--json").json == {"program": _PROGRAM}
    assert "nothing is anchored yet" in cli.good("config", "ledger", one).err


def test_what_was_mistyped_is_not_told_as_lost(cli: Scene) -> None:
    told = cli("config", "payer", "/nowhere/id.json").err
    assert "name a Solana keypair file that is there" in told
    assert "backup" not in told
    assert "`savepoint config threshold 85`" in cli("config", "threshold", "--unset").err


def test_a_payer_that_others_can_read_is_refused(cli: Scene, tmp_path: Path) -> None:
    wallet = tmp_path / "id.json"
    wallet.write_bytes(keyring.keypair(bytes(31) + b"\1"))
    wallet.chmod(0o644)
    ran = cli("config", "payer", str(wallet))
    assert ran.code == 12
    assert "chmod 600" in ran.err


def test_no_token_of_a_url_is_shown(cli: Scene) -> None:
    url = "https://user:hunter2@127.0.0.1:1/v2/sesame?api-key=xyzzy"
    cli.good("config", "ledger", url)
    cli.created()
    for command in (["config"], ["status"], ["status", "--json"], ["list"], ["create"], ["sync"]):
        ran = cli(*command)
        for secret in ("hunter2", "sesame", "xyzzy"):
            assert secret not in ran.text + ran.err


def test_the_mainnet_is_agreed_to_once(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost is shown before; without a terminal the owner says --yes."""
    genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"

    class Mainnet:
        name = "mainnet-beta"

        def genesis(self) -> bytes:
            return spelling.key_bytes(genesis)

        def rent(self, size: int) -> int:
            return 5080 * (128 + size)

    monkeypatch.setattr("anchor_service.ledgers.open_ledger", lambda *_, **__: Mainnet())
    cli.good("config", "spend", "9000000")
    ran = cli("config", "ledger", "mainnet-beta")
    assert ran.code == 2
    assert f"{5080 * (128 + 465) + 10000} lamports" in ran.err
    assert "9000000" in ran.err
    cli.good("config", "ledger", "mainnet-beta", "--yes")
    assert config.load(cli.paths.store).confirmed == genesis
    cli.good("config", "ledger", "devnet")
    assert "lamports" not in cli.good("config", "ledger", "mainnet-beta").err
    assert cli("config", "spend", "--unset").code == 2


def test_a_url_to_the_mainnet_is_agreed_to_as_well(
    cli: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mainnet:
        name = "https://127.0.0.1:1"

        def genesis(self) -> bytes:
            return spelling.key_bytes("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d")

        def rent(self, _size: int) -> int:
            raise errors.LedgerUnreachableError("no answer")

    monkeypatch.setattr("anchor_service.ledgers.open_ledger", lambda *_, **__: Mainnet())
    cli.good("config", "spend", "9000000")
    ran = cli("config", "ledger", "https://127.0.0.1:1")
    assert ran.code == 2
    assert "cannot be asked now" in ran.err


def test_ledger_status_and_balance(cli: Scene) -> None:
    told = cli.good("ledger", "status", "--json").json
    assert (told["ledger"], told["public"], told["entry"]) == ("embedded", False, None)
    first = told["next_entry"]
    cli.created()
    cli.good("sync")
    told = cli.good("ledger", "status", "--json").json
    assert told["program"] == {
        "id": _PROGRAM,
        "shipped": True,
        "upgrade_authority": None,
        "problem": None,
    }
    assert (told["entry"]["seq"], told["entry"]["kind"], told["entry"]["record"]) == (
        1,
        "SAVEPOINT",
        2,
    )
    assert told["next_entry"] == 10_000 < first
    balance = cli.good("ledger", "balance", "--json").json
    assert balance["payer_file"] == cli.home.payer
    assert (os.stat(cli.home.payer).st_mode & 0o777) == 0o600
    ran = cli.good("ledger", "airdrop", "5000", "--json").json
    assert (ran["asked"], ran["payer"]) == (5000, balance["payer"])
    assert cli("ledger", "deploy").code == 2
    assert "SAVEPOINT" in cli.good("ledger", "status").text


def test_doctor_looks_at_the_ledger(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    found = {one["name"]: one for one in cli("doctor", "--json").json["checks"]}
    assert [found[name]["result"] for name in ("ledger", "program", "payer", "anchor")] == [
        "ok"
    ] * 4
    os.chmod(cli.home.payer, 0o644)
    found = {one["name"]: one for one in cli("doctor", "--json").json["checks"]}
    assert "0644" in found["ledger"]["detail"]


def test_a_conflict_stays_in_status_and_doctor(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    cli.created()
    row = queue.rows(cli.paths.store, cli.paths.slug)[-1]
    newest = savepoints.records(cli.paths).saves[-1]
    with queue.Queue(cli.paths.store) as box:
        box.put(
            row._replace(
                state=queue.CONFLICT,
                record=newest.hash,
                record_seq=newest.seq,
                error="entry 9 is not ours",
            )
        )
    (job,) = cli.good("status", "--json").json["jobs"]
    assert (job["kind"], job["state"]) == ("anchor", "CONFLICT")
    listed = cli.good("list", "--json").json["savepoints"]
    assert [one["layer_3_status"] for one in listed] == [
        "BLOCKCHAIN_VERIFIED",
        "BLOCKCHAIN_FAILED",
    ]
    ran = cli("doctor", "--json")
    found = [one for one in ran.json["checks"] if one["name"] == "anchor"]
    assert (found[0]["result"], found[0]["detail"]) == ("fail", "entry 9 is not ours")
    assert "keys retire" in found[0]["todo"]
    assert ran.code == 1


def test_the_worker_imports_no_ledger_before_a_job_is_due(cli: Scene) -> None:
    """It starts with every save, and half a second of imports is not for nothing."""
    program = (
        "import savepoint.cli.worker.process, sys; from savepoint.cli.ledger import anchoring; "
        "from savepoint.store.layout import Home; from tests.work.scene import around; "
        f"store = Home({cli.paths.store.home!r}).store({cli.paths.store.id!r}); "
        "[kind.owed(store, around()) for kind in anchoring.all_kinds()]; "
        "print([one for one in sys.modules if one.partition('.')[0] in ('solders', 'solana')])"
    )
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=env, check=True, capture_output=True, timeout=180
    )
    assert ran.stdout == b"[]\n"
