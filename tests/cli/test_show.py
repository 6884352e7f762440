"""`savepoint show`: what is in a savepoint, and every part of it byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.scene import OTHER_SESSION, SESSION, Scene, program


def test_a_person_learns_what_is_in_it(cli: Scene) -> None:
    (cli.project / "a.py").write_text("x")
    (cli.project / ".env").write_text("SECRET=1")
    cli.read_file("a.py")
    cli.read_file(".env")
    made = cli.created()
    text = cli.good("show").text
    first, *lines = text.splitlines()
    assert first.startswith("Savepoint 2 of Gabriel #215 (key ")
    assert made["snapshot_hash"] in text
    said = " | ".join(" ".join(line.split()) for line in lines)
    assert "trigger manual" in said
    assert "conversation 6 messages in 6 lines" in said
    assert "files 1 stored, 1 only listed | .env: is an environment file" in said
    assert "state of the instance" in said
    assert "checkpoint modulo_zero yes, bootstrap_confirmed yes" in said
    assert "SECRET" not in text


def test_json_tells_the_same(cli: Scene) -> None:
    (cli.project / "a.py").write_text("x")
    cli.read_file("a.py")
    made = cli.created()
    told = cli.good("show", "2", "--json").json
    assert told["savepoint"] == {
        n: v for n, v in made.items() if n not in {"status", "tokens_used"}
    }
    assert told["conversation"]["message_count"] == 4
    assert told["conversation"]["transcript"]["path"] == str(cli.transcript)
    assert told["loaded_files"] == {"stored": 1, "not_stored": []}
    assert Path(told["snapshot_path"]).read_bytes()
    digest = hashlib.sha256(Path(told["snapshot_path"]).read_bytes()).hexdigest()
    assert made["snapshot_hash"] == f"sha256:{digest}"


def test_conversation_of_any_bytes(cli: Scene) -> None:
    cli.write(b'\xff\xfe\x00{"torn": \r\n\n{"a":1}{"b":2}\n' + b"x" * 3_000_000 + b"\nno newline")
    cli.created()
    assert cli.good("show", "latest", "--only", "conversation").out == cli.transcript.read_bytes()


def test_conversation_through_a_pipe(cli: Scene) -> None:
    cli.created()
    done = program("show", "latest", "--only", "conversation", cwd=cli.project)
    assert done.stdout == cli.transcript.read_bytes()


def test_a_session_without_a_conversation(cli: Scene) -> None:
    cli.created()
    facts = cli.good("show", "--only", "conversation", "--json").json
    assert (facts["session_id"], facts["message_count"]) == (SESSION, 2)
    assert "segments" not in facts["transcript"]


def test_a_session_whose_transcript_is_gone(cli: Scene) -> None:
    cli.created()
    note = {
        "v": 1,
        "session_id": OTHER_SESSION,
        "transcript": "/gone.jsonl",
        "project": str(cli.project),
        "cwd": str(cli.project),
        "trigger": "auto",
        "since": 1_700_000_000,
        "reason": "started",
    }
    Path(cli.paths.store.pending_note(OTHER_SESSION)).write_text(json.dumps(note))
    cli.created("--session", SESSION)
    text = cli.good("show").text
    assert "conversation  none" in text
    assert "omitted       transcript: /gone.jsonl does not exist" in text
    ran = cli("show", "--only", "conversation")
    assert (ran.code, ran.out) == (1, b"")
    assert "savepoint show 4" in ran.err
    cli.good("export", "latest", "-o", "out.json")
    assert json.loads((cli.project / "out.json").read_bytes())["conversation_history"] == []


def test_files_byte_for_byte(cli: Scene) -> None:
    data = bytes(range(256)) * 5000
    (cli.project / "data.bin").write_bytes(data)
    (cli.project / "id_rsa").write_bytes(b"key")
    cli.read_file("data.bin")
    cli.read_file("id_rsa")
    cli.created()
    assert cli.good("show", "latest", "data.bin", "--only", "files").out == data
    entries = cli.good("show", "--only", "files", "--json").json
    assert [(one["path"], one["stored"], one["reason"]) for one in entries] == [
        ("data.bin", True, None),
        ("id_rsa", False, "is a key file"),
    ]
    table = cli.good("show", "--only", "files").text
    assert "data.bin" in table
    assert "is a key file" in table
    ran = cli("show", "latest", "id_rsa", "--only", "files")
    assert ran.code == 1
    assert ran.out == b""


def test_state_byte_for_byte_where_the_project_keeps_one(cli: Scene) -> None:
    state = b'{"q_value": 0.987654321,\n "identity": "Gabriel #215"}\n'
    (cli.project / "session_current.json").write_bytes(state)
    cli.created()
    assert cli.good("show", "--only", "state").out == state
    assert cli.good("show", "--only", "state", "--json").json["q_value"] == "0.987654321"


def test_state_of_the_instance_where_it_keeps_none(cli: Scene) -> None:
    cli.created()
    state = cli.good("show", "--only", "state").json
    assert (state["identity"], state["roles"]) == ("Gabriel #215", [])


@pytest.fixture
def repository(cli: Scene) -> Scene:
    """The project is a repository with a staged, a changed, an untracked and a deleted file."""
    folder = cli.project
    for name in ("staged.txt", "changed.txt", "deleted.txt"):
        (folder / name).write_text("old")
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    (folder / "staged.txt").write_text("staged")
    subprocess.run([*git, "add", "staged.txt"], check=True)
    (folder / "staged.txt").write_text("and changed")
    (folder / "changed.txt").write_text("changed")
    (folder / "new.txt").write_bytes(b"\xffnew")
    (folder / "deleted.txt").unlink()
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("latin")
    return cli


def test_changes_byte_for_byte(repository: Scene) -> None:
    repository.created()
    listed = repository.good("show", "--only", "changes", "--json").json
    assert sorted(str(one["path"]) for one in listed) == [
        "changed.txt",
        "new.txt",
        "staged.txt",
        "staged.txt",
        "{'b64': 'Y2Fm6S50eHQ='}",
    ]
    for name, data in {
        "changed.txt": b"changed",
        "new.txt": b"\xffnew",
        os.fsdecode(b"caf\xe9.txt"): b"latin",
    }.items():
        assert repository.good("show", "latest", name, "--only", "changes").out == data
    ran = repository.good("show", "latest", "staged.txt", "--only", "changes")
    assert ran.out == b"and changed"
    assert "staged in another version" in ran.err


def test_git_state(repository: Scene) -> None:
    repository.created()
    git = repository.good("show", "--only", "git").json
    assert (git["branch"], git["status"]) == ("main", "dirty")
    assert git["changes"]["deleted"] == ["deleted.txt"]
    text = repository.good("show").text
    assert f"main at {git['current_commit']}, dirty" in text
    assert "5 files" in text
    assert "1 deleted" in text


def test_memory(cli: Scene) -> None:
    cli.created()
    ran = cli("show", "--only", "memory")
    assert ran.code == 1
    assert "nothing had been remembered" in ran.err
    cli.good("succession", "record", "observation", "--title", "x", "--what", "y")
    cli.created()
    (held,) = cli.good("show", "--only", "memory").json
    assert (held["what"], held["path"]) == ("succession", "dynasty.bundle")
    assert held["bytes"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("latest", "a.py"),
        ("latest", "a.py", "--only", "conversation"),
        ("latest", "a.py", "--only", "files", "--json"),
        ("--only", "everything"),
    ],
)
def test_what_does_not_go_together_is_2(cli: Scene, arguments: tuple[str, ...]) -> None:
    cli.created()
    assert cli("show", *arguments).code == 2


def test_a_hostile_name_does_not_steer_the_terminal(cli: Scene) -> None:
    name = "a\x1b[2J\u202e\n.py"
    (cli.project / name).write_text("x")
    cli.read_file(name)
    cli.created()
    for arguments in ([], ["--only", "files"]):
        out = cli.good("show", *arguments).text
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "a\\x1b[2J\\x202e\\x0a.py" in out or not arguments
    entries = json.loads(cli.good("show", "--only", "files", "--json").out)
    assert entries[0]["path"] == name


# Selectors


def test_selectors(cli: Scene) -> None:
    made = [cli.created() for _ in range(3)]
    digits = made[1]["snapshot_hash"].removeprefix("sha256:")

    def shown(selector: str) -> int:
        return int(cli.good("show", selector, "--json").json["savepoint"]["seq"])

    assert shown("latest") == 4
    assert shown("3") == shown("003") == 3
    assert shown(digits) == shown(f"sha256:{digits}") == shown(f"sha256:{digits[:8]}") == 3
    assert shown(f"@{made[2]['timestamp']}") == 4
    assert shown("@9999-01-01T00:00:00+02:00") == 4


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ("0", 1),
        ("1", 1),  # the birth record is no savepoint
        ("99999999999999999999999", 1),
        ("abcdef01", 1),
        ("@2001-01-01T00:00:00Z", 1),
        ("newest", 2),
        ("abcdef0", 2),
        ("ABCDEF0123", 2),
        ("sha256:abc", 2),
        ("@2026-11-30T13:26:49", 2),
        ("@yesterday", 2),
        ("", 2),
        ("٣", 2),
    ],
)
def test_selector_that_names_nothing(cli: Scene, selector: str, code: int) -> None:
    cli.created()
    ran = cli("show", selector)
    assert (ran.code, ran.out) == (code, b"")


def test_digits_of_a_hash_that_look_like_a_number(cli: Scene) -> None:
    cli.created()
    assert "write sha256: before them" in cli("show", "12345678").err


def test_latest_of_nothing_says_how_to_make_one(cli: Scene) -> None:
    ran = cli("show")
    assert ran.code == 1
    assert "savepoint create" in ran.err


def test_unknown_instance(cli: Scene) -> None:
    ran = cli("show", "--instance", "Nobody #1")
    assert ran.code == 1
    assert "Gabriel #215" in ran.err


# What was changed is not given out


def _snapshot(cli: Scene) -> Path:
    return Path(cli.good("show", "--json").json["snapshot_path"])


def test_a_changed_snapshot_is_20(cli: Scene) -> None:
    cli.created()
    path = _snapshot(cli)
    path.write_bytes(path.read_bytes().replace(b'"scope":"main"', b'"scope":"Main"'))
    ran = cli("show")
    assert (ran.code, ran.out) == (20, b"")
    assert str(path) in ran.err
    path.unlink()
    assert cli("show").code == 20


def test_a_changed_pack_is_20_and_nothing_of_it_goes_out(cli: Scene) -> None:
    cli.created()
    (pack,) = Path(cli.paths.store.objects).rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[-10] ^= 1
    pack.write_bytes(data)
    ran = cli("show", "--only", "conversation")
    assert (ran.code, ran.out) == (20, b"")
    pack.unlink()
    assert cli("show", "--only", "conversation").code == 20


def test_a_record_that_is_not_signed_is_20(cli: Scene) -> None:
    cli.created()
    index = Path(cli.paths.index_file)
    index.write_bytes(index.read_bytes().replace(b'"trigger":"manual"', b'"trigger":"manuel"'))
    ran = cli("show")
    assert ran.code == 20
    assert "signature" in ran.err
