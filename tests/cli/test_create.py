"""`savepoint create`: always a savepoint, the specification's lines, only what is true."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from savepoint.cli.shapes.savepoints import Created
from savepoint.core import limits
from savepoint.core.errors import CommitError, DiskError
from savepoint.gitlayer.commits import commit
from savepoint.store import trusted
from savepoint.store.locks import Lock
from tests.cli.scene import OTHER_SESSION, SESSION, Scene, program, record

_SPECIFICATION = {
    "timestamp",
    "instance",
    "event",
    "snapshot_hash",
    "snapshot_size_bytes",
    "snapshot_file",
    "layer_1_status",
    "layer_2_status",
    "layer_2_commit",
    "layer_3_status",
    "layer_3_task_id",
    "tokens_used_this_session",
    "tokens_remaining",
    "context_utilization_percent",
    "consciousness_preserved",
}


def test_json_has_the_specifications_fields(cli: Scene) -> None:
    made = cli.created()
    assert made.keys() >= _SPECIFICATION | {"seq", "status", "tokens_used"}
    assert made["status"] == made["event"] == "SAVEPOINT_CREATED"
    assert (made["seq"], made["instance"], made["session_id"]) == (2, "Gabriel #215", SESSION)
    layers = [made[f"layer_{n}_status"] for n in (1, 2, 3)]
    assert layers == ["SAVED_LOCALLY", "COMMITTED_LOCALLY", "DISABLED"]
    assert len(made["layer_2_commit"]) == 40
    assert made["layer_3_task_id"] is None
    Created.model_validate(made)


def test_there_is_always_a_savepoint(cli: Scene) -> None:
    first, second = cli.created(), cli.created()
    assert (first["seq"], second["seq"]) == (2, 3)
    assert second["from"] == {
        "signer": first["signer"],
        "seq": 2,
        "snapshot_hash": first["snapshot_hash"],
    }


def test_a_person_reads_the_three_layers(cli: Scene) -> None:
    ran = cli.good("create")
    one, hashed, size, held, where, two, commit, three, number = ran.text.splitlines()
    assert one == "✓ Layer 1: Local savepoint created"
    file = Path(where.removeprefix("  Location: "))
    assert size == f"  Size: {file.stat().st_size} bytes"
    assert held == f"  Conversation: {cli.transcript.stat().st_size} bytes"
    assert number == "This is savepoint 2"  # what every other command takes
    assert hashed.startswith("  Hash: sha256:")
    assert two == "✓ Layer 2: COMMITTED_LOCALLY"
    assert commit.startswith("  Commit: ")
    assert three.startswith("· Layer 3: DISABLED")


def test_transcript_by_path_and_session_by_id(cli: Scene) -> None:
    other = cli.say("of another session", session=OTHER_SESSION)
    assert cli.created("--transcript", os.path.relpath(other, cli.project))["session_id"] == (
        OTHER_SESSION
    )
    assert cli.created("--session", SESSION)["session_id"] == SESSION


def test_newest_session_is_meant_where_none_is_named(cli: Scene) -> None:
    newest = cli.say("later", session=OTHER_SESSION)
    os.utime(newest)
    assert cli.created()["session_id"] == OTHER_SESSION


def test_a_session_that_nobody_has_is_told_with_where_it_was_looked_for(cli: Scene) -> None:
    ran = cli("create", "--session", "nope")
    assert ran.code == 1
    assert f"no session nope is in {os.environ['CLAUDE_CONFIG_DIR']}" in ran.err


def test_a_file_that_is_no_session_is_saved_and_told(cli: Scene, tmp_path: Path) -> None:
    """Its raw bytes are stored; that all of it was read as a conversation is most likely wrong."""
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0\nada:x:1000:1000\n")
    ran = cli.good("create", "--transcript", str(file))
    told = "no line of it is a record"
    assert f"note: the conversation: {told}" in ran.err
    assert told in cli.good("show").text
    shown = cli.good("show", "--json").json
    assert any(one.startswith(told) for one in shown["notes"])
    assert cli.good("show", "--only", "conversation").out == file.read_bytes()
    file.write_bytes(cli.transcript.read_bytes() + b"no record\n")
    ran = cli.good("create", "--transcript", str(file))
    assert "note: the conversation: lines that are no record: 1" in ran.err


def test_a_session_of_another_instance_is_told(cli: Scene) -> None:
    """`create` said all was well, `list` then that there is none."""
    cli.created()
    old = cli.paths
    cli.good("init", "--instance", "X #2")
    ran = cli.good("create")
    key = old.slug[-8:]
    assert f"saved as savepoint 3 of Gabriel #215 (key {key})" in ran.err
    assert "the current instance, of new sessions, is X #2 (key " in ran.err
    cli.created()
    for command in (["list"], ["show"], ["verify", "--all"], ["verify"]):
        ran = cli(*command)
        assert f"3 of Gabriel #215 (--instance {old.slug})" in ran.err, command
    assert cli.good("list", "--instance", old.slug).err == ""
    cli.say("of a new session", session=OTHER_SESSION)
    assert "saved as" not in cli.good("create", "--session", OTHER_SESSION).err
    ran = cli.good("verify", "--all")
    assert f"not looked at: 3 of Gabriel #215 (--instance {old.slug})" in ran.err


def test_a_folder_in_the_place_of_the_cache_costs_one_save_a_fire(cli: Scene) -> None:
    cli.created()
    cache = Path(cli.paths.store.session(SESSION))
    cache.unlink()
    cache.mkdir()
    for seq in (3, 4):
        ran = cli.good("create", "--json")
        assert ran.json["seq"] == seq
        assert str(cache) in ran.err
    assert os.listdir(cli.paths.store.pending) == []
    assert "does not belong into a store" in cli("fsck").text
    assert f"sessions/{SESSION}.json does not belong" in cli("doctor").text


def test_a_subfolder_belongs_to_the_project(cli: Scene) -> None:
    (cli.project / "src").mkdir()
    made = cli.created("-C", str(cli.project / "src"))
    assert made["session_id"] == SESSION
    git = cli.good("show", "latest", "--only", "git").json
    assert git["roots"]["project"] == str(cli.project)


def test_no_store_is_10(bare: Scene) -> None:
    bare.say("x")
    ran = bare("create")
    assert ran.code == 10
    assert ran.err.startswith("savepoint: error: no store for ")
    assert "savepoint: hint: run `savepoint init`" in ran.err


def test_no_session_is_1(bare: Scene) -> None:
    bare.good("init")
    ran = bare("create")
    assert ran.code == 1
    assert "--transcript" in ran.err


@pytest.mark.parametrize("what", ["missing", "folder", "fifo"])
def test_what_is_no_transcript_is_1(cli: Scene, what: str) -> None:
    path = cli.project / what
    if what == "folder":
        path.mkdir()
    if what == "fifo":
        os.mkfifo(path)
    ran = cli("create", "--transcript", str(path))
    assert ran.code == 1
    assert str(path) in ran.err
    assert cli.good("list", "--json").json == {"savepoints": []}


def test_a_key_that_others_may_read_is_12_and_the_bytes_are_not_lost(cli: Scene) -> None:
    key = Path(cli.paths.authority)
    key.chmod(0o644)
    ran = cli("create")
    assert ran.code == 12
    assert f"chmod 600 {key}" in ran.err
    pending = cli.good("status", "--json").json["pending"]
    assert [(one["session_id"], one["drafts"]) for one in pending] == [(SESSION, 1)]
    key.chmod(0o600)
    ran = cli.good("create")
    assert len(cli.good("list", "--json").json["savepoints"]) == 2  # the draft, and this one
    assert cli.good("status", "--json").json["pending"] == []


def test_a_lock_that_is_held_is_11(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.05)
    with Path(cli.paths.store.session_lock(SESSION)).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = cli("create")
    assert ran.code == 11
    assert cli.good("create").code == 0


def _leave_pending(cli: Scene, transcript: Path, project: Path) -> None:
    note = {
        "v": 1,
        "session_id": OTHER_SESSION,
        "transcript": str(transcript),
        "project": str(project),
        "cwd": str(project),
        "trigger": "auto",
        "since": 1_700_000_000,
        "reason": "the hook's time has passed",
    }
    Path(cli.paths.store.pending_note(OTHER_SESSION)).write_text(json.dumps(note))


def test_too_much_for_one_commit_is_told(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """After saves that were killed: QUEUED_FOR_COMMIT, an exit code of 1, and not a word."""

    def killed(*_: object) -> None:
        raise CommitError("killed")

    with Lock(cli.paths.store.worker_lock, time.monotonic() + 60):
        with monkeypatch.context() as patched:
            patched.setattr(commit, "commit", killed)
            assert cli("create").code == 1
        monkeypatch.setattr(limits, "COMMITS_AT_ONCE", 1)
        ran = cli("create")
    assert ran.code == 1
    assert "git lacked too much to take it at once" in ran.text + ran.err


def test_a_disk_that_is_full_behind_the_record_says_that_it_stands(
    cli: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint was to run the same again, which made a second one."""

    def full(*_: object) -> None:
        raise DiskError("no space left")

    monkeypatch.setattr(trusted, "save", full)
    ran = cli("create")
    assert ran.code == 40
    assert "savepoint 2 is saved, but no space left" in ran.err
    assert "do not make it again" in ran.err
    assert len(cli.good("list", "--json").json["savepoints"]) == 1


