"""A pack that went missing is not built on: what the session still has is stored again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.verdicts import Verdict
from savepoint.store import savepoints
from tests.store.place import Place

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.snapshot import StoredFile

_LONG = limits.SEGMENT_SOFT_BYTES  # a line of twice as many bytes closes a segment


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A long transcript, a subagent's and a file that was read; each came with a savepoint."""
    one = Place(tmp_path)
    one.say({"type": "user", "message": {"content": random.Random(1).randbytes(_LONG).hex()}})
    one.save()
    agent = one.transcript.with_suffix("") / "subagents/agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(json.dumps({"type": "user"}) + "\n", encoding="utf-8")
    one.save()
    read = one.project / "read.py"
    read.write_text("print(1)\n", encoding="utf-8")
    shown = {"filePath": str(read), "content": "print(1)\n", "numLines": 1, "startLine": 1}
    one.say({"type": "user", "toolUseResult": {"type": "text", "file": {**shown, "totalLines": 1}}})
    one.save()
    assert one.verdicts() == [Verdict.VERIFIED] * 3
    return one


def stored(place: Place, record: Record) -> dict[str, StoredFile]:
    """The files of a savepoint, by the last part of their path."""
    document = savepoints.open_snapshot(place.paths, record).document
    return {
        Path(str(file.path)).name: file for file in savepoints.files(place.paths.store, document)
    }


@pytest.mark.parametrize("lost", ["transcript", "agent-1.jsonl", "read.py"])
def test_a_save_after_a_pack_went_missing_is_whole(place: Place, lost: str) -> None:
    name = place.transcript.name if lost == "transcript" else lost
    before = stored(place, savepoints.records(place.paths).saves[-1])
    Path(place.paths.store.pack(before[name].segments[0].pack)).unlink()
    assert place.save() == 5
    found = stored(place, savepoints.records(place.paths).saves[-1])
    content = b"".join(savepoints.content(place.paths.store, found[place.transcript.name]))
    assert content == place.transcript.read_bytes()
    assert found.keys() == before.keys()
    *_, last_before, last = place.verdicts()
    assert (last_before, last) == (Verdict.TAMPERED, Verdict.VERIFIED)


def test_what_is_whole_is_built_on(place: Place) -> None:
    before = stored(place, savepoints.records(place.paths).saves[-1])
    place.save()
    after = stored(place, savepoints.records(place.paths).saves[-1])
    for name in ("agent-1.jsonl", "read.py"):
        assert after[name].segments == before[name].segments
    transcript = place.transcript.name
    assert len(before[transcript].segments) > 1
    assert after[transcript].segments[0] == before[transcript].segments[0]
