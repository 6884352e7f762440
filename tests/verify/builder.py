"""Small stores as the program makes them, and ways to spoil them."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from savepoint.capture.loaded import store_bytes
from savepoint.core import limits, record, segments, snapshot, spelling
from savepoint.core.snapshot import TYPE
from savepoint.core.spelling import Instance
from savepoint.core.strict_json import Json, dump
from savepoint.store import birth, config
from savepoint.store.acknowledge import Draft, acknowledge
from savepoint.store.keys import keyring
from savepoint.store.layout import Home, InstancePaths
from savepoint.store.packs import PackWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import Snapshot

NOW = 1_790_000_000  # Unix seconds of the birth
INSTANCE = Instance("Gabriel", 215)
SESSION = "0f5b2a52-3f0e-4e5b-9d0a-8a2f5f0f7c11"


class Built(NamedTuple):
    """An instance with savepoints, and what is known of its next one."""

    paths: InstancePaths
    known: dict[str, Segment]

    @property
    def index_file(self) -> Path:
        return Path(self.paths.index_file)

    @property
    def trusted(self) -> Path:
        return Path(self.paths.trusted)

    @property
    def lines(self) -> list[bytes]:
        """Without LF."""
        return self.index_file.read_bytes().splitlines()

    def write_lines(self, *lines: bytes) -> None:
        self.index_file.write_bytes(b"".join(line + b"\n" for line in lines))

    def records(self) -> list[Record]:
        return [record.parse(line) for line in self.lines]

    def snapshot(self, one: Record) -> Path:
        return Path(self.paths.path, one.snapshot_file)

    def packs(self) -> list[Path]:
        return sorted(Path(self.paths.store.objects).rglob("*.pack"))

    @property
    def seed(self) -> bytes:
        return keyring.authority(self.paths)

    def make(self, kind: str, seq: int, prev: str, body: dict[str, Json], seed: bytes) -> Record:
        """A signed record that the program would not have made now."""
        return record.make(
            kind,
            seq=seq,
            prev=prev,
            timestamp=NOW + seq,
            instance=str(INSTANCE),
            seed=seed,
            body=body,
        )


def new(home: Path, project: Path) -> Built:
    """A store whose index has its birth record only."""
    project.mkdir(exist_ok=True)
    store = birth.create_store(Home(str(home)), str(project), INSTANCE, NOW)
    config.load(store)._replace(ledger=None).save(store)
    (folder,) = Path(store.path, "instances").iterdir()
    return Built(store.instance(folder.name), {})


def copy(built: Built, home: Path) -> Built:
    """The same store in another home."""
    shutil.copytree(built.paths.store.home, home)
    store = Home(str(home)).store(built.paths.store.id)
    return Built(store.instance(built.paths.slug), dict(built.known))


def save(
    built: Built,
    transcript: bytes,
    *,
    loaded: Mapping[str, bytes] | None = None,
    spilled: bool = False,
    document: Mapping[str, Json] | None = None,
) -> Record:
    """One more savepoint. `spilled` keeps the list of loaded files outside the snapshot; `document`
    replaces members of it.
    """
    with PackWriter(built.paths.store, built.known) as packs:
        history = store_bytes(transcript, packs)
        files = {path: store_bytes(data, packs) for path, data in (loaded or {}).items()}
        packs.finish()
        entries = {
            path: _loaded(data, _settled(files[path], packs))
            for path, data in (loaded or {}).items()
        }
        kept: Json = dict(entries)
        if spilled:
            parts = store_bytes(dump(kept), packs)
            packs.finish()
            listed = [one.to_json() for one in _settled(parts, packs)]
            kept = {"list": listed, "count": len(entries)}
        whole = _document(_file("t.jsonl", transcript, _settled(history, packs)), kept)
        built.known.update({one.sha256: one for one in _settled(history, packs)})
    seq = len(built.lines) + 1
    whole["timestamp_iso8601"] = spelling.time_text(NOW + 60 * seq)
    whole |= document or {}
    draft = Draft(built.paths.slug, SESSION, "manual", None, whole)
    deadline = time.monotonic() + limits.LOCK_WAIT_SECONDS
    return acknowledge(built.paths, built.seed, draft, deadline, _leave_to_git).record


def _leave_to_git(_record: Record, _snapshot: Snapshot) -> None:
    """A store of a test has its commits made by the tests of git."""


def store_of(home: Path, project: Path, count: int) -> Built:
    """A store with `count` savepoints, each of a transcript that grew."""
    built = new(home, project)
    transcript = b""
    for number in range(count):
        transcript += b'{"message": %d}\n' % number
        save(built, transcript, loaded={"a.py": b"print(%d)\n" % number})
    return built


def forge(built: Built, data: bytes, **members: Json) -> Record:
    """A savepoint that the key signed for any bytes as its snapshot; `members` of its record."""
    seq = len(built.lines) + 1
    timestamp = spelling.time_text(NOW + seq)
    name = f"logs/precompact-saves/snapshot_{timestamp.replace(':', '-')}.json"
    body: dict[str, Json] = {
        "session_id": SESSION,
        "from": None,
        "trigger": "manual",
        "snapshot_hash": "sha256:" + hashlib.sha256(data).hexdigest(),
        "snapshot_size_bytes": len(data),
        "snapshot_file": name,
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": 1000,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": True,
    }
    Path(built.paths.path, name).write_bytes(data)
    one = built.make("save", seq, built.records()[-1].hash, body | members, built.seed)
    built.write_lines(*built.lines, one.line)
    return one


def spoilt(built: Built, change: Callable[[dict[str, Json]], None]) -> Record:
    """A savepoint that the key signed for the newest one's document after `change`."""
    document = snapshot.parse(built.snapshot(built.records()[-1]).read_bytes()).document
    document.pop("integrity")
    document["timestamp_iso8601"] = spelling.time_text(NOW + len(built.lines) + 1)
    change(document)
    return forge(built, snapshot.seal(document, spelling.time_text(NOW)).data)


