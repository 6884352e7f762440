"""A key is retired from the command line: its last entry, and the number that goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service import queue
from savepoint.core import errors
from savepoint.core.verdicts import Verdict
from savepoint.store import config, savepoints, trusted
from savepoint.store import index as records
from savepoint.store.keys import keyring
from savepoint.store.session import pending
from savepoint.store.witness.witness import verify_local

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Scene


def current(cli: Scene) -> InstancePaths:
    store = cli.paths.store if len(_slugs(cli)) == 1 else _store(cli)
    return store.instance(config.load(store).instance)


def _store(cli: Scene):  # type: ignore[no-untyped-def]  # noqa: ANN202  # as `paths.store`
    return cli.home.store(os.listdir(cli.home.stores)[0])


def _slugs(cli: Scene) -> list[str]:
    return os.listdir(Path(_store(cli).path, "instances"))


def test_a_key_is_retired(cli: Scene) -> None:
    cli.created()
    cli.good("sync")
    old = cli.paths
    old_root = keyring.root_seed(old.store)
    told = cli.good("keys", "retire", "--json").json
    assert (told["instance"], told["retired"]["seq"]) == ("Gabriel #216", 3)
    assert Path(told["root"]).read_bytes() == old_root != keyring.root_seed(old.store)
    assert os.path.basename(told["root"]) == "root.1.seed"
    assert records.is_retired(old)
    cli.good("sync", "--wait")
    row = queue.rows(old.store, old.slug)[-1]
    assert (row.kind, row.record_seq, row.state) == (3, 3, "VERIFIED")
    status = cli.good("ledger", "status", "--instance", old.slug, "--json").json
    assert (status["entry"]["kind"], status["entry"]["retired"]) == ("RETIRE", True)
    assert cli.good("verify", "--instance", old.slug, "--json").json["verdict"] == "VERIFIED"


def test_a_session_goes_on_under_the_next_number(cli: Scene) -> None:
    first = cli.created()
    cli.good("sync")
    cli.good("keys", "retire")
    cli.say("more")
    made = cli.created()
    assert (made["instance"], made["seq"], made["session_id"]) == (
        "Gabriel #216",
        2,
        first["session_id"],
    )
    assert made["from"]["signer"] == first["signer"]
    cli.good("sync", "--wait")
    assert cli.good("verify", "--json").json["verdict"] == "VERIFIED"
    again = cli.good("show", "--only", "conversation").out
    assert again == cli.transcript.read_bytes()
    cli.good("fsck")


def test_a_retired_key_needs_a_new_backup(cli: Scene, tmp_path: Path) -> None:
    word = tmp_path / "word"
    word.write_text("a long passphrase\n")
    word.chmod(0o600)
    cli.good("keys", "backup", "-o", str(tmp_path / "1.age"), "--passphrase-file", str(word))
    assert cli.good("status", "--json").json["keys_backed_up"]
    cli.good("keys", "retire")
    assert not cli.good("status", "--json").json["keys_backed_up"]
    made = cli.good(
        *("keys", "backup", "-o", str(tmp_path / "2.age"), "--passphrase-file", str(word)),
        "--json",
    ).json
    assert (len(made["instances"]), made["left_out"]) == (2, [])


def test_a_key_is_retired_twice(cli: Scene) -> None:
    cli.created()
    for number in (216, 217):
        assert cli.good("keys", "retire", "--json").json["instance"] == f"Gabriel #{number}"
    names = sorted(keyring.root_seeds(current(cli).store))
    assert names == ["root.1.seed", "root.2.seed", "root.seed"]
    cli.good("fsck")


@pytest.mark.parametrize("step", ["replace", "append", "give_birth"])
def test_a_retirement_that_died_is_finished_by_the_next(
    cli: Scene, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.created()
    old = cli.paths
    places = {
        "replace": "savepoint.store.durable.replace",
        "append": "savepoint.store.keys.retirement.index.append",
        "give_birth": "savepoint.store.keys.retirement.birth.give_birth",
    }

    def die(*_: object, **__: object) -> None:
        raise errors.DiskError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(places[step], die)
        assert cli("keys", "retire").code == 40
    told = cli.good("keys", "retire", "--json").json
    assert told["instance"] == "Gabriel #216"
    assert os.path.basename(told["root"]) == "root.1.seed"
    assert sorted(keyring.root_seeds(old.store)) == ["root.1.seed", "root.seed"]
    assert records.is_retired(old)
    lines = Path(old.index_file).read_bytes().splitlines()
    assert sum(b'"kind":"retire"' in line for line in lines) == 1
    os.unlink(old.authority)
    cli.good("fsck", "--repair")  # derives the old key from the root that gave it
    assert keyring.authority(old)


def test_a_draft_of_a_retired_key_is_signed_by_the_next(cli: Scene) -> None:
    """The retired key signed it, behind its last record, and kept RETIRE from the ledger."""
    first = cli.created()
    cli.good("sync")
    old = cli.paths
    os.chmod(old.authority, 0o644)
    cli.say("while no key could sign")
    assert cli("create").code == 12
    os.chmod(old.authority, 0o600)
    cli.good("keys", "retire")
    cli.say("later")
    made = cli.created()
    assert (made["instance"], made["seq"]) == ("Gabriel #216", 3)
    signed, _ = savepoints.records(current(cli)).saves
    origin = signed.body["from"]
    assert isinstance(origin, dict)
    assert origin["signer"] == first["signer"]
    written = json.loads(Path(current(cli).path, signed.snapshot_file).read_bytes())
    assert written["instance_id"] == written["session_state"]["identity"] == "Gabriel #216"
    assert records.is_retired(old)
    cli.good("sync", "--wait")
    assert queue.rows(old.store, old.slug)[-1].kind == 3
    for slug in (old.slug, current(cli).slug):
        told = cli.good("verify", "--all", "--instance", slug, "--json").json
        assert told["verdict"] == "VERIFIED"
    cli.good("fsck")


def test_a_draft_that_was_signed_and_left_is_not_signed_again(
    cli: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.created()
    os.chmod(cli.paths.authority, 0o644)
    cli.say("while no key could sign")
    assert cli("create").code == 12
    os.chmod(cli.paths.authority, 0o600)

    def die(_: str) -> None:
        raise errors.DiskError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("savepoint.store.durable.remove", die)
        assert cli("create").code == 40
    assert len(pending.every_draft(cli.paths.store)) == 1
    cli.say("later")
    assert cli.created()["seq"] == 4
    assert pending.every_draft(cli.paths.store) == []


def test_a_retired_instance_without_a_head_is_accepted_by_no_record(cli: Scene) -> None:
    cli.created()
    old = cli.paths
    os.unlink(old.trusted)
    cli.good("keys", "retire")
    lines = Path(old.index_file).read_bytes()
    cli.good("fsck", "--repair")
    assert Path(old.index_file).read_bytes() == lines
    assert verify_local(old).verdict is Verdict.VERIFIED


def test_nothing_is_appended_to_a_retired_index(cli: Scene) -> None:
    cli.created()
    old = cli.paths
    cli.good("keys", "retire")
    config.load(old.store)._replace(instance=old.slug).save(old.store)  # as where it died
    cli.say("more")
    refused = cli("create")
    assert (refused.code, "is retired by its record 3" in refused.err) == (12, True)
    assert records.is_retired(old)
    assert len(pending.every_draft(old.store)) == 1


def test_a_key_that_is_retired_before_its_first_savepoint(cli: Scene) -> None:
    old = cli.paths
    cli.good("keys", "retire")
    ran = cli("sync", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    row = queue.rows(old.store, old.slug)[-1]
    assert (row.kind, row.state) == (3, "VERIFIED")


def test_a_foreign_entry_is_no_reason_not_to_retire(cli: Scene) -> None:
    """That is what the key is retired for."""
    cli.created()
    cli.good("sync")
    head = trusted.load(cli.paths)
    assert head is not None
    row = queue.rows(cli.paths.store, cli.paths.slug)[-1]
    with queue.Queue(cli.paths.store) as box:
        box.put(row._replace(state=queue.CONFLICT, record="0" * 64, record_seq=3))
    old = cli.paths
    cli.good("keys", "retire")
    cli.good("sync", "--wait")
    assert queue.rows(old.store, old.slug)[-1].state == "VERIFIED"
