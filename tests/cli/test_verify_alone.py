"""What others can check: a repository alone, an exported proof, a ledger that is not our own."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger
from savepoint.cli.shapes.verification import ProofVerification, Verification
from savepoint.core import limits, spelling
from savepoint.store import config, trusted
from tests.cli.witnesses import chain_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from savepoint.core.ledger import AccountState
    from tests.cli.scene import Ran, Scene

pytestmark = pytest.mark.usefixtures("no_worker")


# from a repository alone


@pytest.fixture
def pushed(anchored: Scene) -> Path:
    """A remote that has what is anchored."""
    remote = anchored.project.parent / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    anchored.good("config", "remote", str(remote))
    anchored.good("sync")
    return remote


def _alone(cli: Scene, where: Path, *more: str) -> Ran:
    return cli("verify", "--repository", str(where), "--json", *more)


def test_a_repository_alone_shows_links_signatures_and_commits(
    anchored: Scene, pushed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For a verifier who has no store; a clone as `git clone` makes it does as well."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(pushed), str(clone)], check=True, capture_output=True)
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "nobody"))
    for where in (pushed, clone):
        ran = _alone(anchored, where, "--all")
        assert (ran.code, ran.json["verdict"]) == (21, "UNVERIFIABLE")
        Verification.model_validate(ran.json)
        assert [one["seq"] for one in ran.json["savepoints"]] == [2, 3]
        for one in ran.json["savepoints"]:
            witnesses = one["witnesses"]
            assert witnesses["local"]["verdict"] == "OFF"
            rules = {f["rule"]: f["result"] for f in witnesses["git"]["findings"]}
            assert rules == {
                "VERIFY-9": "pass",
                "VERIFY-10": "pass",
                "VERIFY-11": "pass",
                "VERIFY-12": "skipped",
                "VERIFY-13": "pass",
            }
            assert witnesses["chain"]["verdict"] == "OFF"
    embedded = _alone(anchored, pushed, "--ledger", "embedded")
    assert "stays on its machine" in chain_of(embedded)["reason"]
    assert not (tmp_path / "nobody").exists()


def test_a_repository_with_a_forged_record_is_20(
    anchored: Scene, pushed: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(pushed), str(clone)], check=True, capture_output=True)

    def git(*args: str) -> str:
        command = ["git", "-C", str(clone), "-c", "user.name=e", "-c", "user.email=e@e", *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    ref = f"refs/remotes/origin/savepoints/{anchored.paths.slug}"
    git("checkout", "-q", ref)
    index = clone / "logs/precompact-savepoint.jsonl"
    index.write_bytes(index.read_bytes().replace(b'"manual"', b'"auto"', 1))
    git("commit", "-qam", git("log", "-1", "--format=%B"))
    git("update-ref", ref, "HEAD")
    assert _alone(anchored, clone).code == 20


def test_what_is_no_repository_of_savepoints_is_said(anchored: Scene, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "-q", str(empty)], check=True)
    assert "has no savepoints" in _alone(anchored, empty).json["error"]["message"]
    assert _alone(anchored, tmp_path / "none").code == 30
    assert anchored("verify", "--repository", str(empty), "--deep").code == 2


# proofs


def _exported(cli: Scene, selector: str, name: str = "proof.json") -> Path:
    path = cli.project.parent / name
    cli.good("proof", "export", selector, "-o", str(path))
    return path


def _proof(cli: Scene, path: Path, *more: str) -> Ran:
    ran = cli("proof", "verify", str(path), "--json", *more)
    if "error" not in ran.json:
        ProofVerification.model_validate(ran.json)
    return ran


def test_a_proof_holds_by_itself_and_says_what_only_the_ledger_tells(
    anchored: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = [_exported(anchored, "2", "two.json"), _exported(anchored, "3", "three.json")]
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "nobody"))
    for path, seq in zip(paths, (2, 3), strict=True):
        ran = _proof(anchored, path)
        assert (ran.code, ran.json["seq"], ran.json["anchored_by"]) == (0, seq, 3)
        assert ran.json["witnesses"]["proof"]["verdict"] == "VERIFIED"
        assert ran.json["witnesses"]["ledger"]["verdict"] == "OFF"
        assert "--online" in ran.json["witnesses"]["ledger"]["reason"]
        rules = [one["rule"] for one in ran.json["witnesses"]["proof"]["findings"]]
        numbers = (3, 18, 19, 21, 22, 23, 24, 25, 29)
        assert rules == [f"VERIFY-{number}" for number in numbers]
        assert len(ran.json["proves"]) == 3
        assert ran.json["only_online"]
        text = anchored.good("proof", "verify", str(path)).text
        assert "shown by the file alone:" in text
        assert "told by the ledger alone (--online):" in text
    ran = _proof(anchored, paths[0], "--online")
    assert (ran.code, ran.json["witnesses"]["ledger"]["verdict"]) == (21, "UNVERIFIABLE")
    assert all(
        "stays on the machine" in one["detail"]
        for one in ran.json["witnesses"]["ledger"]["findings"]
    )


def test_a_proof_is_held_against_its_ledger_online(anchored: Scene) -> None:
    path = _exported(anchored, "2")
    ran = _proof(anchored, path, "--online")
    assert (ran.code, ran.json["witnesses"]["ledger"]["verdict"]) == (0, "VERIFIED")
    last = ran.json["witnesses"]["ledger"]["findings"][-1]["detail"]
    assert re.fullmatch(r"embedded has entry 1, since 20\d\d-.*Z by its clock", last)
    for number in range(2):  # the entry is the one before, then further back
        anchored.say(f"more {number}")
        anchored.created()
        anchored.good("sync")
        assert _proof(anchored, path, "--online").code == 0
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db, db:
        db.execute("DELETE FROM transactions")
    ran = _proof(anchored, path, "--online")
    assert ran.code == 21
    assert "no longer knows" in ran.json["witnesses"]["ledger"]["findings"][-1]["detail"]
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db, db:
        db.execute("DELETE FROM accounts")
    assert _proof(anchored, path, "--online").code == 22


def test_a_proof_does_not_choose_who_answers_for_it(anchored: Scene) -> None:
    """Endpoints of its maker would answer with a public genesis, and whatever else is asked."""
    path = _exported(anchored, "2")
    evil = b'"ledger":"https://a.example https://b.example"'
    path.write_bytes(path.read_bytes().replace(b'"ledger":"embedded"', evil))
    assert _proof(anchored, path).code == 0  # the name is for people, and nobody signs it
    ran = anchored("proof", "verify", str(path), "--online")
    assert ran.code == 2
    assert "--ledger" in ran.err
    assert _proof(anchored, path, "--online", "--ledger", "embedded").code == 0


def test_a_proof_that_calls_its_ledger_embedded_is_not_verified_online_by_that(
    anchored: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody signs the name: with it changed, --online would ask nobody and still exit 0. Nor is
    the embedded ledger of another store the one that was asked for.
    """
    path = _exported(anchored, "2")
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "another"))
    anchored.anchors = True
    anchored.good("init", "--instance", "Gabriel #215")
    anchored.say("of another store")
    anchored.created()
    anchored.good("sync", "--wait")
    for more in ((), ("--ledger", "embedded")):
        ran = _proof(anchored, path, "--online", *more)
        assert (ran.code, ran.json["verdict"]) == (21, "UNVERIFIABLE")
        assert ran.json["witnesses"]["proof"]["verdict"] == "VERIFIED"


