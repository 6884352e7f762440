"""What the program writes is what docs/format.md says, as the second verifier reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.capture import payload
from savepoint.core import spelling
from savepoint.core.errors import UnsupportedFormatError
from savepoint.core.segments import Segment
from savepoint.store.packs import read_segment
from tests.cli.scene import Scene
from tests.conformance import verifier
from tests.verify import builder

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths

TRANSCRIPTS = (
    "claude-2.0.64-small.jsonl",
    "claude-2.1-all-record-types.jsonl",
    "claude-2.1.29-images.jsonl",
    "claude-2.1.5-two-compactions.jsonl",
)


def _check(paths: InstancePaths, saves: int) -> None:
    """Index and snapshots are ok, and each snapshot belongs to its record."""
    data = Path(paths.index_file).read_bytes()
    assert verifier.index(data) == {
        "expect": "ok",
        "records": 1 + saves,
        "torn": 0,
        "gaps": [],
    }
    lines = [line for line in data.splitlines() if b'"kind":"save"' in line]
    assert len(lines) == saves
    for line in lines:
        whole = Path(paths.path, verifier.record(line)["snapshot_file"]).read_bytes()
        assert verifier.outcome(verifier.snapshot, whole, {}, line) == "ok"


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_savepoints_of_real_sessions(
    shared: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    scene = Scene(tmp_path, capsysbinary)
    (tmp_path / "session_current.json").write_text('{"q_value": 0.98, "roles": ["\u00e4"]}')
    scene.good("init", "--instance", "\u00c4gidius \u6f22 #215")
    scene.created("--transcript", str(shared / "transcripts" / name))
    scene.created("--transcript", str(shared / "transcripts" / name))
    _check(scene.paths, saves=2)


def test_savepoints_with_lists_outside(tmp_path: Path) -> None:
    built = builder.new(tmp_path / "home", tmp_path / "project")
    line = builder.save(built, b"one\n", loaded={"a.py": b"print(1)\n"}, spilled=True).line
    snapshot = Path(built.paths.path, verifier.record(line)["snapshot_file"]).read_bytes()
    parts = [Segment.from_json(one) for one in json.loads(snapshot)["loaded_files"]["list"]]
    opened = {one.sha256: read_segment(built.paths.store, one) for one in parts}
    assert verifier.outcome(verifier.snapshot, snapshot, opened, line) == "ok"
    other = dict.fromkeys(opened, b"{}")
    assert verifier.outcome(verifier.snapshot, snapshot, other, line) == "tampered"


@pytest.mark.parametrize("trigger", ["", "Auto", "auto\u001b[2J", "of its own accord", "x" * 99, 7])
def test_a_trigger_that_no_record_may_hold_stops_no_save(trigger: object) -> None:
    """The client is free to say anything; a record is not."""
    told = payload.parse(json.dumps({"session_id": "a", "trigger": trigger}).encode())
    assert told.session_id == "a"
    assert told.trigger in {"", "Auto"}
    assert not told.trigger or spelling.is_word(told.trigger)


def test_nothing_is_put_behind_a_newer_record(tmp_path: Path) -> None:
    """An older program on the same store: it must neither append nor move the newer tail aside."""
    built = builder.store_of(tmp_path / "home", tmp_path / "project", 2)
    *lines, last = built.lines
    newer = last.replace(b'"v":1', b'"v":2')
    for end in (b"\n", b""):
        data = b"".join(line + b"\n" for line in lines) + newer + end
        built.index_file.write_bytes(data)
        with pytest.raises(UnsupportedFormatError):
            builder.save(built, b"more\n")
        assert built.index_file.read_bytes() == data
