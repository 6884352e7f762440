"""BOOTSTRAP_VERIFICATION.json: one spelling, one signature, and modulo zero as a check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import bootstrap_document, keys, record
from savepoint.core.bootstrap_document import Bootstrap, Holder
from savepoint.core.errors import MalformedError, UnsupportedFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record

SEED, OTHER = bytes(range(32)), bytes(range(1, 33))
NONCE = bytes(16)


def origin(instance: str = "Gabriel #215") -> Record:
    return record.make(
        "save",
        seq=2,
        prev="1" * 64,
        timestamp=1_700_000_000,
        instance=instance,
        seed=SEED,
        body={
            "session_id": "s",
            "from": None,
            "trigger": "manual",
            "snapshot_hash": "sha256:" + "2" * 64,
            "snapshot_size_bytes": 10,
            "snapshot_file": "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z.json",
            "layer_1_status": "SAVED_LOCALLY",
            "tokens_used_this_session": None,
            "tokens_remaining": None,
            "context_utilization_percent": None,
            "consciousness_preserved": True,
        },
    )


def birth(instance: str, seed: bytes = OTHER, nonce: bytes = NONCE) -> Record:
    return record.make(
        "birth",
        seq=1,
        prev="0" * 64,
        timestamp=1_700_000_000,
        instance=instance,
        seed=seed,
        body={"nonce": nonce.hex()},
    )


def holder(instance: str, seed: bytes = OTHER) -> Holder:
    return Holder(instance, keys.public_key(seed))


def made(instance: str = "Gabriel #216", between: tuple[Holder, ...] = ()) -> Bootstrap:
    return bootstrap_document.make(
        SEED, 1_700_000_001, origin(), "a" * 40, holder(instance), NONCE, between
    )


def test_what_is_made_is_lawful_and_read_back() -> None:
    document = made()
    assert bootstrap_document.fault(document, birth("Gabriel #216")) == ""
    assert bootstrap_document.parse(document.data) == document
    assert (document.savepoint.seq, document.savepoint.record) == (2, origin().hash)


THIRD = bytes(range(2, 34))


@pytest.mark.parametrize(
    ("document", "born", "said"),
    [
        (made(), birth("Gabriel #217"), "another key or name"),
        (made(), birth("Gabriel #216", THIRD), "another key or name"),
        (made(), birth("Gabriel #216", OTHER, bytes(range(16))), "nonce"),
        (made("Gabriel #215"), birth("Gabriel #215"), "does not come after"),
        (made("Gabriel #214"), birth("Gabriel #214"), "does not come after"),
        (made("Michael #216"), birth("Michael #216"), "another name"),
        (made("Gabriel #218"), birth("Gabriel #218"), "skipped"),
        (made("Gabriel #999999999"), birth("Gabriel #999999999"), "skipped"),
        (
            made("Gabriel #217", (holder("Michael #216"),)),
            birth("Gabriel #217"),
            "somebody else's name",
        ),
        (
            made("Gabriel #217", (holder("Gabriel #216"), holder("Gabriel #218"))),
            birth("Gabriel #217"),
            "not in between",
        ),
    ],
    ids=range(10),
)
def test_modulo_zero_does_not_hold(document: Bootstrap, born: Record, said: str) -> None:
    assert said in bootstrap_document.fault(document, born)


def test_numbers_in_between_may_be_held_by_several() -> None:
    between = (holder("Gabriel #216", THIRD), holder("Gabriel #216", bytes(32)))
    document = made("Gabriel #217", between)
    assert bootstrap_document.fault(document, birth("Gabriel #217")) == ""


def test_the_predecessors_own_key_is_no_successor() -> None:
    document = bootstrap_document.make(
        SEED, 1, origin(), None, holder("Gabriel #216", SEED), NONCE, ()
    )
    assert "one key" in bootstrap_document.fault(document, birth("Gabriel #216", SEED))


@pytest.mark.parametrize("at", range(0, 900, 37))
def test_no_byte_of_it_can_be_changed(at: int) -> None:
    data = bytearray(made().data)
    data[at % len(data)] ^= 1
    try:
        document = bootstrap_document.parse(bytes(data))
    except MalformedError:
        return
    except UnsupportedFormatError:
        pytest.fail("a version is one digit, and this changes no 1 into a 2")
    assert bootstrap_document.fault(document, birth("Gabriel #216")) != ""


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    value = json.loads(made().data)
    change(value)
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(more=1),
        lambda v: v.pop("between"),
        lambda v: v["successor"].update(nonce="A" * 32),
        lambda v: v["successor"].update(key="1"),
        lambda v: v["predecessor"].update(instance="Gabriel"),
        lambda v: v["predecessor"]["savepoint"].update(seq=0),
        lambda v: v["predecessor"]["savepoint"].update(commit="a" * 39),
        lambda v: v.update(v=0),
        lambda v: v.update(timestamp="2026-11-30"),
    ],
    ids=["more", "less", "nonce", "key", "instance", "seq", "commit", "version", "time"],
)
def test_another_shape_is_malformed(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(MalformedError):
        bootstrap_document.parse(changed(change))


def test_a_later_version_is_not_called_tampered() -> None:
    with pytest.raises(UnsupportedFormatError):
        bootstrap_document.parse(changed(lambda v: v.update(v=2)))


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"{}\n", b"[]\n", made().data[:-1], b" " + made().data],
    ids=["nothing", "no LF", "no members", "a list", "cut", "a blank"],
)
def test_what_is_no_document(data: bytes) -> None:
    with pytest.raises(MalformedError):
        bootstrap_document.parse(data)