@pytest.mark.parametrize("option", ["FILE", "--snapshot"])
def test_a_folder_where_a_proof_is_named_is_wrong_use_and_no_tampering(
    anchored: Scene, tmp_path: Path, option: str
) -> None:
    named: tuple[str, ...] = (str(tmp_path),)
    if option != "FILE":
        named = (str(_exported(anchored, "2")), option, str(tmp_path))
    ran = anchored("proof", "verify", *named)
    assert ran.code == 2
    assert "is not a regular file" in ran.err
    assert "fsck" not in ran.err


def test_a_proof_and_the_snapshot_file(anchored: Scene) -> None:
    path = _exported(anchored, "2")
    index = Path(anchored.paths.index_file).read_bytes().splitlines()
    files = [Path(anchored.paths.path, json.loads(line)["snapshot_file"]) for line in index[1:]]
    ran = _proof(anchored, path, "--snapshot", str(files[0]))
    assert ran.code == 0
    rules = [one["rule"] for one in ran.json["witnesses"]["proof"]["findings"]]
    assert {"VERIFY-5", "VERIFY-6"} <= set(rules)
    assert _proof(anchored, path, "--snapshot", str(files[1])).code == 20
    assert _proof(anchored, path, "--snapshot", "nothing").code == 2


def test_an_export_in_place_of_the_snapshot_is_wrong_use_and_no_tampering(
    anchored: Scene, tmp_path: Path
) -> None:
    """Given with its proof to somebody else, the one file with everything was told TAMPERED."""
    path, whole = _exported(anchored, "2"), tmp_path / "whole.json"
    anchored.good("export", "2", "-o", str(whole))
    index = Path(anchored.paths.index_file).read_bytes().splitlines()
    name = Path(json.loads(index[1])["snapshot_file"]).name
    for given, what in ((whole, "what `savepoint export` made"), (path, "a proof")):
        ran = anchored("proof", "verify", str(path), "--snapshot", str(given))
        assert (ran.code, f"is no snapshot: it is {what}" in ran.err) == (2, True), ran.err
        assert f"the snapshot is {name}" in ran.err
    again = anchored.good("proof", "export", "2", "-o", str(tmp_path / "again.json"))
    assert f"{name}\n" in again.text


def test_a_proof_never_replaces_a_file_unasked(anchored: Scene) -> None:
    """deja-vu#725."""
    path = _exported(anchored, "2")
    data = path.read_bytes()
    anchored.good("proof", "export", "2", "-o", str(path))  # the same bytes
    path.write_bytes(b"mine\n")
    ran = anchored("proof", "export", "2", "-o", str(path))
    assert (ran.code, path.read_bytes()) == (1, b"mine\n")
    anchored.good("proof", "export", "2", "-o", str(path), "--force")
    assert path.read_bytes() == data
    path.unlink()
    path.symlink_to(path.with_name("elsewhere"))
    assert anchored("proof", "export", "2", "-o", str(path), "--force").code == 1


