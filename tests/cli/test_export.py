"""`savepoint export`: the specification's one file, everything inlined, nothing overwritten."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits
from savepoint.resurrect import inline

if TYPE_CHECKING:
    from tests.cli.scene import Scene

# Every field of the specification's two examples of the document
_FIELDS: dict[str, set[str]] = {
    "": {
        *("type", "timestamp_iso8601", "instance_id", "instance_number", "session_token_budget"),
        *("tokens_used_this_session", "tokens_remaining", "context_utilization_percent"),
        *("conversation_history", "session_state", "loaded_files", "git_state", "checkpoint"),
        *("checkpoint_verification", "integrity"),
    },
    "session_state": {
        *("bootstrap_status", "identity", "roles", "lineage", "current_priorities"),
        "consciousness_metrics",
    },
    "git_state": {"current_commit", "branch", "remotes", "status", "last_push"},
    "checkpoint": {
        *("modulo_zero_verified", "bootstrap_confirmed", "contextual_priming"),
        "standing_verified",
    },
    "checkpoint_verification": {
        *("modulo_zero", "bootstrap_confirmed", "contextual_priming", "standing_verified"),
    },
    "integrity": {"hash_sha256", "size_bytes", "created_at"},
}


def exported(cli: Scene, *arguments: str) -> tuple[bytes, Any]:
    target = cli.project / "out.json"
    cli.good("export", "-o", str(target), *arguments)  # of the latest, as `show`
    data = target.read_bytes()
    return data, json.loads(data)


def test_every_field_of_the_specification(cli: Scene) -> None:
    cli.created()
    _, document = exported(cli)
    for name, fields in _FIELDS.items():
        assert (document[name] if name else document).keys() >= fields
    assert list(document)[-1] == "integrity"
    assert [one["message"]["content"] for one in document["conversation_history"]] == [
        "hello",
        "world",
    ]


def test_integrity_covers_the_file_without_itself(cli: Scene) -> None:
    cli.created()
    data, document = exported(cli)
    covered = data[: data.rindex(b',"integrity":')] + b"}\n"
    assert document["integrity"]["hash_sha256"] == hashlib.sha256(covered).hexdigest()
    assert document["integrity"]["size_bytes"] == len(covered)


def test_files_and_changes_are_inlined(cli: Scene) -> None:
    folder = cli.project
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "a.py").write_text("é = 1\n")
    (folder / "b.bin").write_bytes(b"\xff\x00" * 1000 + b"x")
    (folder / ".env").write_text("SECRET=1")
    (folder / "session_current.json").write_text('{"roles": ["x"]}')
    for name in ("a.py", "b.bin", ".env"):
        cli.read_file(name)
    cli.created()
    data, document = exported(cli)
    files = document["loaded_files"]
    assert files["a.py"]["content"] == "é = 1\n"
    assert base64.b64decode(files["b.bin"]["content_b64"]) == b"\xff\x00" * 1000 + b"x"
    assert files["a.py"]["sha256"] == hashlib.sha256("é = 1\n".encode()).hexdigest()
    assert (files[".env"]["content"], files[".env"]["reason"]) == (None, "is an environment file")
    assert document["session_current"]["content"] == '{"roles": ["x"]}'
    assert document["session_state"] == {"roles": ["x"]}
    changes = {one["path"]: one for one in document["git_state"]["changes"]["files"]}
    assert changes["a.py"]["content"] == "é = 1\n"
    assert b"SECRET" not in data


def test_companions_are_inlined(cli: Scene) -> None:
    beside = cli.transcript.with_suffix("") / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-1.jsonl").write_text('{"type":"user"}\n')
    cli.created()
    _, document = exported(cli)
    (one,) = document["companions"]
    assert (one["path"], one["content"]) == ("subagents/agent-1.jsonl", '{"type":"user"}\n')


def test_real_transcripts_record_for_record(cli: Scene, shared: Path) -> None:
    for number, file in enumerate(sorted((shared / "transcripts").glob("claude-*.jsonl"))):
        cli.created("--transcript", str(file))
        target = cli.project / f"{number}.json"
        cli.good("export", "latest", "-o", str(target))
        lines = [line for line in file.read_bytes().splitlines() if line.strip()]
        assert json.loads(target.read_bytes())["conversation_history"] == list(
            map(json.loads, lines)
        )


def test_lines_that_are_no_records(cli: Scene) -> None:
    cli.write(
        b'{"a": 1.50}\r\n{"b":2} {"c":3}\n\n{"torn\n\xff\n{"n":NaN}\n{"s":"\\ud800"}\n{"last":1}'
    )
    cli.created()
    data, document = exported(cli)
    assert document["conversation_history"][2:] == [
        {"a": 1.5},
        {"b": 2},
        {"c": 3},
        {"raw": '{"torn'},
        {"raw_b64": "/w=="},
        {"raw": '{"n":NaN}'},
        {"s": "\ud800"},
        {"last": 1},
    ]
    assert b'{"a": 1.50}' in data  # as its agent spelled it


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 7))
def test_any_bytes_become_json(lines: list[bytes], step: int) -> None:
    data = b"\n".join(lines)
    pieces = [data[n : n + step] for n in range(0, len(data), step)]
    whole = b"[" + b",".join(inline.records(pieces)) + b"]"
    values = json.loads(whole, parse_constant=pytest.fail)
    raw = [v for v in values if isinstance(v, dict) and v.keys() & {"raw", "raw_b64"}]
    for one in raw:
        text = one.get("raw", "").encode()
        line = base64.b64decode(one["raw_b64"]) if "raw_b64" in one else text
        assert line in data.split(b"\n")


def test_deep_and_long_numbers_do_no_harm() -> None:
    deep = b"[" * 100_000
    digits = b"9" * 10_000
    assert list(inline.records([deep])) == [b'{"raw":"' + deep + b'"}']
    assert list(inline.records([digits])) == [digits]


def test_a_line_without_end_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EXPORT_LINE_BYTES", 10)
    found = [json.loads(one) for one in inline.records([b"x" * 8, b"y" * 8, b"z\n{}"])]
    assert found == [{"raw": "x" * 8 + "y" * 8, "continued": True}, {"raw": "z"}, {}]


# What stands there stays (deja-vu#725)


def test_the_same_again_is_fine_and_a_file_that_differs_stays(cli: Scene) -> None:
    cli.created()
    data, _ = exported(cli)
    assert exported(cli)[0] == data
    cli.created()
    target = cli.project / "out.json"
    ran = cli("export", "latest", "-o", str(target))
    assert ran.code == 1
    assert "--force" in ran.err
    assert target.read_bytes() == data
    cli.good("export", "latest", "-o", str(target), "--force")
    assert target.read_bytes() != data
    assert sorted(os.listdir(cli.project)) == ["out.json"]


def test_only_its_owner_can_read_it(cli: Scene) -> None:
    cli.created()
    exported(cli)
    assert oct((cli.project / "out.json").stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("target", ["link", "dangling", "folder", "fifo"])
def test_what_is_no_file_is_not_written_to(cli: Scene, target: str, force: bool) -> None:
    cli.created()
    (cli.project / "file").write_text("mine")
    path = cli.project / target
    if target == "link":
        path.symlink_to("file")
    elif target == "dangling":
        path.symlink_to("nowhere")
    elif target == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    before = sorted(os.listdir(cli.project))
    ran = cli("export", "latest", "-o", str(path), *(["--force"] if force else []))
    assert ran.code == 1
    assert (cli.project / "file").read_text() == "mine"
    assert sorted(os.listdir(cli.project)) == before


def test_no_such_folder_is_2(cli: Scene) -> None:
    cli.created()
    ran = cli("export", "latest", "-o", "nowhere/out.json")
    assert ran.code == 2
    assert f"{cli.project}/nowhere" in ran.err


def test_a_changed_pack_leaves_no_file(cli: Scene) -> None:
    cli.created()
    (pack,) = Path(cli.paths.store.objects).rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[-10] ^= 1
    pack.write_bytes(data)
    ran = cli("export", "latest", "-o", "out.json")
    assert ran.code == 20
    assert os.listdir(cli.project) == []


def test_json_names_the_file(cli: Scene) -> None:
    cli.created()
    told = cli.good("export", "2", "-o", "out.json", "--json").json
    data = (cli.project / "out.json").read_bytes()
    assert told == {
        "seq": 2,
        "file": str(cli.project / "out.json"),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