def flip(path: Path, at: int) -> None:
    """Change one byte in place; a negative `at` counts from the end."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x01
    path.write_bytes(data)


def _settled(listed: tuple[Segment, ...], packs: PackWriter) -> tuple[Segment, ...]:
    return tuple(packs.settled(one) for one in listed)


def _file(path: str, data: bytes, listed: tuple[Segment, ...]) -> dict[str, Json]:
    return {
        "path": path,
        "bytes": len(data),
        "root": segments.root_of(listed),
        "segments": [one.to_json() for one in listed],
    }


def _loaded(data: bytes, listed: tuple[Segment, ...]) -> dict[str, Json]:
    return {
        "known": "read",
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "changed": False,
        "reason": None,
        "segments": [one.to_json() for one in listed],
    }


def as_newer_version(newer: pytest.MonkeyPatch) -> None:
    """What is saved now has a later format, of which nothing is known but that number."""
    newer.setattr(snapshot, "FORMAT", snapshot.FORMAT + 1)
    newer.setattr(snapshot, "_SHAPE", lambda _document, _what: None)


def _document(transcript: Json, loaded: Json) -> dict[str, Json]:
    return {
        "format": snapshot.FORMAT,
        "type": TYPE,
        "timestamp_iso8601": "",
        "instance_id": str(INSTANCE),
        "instance_number": INSTANCE.number,
        "salt": "00" * 16,
        "session_token_budget": None,
        "tokens_used_this_session": 1000,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "token_source": None,
        "conversation_history": {
            "agent": "claude-code",
            "client_version": None,
            "session_id": SESSION,
            "scope": "main",
            "message_count": 1,
            "records": 1,
            "sessions": {},
            "compactions": 0,
            "torn_tail_bytes": 0,
            "prefix_check": "full",
            "transcript": transcript,
            "companions": [],
        },
        "session_state": {},
        "session_current": None,
        "loaded_files": loaded,
        "git_state": {
            "current_commit": None,
            "branch": None,
            "remotes": {},
            "status": "",
            "last_push": "unknown",
            "object_format": None,
            "operation": None,
            "roots": {"project": "/project", "worktree": None},
            "changes": {"files": [], "deleted": [], "excluded": [], "omitted": None},
        },
        "omitted": [],
        "notes": [],
    }
