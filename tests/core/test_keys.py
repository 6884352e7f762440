"""Keys: derived as RFC 5869 says, one signature for one purpose, verified as Solana does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import keys
from savepoint.core.errors import MalformedError
from tests.conformance.vectors import members
from tests.core import examples

if TYPE_CHECKING:
    from pathlib import Path

KEY = keys.public_key(examples.SEED)
purposes = st.sampled_from(["record", "entry", "anchor", "bootstrap", "handoff", "receipt"])

# The vectors of C2SP/CCTV that Solana's verifier (solders 0.29.0, Signature.verify) accepts, as
# measured once; no other one.
ACCEPTED_BY_SOLANA = {
    *(7, 29, 50, 117, 139, 161, 182, 249, 305, 411, 425, 438, 465, 473, 481, 489, 497, 511, 525),
    *(538, 565, 573, 581, 589, 597, 611, 625, 638, 665, 673, 681, 689, 697, 711, 725, 738, 765),
    *(773, 781, 789, 797, 832, 899),
}
# Their rule: any other flag than a part of small order is a reason to refuse.
ALLOWED_FLAGS = {"low_order_component_A", "low_order_component_R"}
CCTV_FLAGS = {
    *ALLOWED_FLAGS,
    *("low_order_A", "low_order_R", "low_order_residue"),
    *("non_canonical_A", "non_canonical_R", "reencoded_k"),
}


def test_verdicts_are_those_of_solana(shared: Path) -> None:
    """914 edge cases. OpenSSL alone accepts 165 that Solana refuses."""
    vectors = json.loads((shared / "vectors" / "ed25519vectors.json").read_bytes())
    assert len(vectors) == 914
    accepted = set()
    for one in vectors:
        key, signature = bytes.fromhex(one["key"]), bytes.fromhex(one["sig"])
        if keys.verifies_raw(key, one["msg"].encode(), signature):
            accepted.add(one["number"])
        allowed = set(one["flags"] or ()) <= ALLOWED_FLAGS
        assert allowed == (one["number"] in accepted), one
        assert _solana_accepts(key, one["msg"].encode(), signature) == allowed, one
    assert accepted == ACCEPTED_BY_SOLANA


def test_our_own_vectors_have_every_flag_and_the_verdicts_of_solana() -> None:
    """They stand for the 914 where those are not at hand."""
    own = members("ed25519.json")
    assert {flag for one in own for flag in one["flags"]} == CCTV_FLAGS | {"high_S", "wrong"}
    for one in own:
        key, message, signature = (bytes.fromhex(one[n]) for n in ("key", "message", "signature"))
        if len(key) == 32 and len(signature) == 64:
            assert _solana_accepts(key, message, signature) == (one["expect"] == "ok"), one


def test_every_flag_of_the_914_is_known(shared: Path) -> None:
    vectors = json.loads((shared / "vectors" / "ed25519vectors.json").read_bytes())
    assert {flag for one in vectors for flag in one["flags"] or ()} == CCTV_FLAGS


def _solana_accepts(key: bytes, message: bytes, signature: bytes) -> bool:
    from solders.pubkey import Pubkey
    from solders.signature import Signature

    return Signature(signature).verify(Pubkey(key), message)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16), st.text())
def test_derivation_is_that_of_the_standard(root: bytes, nonce: bytes, instance: str) -> None:
    info = b"savepoint/authority/v1\x00" + instance.encode()
    expected = HKDF(SHA256(), length=32, salt=nonce, info=info).derive(root)
    assert keys.derive_seed(root, nonce, instance) == expected


@pytest.mark.parametrize(("root", "nonce"), [(31, 16), (33, 16), (32, 15), (32, 17), (0, 0)])
def test_derivation_takes_no_other_lengths(root: int, nonce: int) -> None:
    with pytest.raises(MalformedError):
        keys.derive_seed(bytes(root), bytes(nonce), "a #1")


@given(st.binary(max_size=60), purposes, purposes)
def test_a_signature_is_for_one_purpose(message: bytes, one: str, other: str) -> None:
    signature = keys.sign(examples.SEED, one, message)
    assert keys.verifies(KEY, one, message, signature)
    assert keys.verifies(KEY, other, message, signature) == (one == other)
    assert not keys.verifies_raw(KEY, message, signature)
    assert not keys.verifies(keys.public_key(examples.OTHER_SEED), one, message, signature)


@given(st.binary(max_size=60), st.integers(0, 95), st.integers(0, 7))
def test_no_flipped_bit_verifies(message: bytes, at: int, bit: int) -> None:
    signature = keys.sign(examples.SEED, "record", message)
    both = bytearray(KEY + signature)
    both[at] ^= 1 << bit
    assert not keys.verifies(bytes(both[:32]), "record", message, bytes(both[32:]))
    assert not keys.verifies(KEY, "record", message + bytes([bit]), signature)


@given(st.binary(max_size=70), st.binary(max_size=40))
def test_any_bytes_are_refused_as_key_or_signature(signature: bytes, key: bytes) -> None:
    assert not keys.verifies(KEY, "record", b"", signature)
    assert not keys.verifies(key, "record", b"", keys.sign(examples.SEED, "record", b""))


def test_no_signed_message_is_a_transaction() -> None:
    """Messages of Solana start with 0 to 127, or with 128 and a version: never with 255."""
    assert keys.domain("record") == b"\xffsavepoint/record/v1\x00"
    assert keys.domain("anchor")[0] == 0xFF
