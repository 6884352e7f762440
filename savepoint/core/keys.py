"""Authorities: derived from the root seed, signing under a domain, verified strictly."""

from __future__ import annotations

from savepoint.core.errors import MalformedError

SEED_BYTES = 32
NONCE_BYTES = 16
SIGNATURE_BYTES = 64

_FIELD = 2**255 - 19
_ORDER_8_Y = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    "little",
)
# The y coordinates of the eight points of the small subgroup (orders 4, 1, 2, 8, 8)
_SMALL_ORDER_Y = {0, 1, _FIELD - 1, _ORDER_8_Y, _FIELD - _ORDER_8_Y}


def domain(purpose: str) -> bytes:
    """What is signed starts with this. 0xFF keeps a signed message from being a transaction."""
    return b"\xffsavepoint/" + purpose.encode() + b"/v1\0"


def derive_seed(root_seed: bytes, nonce: bytes, instance_id: str) -> bytes:
    """The ed25519 seed (32 bytes) of an instance: HKDF-SHA256 (RFC 5869), one output block.

    root_seed: 32 bytes. nonce: 16 bytes, public, stands in the birth record.
    """
    import hashlib
    import hmac  # a save derives nothing

    if len(root_seed) != SEED_BYTES or len(nonce) != NONCE_BYTES:
        raise MalformedError("a root seed has 32 bytes and a birth nonce 16")
    info = b"savepoint/authority/v1\0" + instance_id.encode("utf-8")
    extracted = hmac.digest(nonce, root_seed, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def public_key(seed: bytes) -> bytes:
    """The 32 bytes of the authority whose seed this is."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def sign(seed: bytes, purpose: str, message: bytes) -> bytes:
    """64 bytes: ed25519 over domain(purpose) + message."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).sign(domain(purpose) + message)


def verifies(authority: bytes, purpose: str, message: bytes, signature: bytes) -> bool:
    """Is this a good signature of `authority` over domain(purpose) + message?"""
    return verifies_raw(authority, domain(purpose) + message, signature)


def verifies_raw(authority: bytes, message: bytes, signature: bytes) -> bool:
    """Strict ed25519. OpenSSL accepts small-order and non-canonical points that Solana's verifier
    refuses (165 of the 914 C2SP/CCTV vectors); we refuse them too, so one verdict holds everywhere.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(signature) != SIGNATURE_BYTES or len(authority) != SEED_BYTES:
        return False
    if _is_weak_point(authority) or _is_weak_point(signature[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(authority).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_weak_point(encoded: bytes) -> bool:
    """Non-canonical (y ≥ p) or in the small subgroup: such a key or R signs many messages."""
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    return y >= _FIELD or y in _SMALL_ORDER_Y
