"""A record is its line: what was made is parsed, and no other line is this record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import keys, limits, record, signed_line, spelling
from savepoint.core.errors import MalformedError, SavepointError, UnsupportedFormatError
from tests.core import examples
from tests.core.values import digests, mutations, times

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

kinds = st.sampled_from(sorted(examples.bodies))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record that is no birth."""
    kind = draw(kinds)
    return record.make(
        kind,
        seq=draw(st.integers(2, 2**64 - 1)),
        prev=draw(digests),
        timestamp=draw(times),
        instance=draw(st.sampled_from(["Gabriel #215", "\u00c4gidius \u6f22 #1", "a #999999999"])),
        seed=examples.SEED,
        body=draw(examples.bodies[kind]),
    )


@given(records())
def test_what_is_made_is_parsed(one: Record) -> None:
    assert record.parse(one.line) == one
    assert one.signature_holds()
    assert one.signer == keys.public_key(examples.SEED)
    members = json.loads(one.line)
    assert list(members)[:7] == ["v", "seq", "prev", "kind", "event", "timestamp", "instance"]
    assert list(members)[-2:] == ["signer", "signature"]
    assert {name: members[name] for name in one.body} == one.body
    assert spelling.time_text(one.timestamp) == members["timestamp"]


@given(records(), st.data())
def test_any_other_line_is_refused_or_not_signed(one: Record, data: st.DataObject) -> None:
    changed = data.draw(mutations(one.line))
    try:
        found = record.parse(changed)
    except SavepointError:
        return
    assert json.loads(changed) != json.loads(one.line)
    assert found.hash != one.hash
    assert not found.signature_holds()


@given(records())
def test_unsigned_is_the_line_without_its_last_member(one: Record) -> None:
    members = json.loads(one.line)
    del members["signature"]
    bare = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    assert signed_line.unsigned(one.line) == bare


@given(records())
def test_signature_of_another_key_does_not_hold(one: Record) -> None:
    other = keys.sign(examples.OTHER_SEED, "record", signed_line.unsigned(one.line)).hex()
    forged = record.parse(one.line.replace(one.signature.hex().encode(), other.encode()))
    assert not forged.signature_holds()


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    with pytest.raises(SavepointError):
        record.parse(data)


def _restore(words: int) -> Record:
    unverified: list[Json] = ["x" * 32] * words
    return record.make(
        "restore",
        seq=2,
        prev="ab" * 32,
        timestamp=examples.NOW,
        instance=examples.INSTANCE,
        seed=examples.SEED,
        body={"from": examples.save(examples.birth()).origin(), "unverified": unverified},
    )


def test_a_record_has_at_most_8_kib() -> None:
    assert len(_restore(200).line) <= limits.RECORD_BYTES
    with pytest.raises(MalformedError, match="at most 8192"):
        _restore(260)


@pytest.mark.parametrize(
    ("kind", "seq", "prev", "reason"),
    [
        ("birth", 2, spelling.ZERO_DIGEST, "is record 1"),
        ("birth", 1, "ab" * 32, "follows no record"),
        ("retire", 1, spelling.ZERO_DIGEST, "is record 1"),
        ("retire", 0, "ab" * 32, "seq is 0"),
        ("retire", -1, "ab" * 32, "seq is not"),
        ("retire", 2**64, "ab" * 32, "64 bits"),
        ("retire", 2, "AB" * 32, "lower-case"),
    ],
)
def test_what_cannot_be_a_record_is_not_made(kind: str, seq: int, prev: str, reason: str) -> None:
    body: dict[str, object] = {"nonce": "00" * 16} if kind == "birth" else {}
    with pytest.raises(MalformedError, match=reason):
        record.make(
            kind,
            seq=seq,
            prev=prev,
            timestamp=examples.NOW,
            instance=examples.INSTANCE,
            seed=examples.SEED,
            body=body,  # type: ignore[arg-type]  # texts
        )


def test_a_newer_version_is_not_called_damaged() -> None:
    with pytest.raises(UnsupportedFormatError, match="version 2"):
        record.parse(b'{"v":2,"what":"we do not know"}')
    with pytest.raises(MalformedError):
        record.parse(b'{"v":2, "what":"is spelled otherwise"}')


def test_origin_is_what_a_later_record_names() -> None:
    one = examples.save(examples.birth())
    later = examples.save(one)
    assert one.origin() == {
        "signer": spelling.base58(one.signer),
        "seq": 2,
        "snapshot_hash": one.body["snapshot_hash"],
    }
    assert one.snapshot_hash == f"{1:064x}"
    assert later.prev == one.hash