def test_what_an_earlier_fire_left_is_finished(cli: Scene) -> None:
    _leave_pending(cli, cli.say("of another session", session=OTHER_SESSION), cli.project)
    ran = cli.good("create", "--session", SESSION)
    assert "savepoint 3 finishes" in ran.err
    saves = cli.good("list", "--json").json["savepoints"]
    assert [(one["session_id"], one["trigger"]) for one in saves] == [
        (SESSION, "manual"),
        (OTHER_SESSION, "auto"),
    ]
    assert not Path(cli.paths.store.pending_note(OTHER_SESSION)).exists()


def test_what_is_pending_for_a_folder_that_is_gone_is_finished(cli: Scene) -> None:
    """A worktree that an agent entered, and removed again."""
    other = cli.say("of another session", session=OTHER_SESSION)
    _leave_pending(cli, other, cli.project.with_name("gone"))
    ran = cli.good("create", "--session", SESSION)
    assert "savepoint 3 finishes" in ran.err
    notes = cli.good("show", "latest", "--json").json["notes"]
    assert notes == [
        "asked for at 2023-11-14T22:13:20Z; not finished then: the hook's time has passed"
    ]


def test_what_is_being_saved_now_is_no_leftover(cli: Scene) -> None:
    _leave_pending(cli, cli.say("x", session=OTHER_SESSION), cli.project)
    with Path(cli.paths.store.session_lock(OTHER_SESSION)).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = cli.good("create", "--session", SESSION)
    assert ran.err == ""
    assert len(cli.good("list", "--json").json["savepoints"]) == 1


