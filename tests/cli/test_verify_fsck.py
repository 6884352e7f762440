"""`savepoint verify` and `fsck` as a person runs them: verdicts, exit codes, hints that work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from savepoint.cli.shapes.verification import Verification
from tests.cli.scene import Scene, program
from tests.fault.scene import remove


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_what_was_incomplete_is_said(cli: Scene) -> None:
    cli.created()
    assert "incomplete" not in cli.good("verify", "--all").err
    (cli.project / ".env").write_text("A=1")
    cli.read_file(".env")
    cli.transcript.with_suffix("").mkdir()
    (cli.transcript.with_suffix("") / "tool-results").mkdir()
    os.mkfifo(cli.transcript.with_suffix("") / "tool-results" / "x.txt")
    cli.created()
    for command in (["verify"], ["verify", "--all"]):
        ran = cli.good(*command)
        assert "note: incomplete when they were made: 3; `savepoint show 3`" in ran.err
    assert "incomplete" in cli.good("list").text


def test_verified(cli: Scene) -> None:
    made = cli.created()
    ran = cli.good("verify", "--json").json
    Verification.model_validate(ran)
    assert ran["verdict"] == "VERIFIED"
    (one,) = ran["savepoints"]
    assert (one["seq"], one["snapshot_hash"]) == (2, made["snapshot_hash"])
    verdicts = {name: witness["verdict"] for name, witness in one["witnesses"].items()}
    assert verdicts == {"local": "VERIFIED", "git": "VERIFIED", "chain": "OFF"}
    rules = [finding["rule"] for finding in one["witnesses"]["local"]["findings"]]
    assert rules == [f"VERIFY-{n}" for n in range(1, 9)]


def test_a_person_is_told_that_only_this_disk_was_asked(cli: Scene) -> None:
    cli.created()
    text = cli.good("verify").text
    assert "local VERIFIED, git VERIFIED, chain OFF (not configured)" in text
    assert "VERIFIED: 1 savepoint of Gabriel #215" in text
    assert text.endswith("git has no remote, and chain is OFF: only this disk was asked\n")


def test_all_and_one(cli: Scene) -> None:
    for _ in range(3):
        cli.created()

    def seqs(*arguments: str) -> list[int]:
        return [one["seq"] for one in cli.good("verify", "--json", *arguments).json["savepoints"]]

    assert seqs() == seqs("latest") == [4]
    assert seqs("3") == [3]
    assert seqs("--all") == [2, 3, 4]
    assert "3 savepoints" in cli.good("verify", "--all").text
    assert cli("verify", "3", "--all").code == 2
    assert cli("verify", "77").code == 1
    assert cli("verify", "nonsense").code == 2


def test_nothing_to_verify_yet(cli: Scene) -> None:
    ran = cli("verify", "--json")
    assert (ran.code, ran.json["error"]["name"]) == (1, "selector")


def _index(cli: Scene) -> Path:
    return Path(cli.paths.index_file)


def _snapshot(cli: Scene) -> Path:
    return next(Path(cli.paths.snapshots).iterdir())


def _pack(cli: Scene) -> Path:
    return next(Path(cli.paths.store.objects).rglob("*.pack"))


@pytest.mark.parametrize("find", [_index, _snapshot, _pack])
@pytest.mark.parametrize("at", [0, 0.5, -2])
def test_one_flipped_bit_is_20_and_the_file_is_named(cli: Scene, find: object, at: float) -> None:
    cli.created()
    assert callable(find)
    path: Path = find(cli)
    size = path.stat().st_size
    _flip(path, int(size * at) if at >= 0 else size + int(at))
    for command in ("verify", "fsck"):
        ran = cli(command)
        assert ran.code == 20
        assert path.name in ran.text
        assert "savepoint: hint: " in ran.err
    assert "DAMAGED in store" in ran.text
    ran = cli("verify", "--json")
    assert (ran.code, ran.json["verdict"]) == (20, "TAMPERED")


def test_a_missing_index_is_20(cli: Scene) -> None:
    cli.created()
    _index(cli).unlink()
    for command in ("verify", "fsck"):
        ran = cli(command)
        assert ran.code == 20
        assert "precompact-savepoint.jsonl is missing" in ran.text


def test_a_store_put_back_is_22_and_the_hint_works(cli: Scene) -> None:
    """A restored backup (borg#4908): saving goes on, and one command gets out of the alarm."""
    cli.created()
    store = Path(cli.paths.store.path)
    shutil.copytree(store, store.with_name("copy"))
    cli.created()
    remove(store)
    store.with_name("copy").rename(store)
    ran = cli("verify")
    assert ran.code == 22
    assert "ROLLED_BACK" in ran.text
    assert "savepoint: hint: run `savepoint fsck --repair`" in ran.err
    made = cli("create", "--json")
    assert (made.code, made.json["seq"]) == (1, 4)  # saved; git waits for the repair
    assert made.json["layer_2_status"] == "QUEUED_FOR_COMMIT"
    ran = cli("fsck", "--repair")
    assert ran.code == 0, ran.text
    assert "repaired" in ran.text
    assert cli.good("verify", "--all").code == 0
    assert cli.good("fsck", "--repair", "--json").json["repaired"] == []


def test_a_lost_trusted_head_is_21_and_the_hint_works(cli: Scene) -> None:
    cli.created()
    Path(cli.paths.trusted).unlink()
    ran = cli("verify")
    assert ran.code == 21
    assert "savepoint fsck --repair" in ran.err
    told = cli("fsck").text
    assert "NOT ALL CHECKED in store" in told
    assert told.startswith("unchecked  ")  # it said damage, of what nobody had looked at
    (repaired,) = cli.good("fsck", "--repair", "--json").json["repaired"]
    assert repaired["seq"] == 3
    assert cli.good("verify").code == 0


def test_fsck_of_a_good_store(cli: Scene) -> None:
    cli.created()
    told = cli.good("fsck", "--json").json
    assert (told["exit_code"], told["findings"], told["repaired"]) == (0, [], [])
    assert told["counts"]["savepoints"] == 1
    assert "no damage in store" in cli.good("fsck").text


def test_fsck_lists_what_is_harmless_and_exits_0(cli: Scene) -> None:
    cli.created()
    Path(cli.paths.store.path, "stray").write_text("x")
    ran = cli.good("fsck")
    assert "note      stray does not belong into a store" in ran.text


def test_a_newer_format_is_23(cli: Scene) -> None:
    cli.created()
    with _index(cli).open("ab") as file:
        file.write(b'{"v":2,"seq":3}\n')
    for command in ("verify", "fsck"):
        ran = cli(command)
        assert ran.code == 23
        assert "line 3: record of version 2" in ran.text
        assert "upgrade savepoint" in ran.err


def test_exit_code_of_a_process(cli: Scene) -> None:
    cli.created()
    _flip(_pack(cli), -2)
    done = program("verify", "--json", cwd=cli.project)
    assert done.returncode == 20
    assert done.stderr == b""
