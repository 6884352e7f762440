"""Vectors of BOOTSTRAP_VERIFICATION.json and modulo zero (docs/format.md, section 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    Identity,
    Members,
    Value,
    base58,
    birth,
    identity,
    spell,
    swap,
    vector,
    with_signature,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMIT = "c0ffee" + "00" * 17
NEXT = identity("Gabriel #216", bytes(range(0xC0, 0xD0)))
SIBLING = identity("Gabriel #216", bytes(range(0xD0, 0xE0)))
LATER = identity("Gabriel #218", bytes(range(0xE0, 0xF0)))


def _holder(who: Identity) -> Members:
    return {"instance": who.instance, "key": base58(who.key)}


def _members(successor: Identity = NEXT, *between: Identity, **more: Value) -> Members:
    savepoint: Members = {
        "seq": 7,
        "record": "ab" * 32,
        "snapshot_hash": "sha256:" + "cd" * 32,
        "commit": COMMIT,
    }
    members: Members = {
        "v": 1,
        "type": "BOOTSTRAP_VERIFICATION",
        "timestamp": "2026-11-30T13:26:49Z",
        "predecessor": {**_holder(GABRIEL), "savepoint": savepoint},
        "successor": {**_holder(successor), "nonce": successor.nonce.hex()},
        "between": [_holder(one) for one in between],
    }
    return members | more


def _signed(bare: bytes, who: Identity = GABRIEL, purpose: str = "bootstrap") -> bytes:
    return with_signature(bare, who.sign(bare, purpose).hex()) + b"\n"


def _born(who: Identity) -> str:
    return who.line(spell(birth(who))).decode()


def _held(number: int, who: Identity = SIBLING) -> Identity:
    return who._replace(instance=f"Gabriel #{number}")


def vectors() -> list[Members]:
    """`birth`: the birth record of the instance that the document lies with."""
    bare = spell(_members())
    good = _signed(bare)
    made = [vector("good", "ok", good, birth=_born(NEXT)), *_lawful(), *_unlawful()]
    for name, data in {
        "changed": swap(good, '"seq":7', '"seq":8'),
        "signed_by_the_successor": _signed(bare, NEXT),
        "signed_as_a_record": _signed(bare, GABRIEL, "record"),
        "signature_of_zeros": with_signature(bare, "00" * 64) + b"\n",
    }.items():
        made.append(vector(name, "tampered", data, birth=_born(NEXT)))
    for name, data in _malformed(bare, good):
        made.append(vector(name, "malformed", data, birth=_born(NEXT)))
    newer = spell({"v": 2, "anything": []}) + b"\n"
    return [*made, vector("version_2", "unsupported", newer, birth=_born(NEXT))]


def _lawful() -> Iterator[Members]:
    uncommitted = swap(spell(_members()), f'"{COMMIT}"', "null")
    skipped = [_held(216), _held(217)]
    yield vector("of_no_commit", "ok", _signed(uncommitted), birth=_born(NEXT))
    for name, between in (
        ("numbers_held_in_between", skipped),
        ("siblings_in_between", [*skipped, NEXT]),
        ("in_between_in_any_order", skipped[::-1]),
    ):
        yield vector(name, "ok", _signed(spell(_members(LATER, *between))), birth=_born(LATER))


def _unlawful() -> Iterator[Members]:
    """Signed by the predecessor, and not modulo zero."""
    same_key = GABRIEL._replace(instance="Gabriel #216")
    before = identity("Gabriel #214", bytes(16))
    renamed = identity("Raphael #216", bytes(16))
    stories: dict[str, tuple[Identity, list[Identity], Identity]] = {
        "birth_of_a_sibling": (NEXT, [], SIBLING),
        "birth_of_another_name": (NEXT, [], NEXT._replace(instance="Gabriel #217")),
        "birth_with_another_nonce": (NEXT, [], NEXT._replace(nonce=bytes(16))),
        "same_key": (same_key, [], same_key),
        "another_name": (renamed, [], renamed),
        "same_number": (_held(215), [], _held(215)),
        "lower_number": (before, [], before),
        "number_left_out": (LATER, [_held(216)], LATER),
        "numbers_left_out": (LATER, [], LATER),
        "in_between_too_low": (LATER, [_held(215), _held(216), _held(217)], LATER),
        "in_between_too_high": (NEXT, [_held(216)], NEXT),
        "another_name_in_between": (LATER, [_held(216), _held(217), STRANGER], LATER),
    }
    for name, (successor, between, born) in stories.items():
        data = _signed(spell(_members(successor, *between)))
        yield vector(name, "tampered", data, birth=_born(born))


def _malformed(bare: bytes, good: bytes) -> Iterator[tuple[str, bytes]]:
    yield "lf_missing", good[:-1]
    yield "two_lf", good + b"\n"
    yield "crlf", good[:-1] + b"\r\n"
    yield "second_spelling", swap(good, '"between":[]', '"between": []')
    yield "signature_missing", bare + b"\n"
    capitals = GABRIEL.sign(bare, "bootstrap").hex().upper()
    yield "signature_in_capitals", with_signature(bare, capitals) + b"\n"
    for name, old, new in (
        ("another_type", "BOOTSTRAP_VERIFICATION", "BOOTSTRAP"),
        ("version_0", '{"v":1', '{"v":0'),
        ("seq_zero", '"seq":7', '"seq":0'),
        ("hash_without_prefix", '"sha256:', '"'),
        ("commit_of_another_length", COMMIT, COMMIT + "00"),
        ("nonce_cut", NEXT.nonce.hex(), NEXT.nonce.hex()[:-2]),
        ("name_without_a_number", "Gabriel #216", "Gabriel"),
        ("key_that_is_none", base58(NEXT.key), "0" + base58(NEXT.key)[1:]),
        ("between_is_null", '"between":[]', '"between":null'),
        ("time_of_no_day", "2026-11-30", "2026-11-31"),
        ("member_missing", ',"between":[]', ""),
        ("extra_member", '"between":[]', '"between":[],"x":1'),
        (
            "members_in_another_order",
            '"v":1,"type":"BOOTSTRAP_VERIFICATION"',
            '"type":"BOOTSTRAP_VERIFICATION","v":1',
        ),
    ):
        yield name, _signed(swap(bare, old, new))
