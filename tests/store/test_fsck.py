"""fsck: whole stores pass, each kind of damage is named, what crashes leave is no damage."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import chain, limits
from savepoint.core.strict_json import dump, parse
from savepoint.store import birth, files, index
from savepoint.store.session import pending, sessions
from savepoint.store.session.pending import Note
from savepoint.store.session.sessions import Session
from savepoint.store.witness import evidence
from savepoint.store.witness.witness import verify_local
from tests import conftest
from tests.store.checking import check, told
from tests.verify import builder
from tests.verify.builder import Built, flip

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


def store_file(built: Built, name: str, data: bytes = b"{}") -> Path:
    path = Path(built.paths.store.path, name)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.touch(0o600)
    path.write_bytes(data)
    return path


def test_whole_store_has_no_findings(built: Built) -> None:
    found = check(built)
    assert found.to_json() == {
        "store": built.paths.store.id,
        "exit_code": 0,
        "findings": [],
        "counts": {
            "instances": 1,
            "records": 4,
            "savepoints": 3,
            "packs": 3,
            "temporaries": 0,
        },
    }
    assert found.hint == ""


def test_store_with_its_birth_only_passes(tmp_path: Path) -> None:
    assert check(builder.new(tmp_path / "home", tmp_path / "project")).items == ()


@pytest.mark.parametrize("at", [0, 20, -1])
@pytest.mark.parametrize("which", ["index", "snapshot", "pack"])
def test_flipped_byte_is_damage_and_its_file_is_named_once(
    built: Built, which: str, at: int
) -> None:
    snapshot = built.snapshot(built.records()[1])
    path = {"index": built.index_file, "snapshot": snapshot, "pack": built.packs()[0]}[which]
    flip(path, at)
    found = check(built)
    assert found.exit_code == 20
    assert path.name in told(found, "damage")
    assert len({one.detail for one in found.items}) == len(found.items)
    assert {one.rule for one in found.items if one.severity == "damage"} <= {
        f"VERIFY-{number}" for number in range(1, 9)
    }


def test_pack_that_many_savepoints_share_is_told_once(built: Built) -> None:
    big = b"".join(b"%d\n" % number for number in range(300_000))
    for number in range(4):
        builder.save(built, big + b"%d\n" % number)
    largest = max(built.packs(), key=lambda path: path.stat().st_size)
    largest.unlink()
    found = check(built)
    missing = f"objects/{largest.name[:2]}/{largest.name} is missing; needed by 4 savepoints"
    assert told(found, "damage") == missing


def test_rollback_is_22_and_names_the_way_out(built: Built) -> None:
    built.write_lines(*built.lines[:-1])
    found = check(built)
    assert (found.exit_code, found.hint) == (22, "run `savepoint fsck --repair`")


def test_missing_trusted_head_is_21(built: Built) -> None:
    built.trusted.unlink()
    found = check(built)
    assert (found.exit_code, found.hint) == (21, "run `savepoint fsck --repair`")
    built.trusted.write_bytes(b"{}\n")
    built.trusted.chmod(0o600)
    assert "damaged, which counts as missing" in told(check(built), "note")


@pytest.mark.parametrize("defect", ["blanks", "lf_missing", "extra_member", "negative"])
def test_what_verify_takes_for_no_trusted_head_is_none_to_fsck(built: Built, defect: str) -> None:
    """By rules of its own, fsck read it, and found no damage."""
    data = built.trusted.read_bytes()
    spoiled = {
        "blanks": data.replace(b":", b": "),
        "lf_missing": data.removesuffix(b"\n"),
        "extra_member": data.replace(b'"v":1', b'"v":1,"x":1'),
        "negative": data.replace(b'"seq":', b'"seq":-'),
    }
    built.trusted.write_bytes(spoiled[defect])
    assert verify_local(built.paths).exit_code == check(built).exit_code == 21
    assert "damaged, which counts as missing" in told(check(built), "note")


def test_trusted_head_of_an_instance_that_is_gone_is_22(built: Built) -> None:
    shutil.rmtree(built.paths.path)
    found = check(built)
    assert "has seen an instance that is gone" in told(found, "damage")
    assert {one.exit_code for one in found.items} >= {22}


def test_newer_version_is_23(built: Built) -> None:
    value = parse(Path(built.paths.store.config).read_bytes())
    assert isinstance(value, dict)
    Path(built.paths.store.config).write_bytes(dump({**value, "v": 2}))
    assert check(built).exit_code == 23
    data = built.snapshot(built.records()[-1]).read_bytes()
    builder.forge(built, data.replace(b'"format":1', b'"format":2'))
    found = check(built)
    assert [one.exit_code for one in found.items if one.rule == "VERIFY-6"] == [23]


def test_unreadable_file_is_21_and_unlistable_folder_40(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = built.packs()[0]
    real = files.open_regular

    def refuse(path: str) -> int:
        if path == str(pack):
            raise OSError(errno.EIO, "Input/output error", path)
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(evidence, "open_regular", refuse)
        assert check(built).exit_code == 21

    def unlistable(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", unlistable)
    found = check(built)
    assert found.exit_code == 40
    assert "cannot be listed: Permission denied" in told(found, "damage")
    assert "readable" in found.hint


def test_worst_exit_code_wins(built: Built) -> None:
    built.write_lines(*built.lines[:-1])
    flip(built.snapshot(built.records()[1]), -1)
    assert check(built).exit_code == 20


# what crashes leave


@pytest.mark.parametrize("size", [limits.RECORD_BYTES + 2, chain.TAIL_BYTES + 1, 100_000])
def test_a_torn_tail_longer_than_any_record_is_set_aside_whole(built: Built, size: int) -> None:
    """A power cut leaves a file that grew, and nothing in it; the line before must not look cut."""
    before = built.index_file.read_bytes()
    last = built.records()[-1]
    built.index_file.write_bytes(before + bytes(size))
    tail = index.settle(built.paths)
    assert (tail.last, tail.damaged, tail.size) == (last, False, len(before))
    assert built.index_file.read_bytes() == before
    (aside,) = built.index_file.parent.glob("*.torn-*")
    assert aside.read_bytes() == bytes(size)


def test_torn_tail_and_stump_are_notes(built: Built) -> None:
    with built.index_file.open("ab") as file:
        file.write(b'{"v":1,"seq":5,')
    found = check(built)
    assert found.exit_code == 0
    assert "15 bytes at its end, of a record that was never acknowledged" in told(found, "note")
    builder.save(built, b"next\n")
    found = check(built)
    assert (found.exit_code, found.counts["records"]) == (0, 5)
    assert "a torn end, set aside" in told(found, "note")


def test_orphans_are_notes_but_checked(built: Built) -> None:
    """A kill between snapshot and record."""
    head = built.trusted.read_bytes()
    lines = built.lines
    one = builder.save(built, b"not acknowledged\n")
    built.write_lines(*lines)
    built.trusted.write_bytes(head)
    found = check(built)
    assert found.exit_code == 0
    assert f"{one.snapshot_file}: no record that can be read names" in told(found, "note")
    assert told(found, "note").count("no snapshot that can be read names this pack") == 1
    assert told(found, "warning") == ""
    (orphan,) = [path for path in built.packs() if path.name in told(found, "note")]
    flip(orphan, -1)
    found = check(built)
    assert found.exit_code == 0
    assert f"{orphan.name} has another SHA-256 than its name" in told(found, "warning")


def test_temporaries_are_counted_and_not_entered(built: Built) -> None:
    home = Path(built.paths.store.home)
    store_file(built, "objects/.tmp-0011223344556677", b"half")
    store_file(built, "sessions/a.json.tmp-0011223344556677", b"half")
    store_file(built, "scratch/.tmp-0011223344556677/index", b"half")
    (home / ".tmp-00").touch(0o600)
    built.trusted.with_name(".tmp-01").touch(0o600)
    old = store_file(built, ".tmp-02", b"")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    found = check(built)
    assert (found.exit_code, found.counts["temporaries"]) == (0, 6)
    assert told(found, "note").startswith("6 temporary files, the oldest 720")
    assert len(found.items) == 1


def test_session_cache_that_does_not_fit_is_a_note(built: Built) -> None:
    last = built.records()[-1]
    session = Session(built.paths.slug, last.seq, last.hash, "", 0, 0, None, {}, {})
    session.save(built.paths.store, "good")
    assert check(built).items == ()
    session._replace(record="ab" * 32).save(built.paths.store, "old")
    store_file(built, "sessions/ruin.json", b"")
    store_file(built, "sessions/x.guidance.json", b"{}")
    store_file(built, "sessions/x.lock", b"")
    notes = told(check(built), "note").splitlines()
    assert [line.partition(" ")[0] for line in notes] == [
        "sessions/old.json",
        "sessions/ruin.json",
    ]
    assert sessions.load(built.paths.store, "old") is None


def test_pending_notes_are_told_and_a_lost_draft_is_a_warning(built: Built) -> None:
    Note("s", None, "/p", "/p", "auto", 0, "started").save(built.paths.store, "s")
    assert pending.keys(built.paths.store) == ["s"]
    found = check(built)
    assert "pending/s.json: a save that was not finished" in told(found, "note")
    store_file(built, "pending/t.json", b"{")
    store_file(built, "pending/t.000000000001.draft", b"")
    found = check(built)
    assert found.exit_code == 0
    assert "pending/t.json is damaged" in told(found, "note")
    assert "pending/t.000000000001.draft is damaged" in told(found, "warning")


def test_instance_whose_creation_was_cut_short_is_a_note(built: Built) -> None:
    logs = Path(built.paths.store.path, "instances/gabriel-216-00112233/logs/precompact-saves")
    logs.mkdir(parents=True, mode=0o700)
    for folder in (logs.parent, logs.parent.parent):
        folder.chmod(0o700)
    found = check(built)
    assert (found.exit_code, found.counts["instances"]) == (0, 1)
    assert told(found, "note") == "instances/gabriel-216-00112233 was being made"
    index = store_file(built, f"{logs.parent}/precompact-savepoint.jsonl", b'{"v":1,"se')
    assert check(built).exit_code == 0
    index.unlink()
    (logs / "snapshot_2026-11-30T13-26-49Z.json").touch(0o600)
    assert check(built).exit_code == 20


def test_store_that_was_being_made_passes(built: Built) -> None:
    built.write_lines(*built.lines[:1])
    head = parse(built.trusted.read_bytes())
    assert isinstance(head, dict)
    first = built.records()[0]
    built.trusted.write_bytes(dump({**head, "seq": 1, "record": first.hash}) + b"\n")
    Path(built.paths.store.config).unlink()
    found = check(built)
    assert found.exit_code == 0
    assert "config.json is missing: the store was being made" in told(found, "note")


@pytest.mark.parametrize(
    "name",
    [
        "strange",
        "objects/xx/y.pack",
        "objects/00/" + "11" * 32 + ".pack",
        "instances/{slug}/notes.txt",
        "sessions/a b.json",
    ],
)
# what is not the store's, or more than one's


def test_what_does_not_belong_here_is_a_note(built: Built, name: str) -> None:
    path = store_file(built, name.format(slug=built.paths.slug))
    path.parent.chmod(0o700)
    found = check(built)
    assert found.exit_code == 0
    assert "does not belong into a store" in told(found, "note")


def test_what_belongs_to_git_and_the_worker_is_left_to_them(built: Built) -> None:
    for name in ("worker.lock", "worker.next", "outbox.db", "outbox.db-wal", "repo.git/HEAD"):
        store_file(built, name)
    Path(built.paths.store.path, "repo.git").chmod(0o700)
    assert check(built).items == ()


def test_link_in_the_store_is_not_followed(built: Built, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").touch()
    Path(built.paths.store.path, "link").symlink_to(tmp_path / "elsewhere")
    assert told(check(built), "note") == "link does not belong into a store"


def test_two_instances_share_packs_and_are_both_checked(built: Built) -> None:
    paths, _ = birth.give_birth(built.paths.store, builder.INSTANCE._replace(number=216), 0)
    second = Built(paths, built.known)
    one = builder.spoilt(
        Built(built.paths, {}), lambda document: document.update(tokens_remaining=None)
    )
    assert check(built).counts["instances"] == 2
    flip(second.index_file, 20)
    found = check(built)
    assert found.exit_code == 20
    assert found.instances[built.paths.slug].exit_code == 0
    assert found.instances[paths.slug].exit_code == 20
    assert one.seq == 5


# the oracle shares nothing with what it judges


def test_fsck_and_the_rules_import_nothing_that_writes() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import savepoint.store.fsck.fsck;"
        "print(*sorted(n for n in sys.modules if n.startswith('savepoint.store.')))"
    )
    command = [sys.executable, "-I", "-c", program, str(conftest.PROJECT)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert set(result.stdout.split()) == {
        f"savepoint.store.{name}"
        for name in (
            *("border", "files", "fsck", "layout", "witness"),
            *("fsck.fsck", "fsck.items", "fsck.key_items", "fsck.survey", "fsck.upkeep"),
            *("witness.contents", "witness.evidence", "witness.examine"),
        )
    }


def test_fsck_changes_nothing(built: Built) -> None:
    def state() -> dict[str, tuple[int, Json]]:
        home = Path(built.paths.store.home)
        return {
            str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in home.rglob("*")
        }

    with built.index_file.open("ab") as file:
        file.write(b"torn")
    before = state()
    check(built)
    assert state() == before
