"""Snapshots: what is sealed is opened, what is not exactly that is refused, files are all told."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits, snapshot, strict_json
from savepoint.core.errors import MalformedError, SavepointError, TamperedError
from tests.core import examples
from tests.core.values import json_values, mutations

if TYPE_CHECKING:
    from savepoint.core.segments import Segment
    from savepoint.core.strict_json import Json

TIME = "2026-11-30T13:26:49Z"
SEALED = snapshot.seal(examples.document(), TIME)


def _document(**members: object) -> dict[str, Json]:
    """The example; `a__b` names the member b of a."""
    whole = copy.deepcopy(examples.document())
    for name, value in members.items():
        *way, last = name.split("__")
        place: Any = whole
        for step in way:
            place = place[step]
        place[last] = value
    return whole


def _unread(one: Segment) -> bytes:
    raise AssertionError(f"segment {one.sha256} was read")


@given(json_values, st.lists(st.text(), max_size=3), st.integers(0, 2**64 - 1))
def test_what_is_sealed_is_opened(state: Json, notes: list[str], tokens: int) -> None:
    document = _document(session_state=state, notes=notes, tokens_remaining=tokens)
    sealed = snapshot.seal(document, TIME)
    assert snapshot.parse(sealed.data) == sealed
    assert sealed.hash == hashlib.sha256(sealed.data).hexdigest()
    integrity = sealed.document.pop("integrity")
    assert sealed.document == document
    covered = strict_json.dump(document) + b"\n"
    assert integrity == {
        "hash_sha256": hashlib.sha256(covered).hexdigest(),
        "size_bytes": len(covered),
        "created_at": TIME,
    }


@given(mutations(SEALED.data))
def test_no_other_bytes_are_a_snapshot(changed: bytes) -> None:
    """The time of sealing alone is covered by nothing but the record's hash of the whole file."""
    try:
        found = snapshot.parse(changed)
    except SavepointError:
        return
    assert json.loads(changed) != json.loads(SEALED.data)
    differing = {name for name in found.document if found.document[name] != SEALED.document[name]}
    assert differing == {"integrity"}
    assert found.hash != SEALED.hash


def test_every_flipped_byte_is_seen() -> None:
    data = SEALED.data
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            assert snapshot.parse(changed).hash != SEALED.hash
        except SavepointError:
            continue
        assert b'"created_at"' in data[at - 40 : at]


def test_every_cut_is_refused() -> None:
    for at in range(len(SEALED.data)):
        with pytest.raises(MalformedError):
            snapshot.parse(SEALED.data[:at])


@given(st.binary(max_size=100) | json_values.map(strict_json.dump))
def test_any_bytes_are_refused(data: bytes) -> None:
    for text in (data, data + b"\n", b'{"format":1,"a":' + data + b"}\n"):
        with pytest.raises(MalformedError):
            snapshot.parse(text)


def _nested(depth: int) -> Json:
    value: Json = 0
    for _ in range(depth):
        value = [value]
    return value


def test_what_could_not_be_read_back_is_not_sealed() -> None:
    """A session_current.json at the limit of depth once gave a snapshot that parse refused."""
    snapshot.seal(_document(session_state=_nested(limits.JSON_DEPTH - 1)), TIME)
    for state in (_nested(limits.JSON_DEPTH), 1.5, "\ud800", 2**64, {"a": float("nan")}):
        with pytest.raises((MalformedError, ValueError)):
            snapshot.seal(_document(session_state=state), TIME)
    with pytest.raises(MalformedError):
        snapshot.seal(_document(integrity={}), TIME)


def test_a_snapshot_has_at_most_8_mib() -> None:
    empty = len(snapshot.seal(_document(notes=[""]), TIME).data)
    room = limits.SNAPSHOT_BYTES - empty - 3  # its size_bytes has three digits more
    whole = snapshot.seal(_document(notes=["x" * room]), TIME)
    assert len(whole.data) == limits.SNAPSHOT_BYTES
    with pytest.raises(MalformedError):
        snapshot.seal(_document(notes=["x" * (room + 1)]), TIME)


LOADED = {
    "known": "read",
    "sha256": hashlib.sha256(b"five\n").hexdigest(),
    "size": 5,
    "changed": None,
    "reason": None,
    "segments": [examples.segment(b"five\n").to_json()],
}
CHANGE = {
    "path": {"b64": "/w=="},
    "kind": "untracked",
    "mode": "100644",
    "bytes": 4,
    "segments": [examples.segment(b"six\n").to_json()],
}
EVERYTHING = _document(
    session_current={**examples.stored("s.json", b"four"), "numbers_as_text": []},
    loaded_files={"a.py": LOADED, ".env": LOADED | {"segments": None, "reason": "excluded"}},
    git_state__changes__files=[CHANGE],
    git_state__changes__deleted=["gone"],
    git_state__changes__excluded=[{"path": ".env", "reason": "excluded"}],
)