def test_every_real_transcript_comes_back(cli: Scene, shared: Path) -> None:
    files = sorted((shared / "transcripts").glob("claude-*.jsonl"))
    assert files
    for file in files:
        cli.created("--transcript", str(file))
        assert cli.good("show", "latest", "--only", "conversation").out == file.read_bytes()
    assert cli.good("verify", "--all").code == 0


def test_as_a_process_of_its_own(cli: Scene) -> None:
    done = program("create", cwd=cli.project)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith("✓ Layer 1: Local savepoint created\n")


def test_full_disk_is_40(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        ran = cli("create", "--json")
    assert ran.code == 40
    assert ran.json["error"]["name"] == "disk"
    assert cli.good("fsck").code == 0


def test_a_conversation_that_was_only_looked_out_is_not_the_newest_session(cli: Scene) -> None:
    """`create` saved the copy, into the instance that it was looked out of."""
    cli.created()
    looked_out = cli.good("resurrect", "2", "--only", "conversation", "--json").json["session"]
    assert cli.created()["session_id"] == SESSION
    with Path(looked_out["file"]).open("ab") as file:  # somebody goes on in it
        file.write(record(cli.project, looked_out["id"], {"content": "on"}))
    later = time.time() + 2
    os.utime(looked_out["file"], (later, later))
    assert cli.created()["session_id"] == looked_out["id"]