def test_what_is_not_anchored_has_no_proof(anchored: Scene, tmp_path: Path) -> None:
    anchored.say("three")
    anchored.created()
    ran = anchored("proof", "export", "latest", "-o", str(tmp_path / "p"))
    assert ran.code == 21
    assert "not anchored yet" in ran.err
    assert not (tmp_path / "p").exists()
    anchored.good("config", "ledger", "--unset")
    assert anchored("proof", "export", "2", "-o", str(tmp_path / "p")).code == 21


def test_a_changed_proof_is_20(anchored: Scene) -> None:
    """Every bit: tests/verify/test_proof_rules.py."""
    path = _exported(anchored, "2")
    data = path.read_bytes()
    for part in (b'"genesis":"', b'"birth":"', b'"records":["', b'"commits":["', b'"raw":"'):
        at = data.index(part) + len(part) + 300
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert _proof(anchored, path).code == 20, part


# a ledger that is somebody else's word


class _Public(EmbeddedLedger):
    """Stands for a public cluster: the same accounts, another name."""

    name = "testnet"
    is_public = True
    endpoints = 2


@pytest.fixture
def public(anchored: Scene, monkeypatch: pytest.MonkeyPatch) -> _Public:
    """What --ledger testnet leads to."""
    ledger = _Public(anchored.paths.store.ledger_db)
    monkeypatch.setattr("anchor_service.ledgers.open_ledger", lambda *_, **__: ledger)
    monkeypatch.setattr(limits, "LEDGER_LOOK_SECONDS", 0.0)
    return ledger


TESTNET = ("--ledger", "testnet", "--program", spelling.base58(PROGRAM))


def test_a_repository_and_a_program_id_are_enough(
    anchored: Scene,
    pushed: Path,
    public: _Public,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Nothing is missing but the key that opens what is encrypted."""
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "nobody"))
    ran = _alone(anchored, pushed, "--all", *TESTNET)
    assert ran.code == 21
    for one in ran.json["savepoints"]:
        witnesses = one["witnesses"]
        assert witnesses["chain"]["verdict"] == "VERIFIED"
        assert witnesses["chain"]["independent"] is True
        skipped = [f["rule"] for f in witnesses["git"]["findings"] if f["result"] != "pass"]
        assert skipped == ["VERIFY-12"]
    assert ran.json["index"]["verdict"] == "VERIFIED"  # the ledger tells that it is the newest
    told = anchored("verify", "--repository", str(pushed), *TESTNET)
    assert "chain is independent" in told.text
    account = ran.json["savepoints"][0]["witnesses"]["chain"]["account"]
    assert _alone(anchored, pushed, *TESTNET, "--account", account).code == 21
    assert _alone(anchored, pushed, *TESTNET, "--account", spelling.base58(PROGRAM)).code == 20


def test_a_lost_trusted_head_is_made_good_by_a_ledger_of_others(
    anchored: Scene, public: _Public
) -> None:
    Path(anchored.paths.trusted).unlink()
    ran = anchored.good("verify", "--json", *TESTNET)
    assert ran.json["index"]["verdict"] == "VERIFIED"


def test_an_endpoint_that_lags_is_no_rollback(anchored: Scene, public: _Public) -> None:
    """One behind a balancer may be a slot behind what was seen a moment ago."""
    with closing(sqlite3.connect(anchored.paths.store.ledger_db)) as db:
        old = db.execute("SELECT * FROM accounts").fetchall()
    anchored.say("three")
    anchored.created()
    anchored.good("sync")
    head = trusted.load(anchored.paths)
    assert head is not None
    real = public.accounts
    answers: list[list[AccountState | None]] = []

    def lagging(addresses: Sequence[bytes], level: str) -> list[AccountState | None]:
        found = real(addresses, level)
        state = found[0]
        assert state is not None
        if len(answers) < 2:
            data = next(row[3] for row in old if len(row[3]) == 465)
            found[0] = state._replace(data=data)
        answers.append(found)
        return found

    public.accounts = lagging  # type: ignore[method-assign]  # as such an endpoint does
    chosen = config.load(anchored.paths.store)
    chosen._replace(ledger="testnet", program=TESTNET[3]).save(anchored.paths.store)
    anchored.good("verify")
    assert len(answers) == 3


def test_offline_tells_when_the_ledger_was_last_asked(anchored: Scene, public: _Public) -> None:
    chosen = config.load(anchored.paths.store)
    chosen._replace(ledger="testnet", program=TESTNET[3]).save(anchored.paths.store)
    anchored.say("three")
    anchored.created()
    anchored.good("sync")
    ran = anchored("verify", "--offline", "--json")
    assert ran.code == 21
    detail = chain_of(ran)["findings"][0]["detail"]
    assert re.fullmatch(r"testnet was not asked: .* an entry \d+ seconds ago", detail)