def _raw(files: list[snapshot.StoredFile]) -> list[tuple[str, object, int]]:
    return [(one.part, one.path, one.bytes) for one in files]


def test_all_files_are_told() -> None:
    document = snapshot.seal(EVERYTHING, TIME).document
    files = list(snapshot.files(document, _unread))
    assert _raw(files) == [
        ("conversation", "a.jsonl", 8),
        ("companion", "a/agent.jsonl", 6),
        ("state", "s.json", 4),
        ("files", "a.py", 5),
        ("changes", {"b64": "/w=="}, 4),
    ]
    assert [one.sha256 for one in files if one.part == "files"] == [LOADED["sha256"]]
    assert not any(map(snapshot.check_file, files))
    assert list(snapshot.spilled_lists(document)) == []


def _spill(document: dict[str, Json], path: tuple[str, ...], data: bytes, count: int) -> Segment:
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    one = examples.segment(data)
    place[path[-1]] = {"list": [one.to_json()], "count": count}
    return one


@pytest.mark.parametrize("path", snapshot.SPILLABLE, ids="/".join)
def test_a_spilled_list_is_the_list(path: tuple[str, ...]) -> None:
    plain = snapshot.seal(EVERYTHING, TIME).document
    value = snapshot.member_at(plain, path)
    assert isinstance(value, list | dict)
    data = strict_json.dump(value)
    document = copy.deepcopy(EVERYTHING)
    one = _spill(document, path, data, len(value))
    spilled = snapshot.seal(document, TIME).document
    assert list(snapshot.spilled_lists(spilled)) == [(one,)]
    assert snapshot.unspill(spilled, path, lambda _: data) == value
    assert list(snapshot.files(spilled, lambda _: data)) == list(snapshot.files(plain, _unread))


@pytest.mark.parametrize("path", snapshot.SPILLABLE, ids="/".join)
@pytest.mark.parametrize(
    ("data", "count"),
    [(b"[1]", 1), (b'{"a":1}', 1), (b"[ ]", 0), (b"", 0), (b"1", 1), (b"null", 0)],
)
def test_what_is_not_that_list_is_refused(path: tuple[str, ...], data: bytes, count: int) -> None:
    """It once was a KeyError."""
    document = copy.deepcopy(EVERYTHING)
    _spill(document, path, data or b"x", count)
    sealed = snapshot.seal(document, TIME).document
    with pytest.raises(MalformedError):
        snapshot.unspill(sealed, path, lambda _: data)
    if path[-1] not in {"deleted", "excluded"}:  # these hold no files
        with pytest.raises(MalformedError):
            list(snapshot.files(sealed, lambda _: data))


def test_a_spilled_list_of_other_length_is_tampered() -> None:
    document = copy.deepcopy(EVERYTHING)
    path = ("git_state", "changes", "deleted")
    _spill(document, path, b'["a"]', 2)
    with pytest.raises(TamperedError):
        snapshot.unspill(snapshot.seal(document, TIME).document, path, lambda _: b'["a"]')


def test_a_spilled_list_that_is_too_long_is_not_read() -> None:
    long = examples.segment(b"x")._replace(bytes=limits.SEGMENT_HARD_BYTES).to_json()
    count = limits.SPILLED_LIST_BYTES // limits.SEGMENT_HARD_BYTES + 1
    document = _document(loaded_files={"list": [long] * count, "count": 1})
    with pytest.raises(MalformedError, match="too long"):
        list(snapshot.files(snapshot.seal(document, TIME).document, _unread))


@pytest.mark.parametrize(
    ("member", "value", "fault"),
    [
        ("bytes", 7, "size"),
        ("root", "ab" * 32, "root"),
        ("segments", [examples.segment(b"one\n").to_json()], "size"),
        ("segments", [examples.segment(s).to_json() for s in (b"two\n", b"one\n")], "root"),
    ],
)
def test_a_file_that_does_not_fit_its_segments_is_named(
    member: str, value: Json, fault: str
) -> None:
    transcript = examples.stored("a.jsonl", b"one\n", b"two\n") | {member: value}
    document = _document(conversation_history__transcript=transcript)
    file = next(snapshot.files(snapshot.seal(document, TIME).document, _unread))
    assert fault in snapshot.check_file(file)
    assert "a.jsonl" in snapshot.check_file(file)
