"""Vectors of keys and signatures (docs/format.md, section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors import edwards
from tests.vectors.builders import (
    GABRIEL,
    ROOT_SEED,
    STRANGER,
    Members,
    base58,
    domain,
    identity,
)
from tests.vectors.edwards import IDENTITY, ORDER_8, L, P, Point

if TYPE_CHECKING:
    from collections.abc import Iterator

PURPOSES = ("record", "entry", "anchor", "root", "bootstrap", "handoff", "receipt")


def key_vectors() -> list[Members]:
    """Root seed, nonce and instance id → the ed25519 seed and the authority."""
    derived = [
        (ROOT_SEED, GABRIEL),
        (ROOT_SEED, STRANGER),
        (ROOT_SEED, identity("Gabriel #215", bytes(16))),
        (bytes(32), identity("Gabriel #215", bytes(16), bytes(32))),
        (b"\xff" * 32, identity("\u00c4gidius \u6f22 #7", b"\xff" * 16, b"\xff" * 32)),
    ]
    return [
        {
            "root_seed": root_seed.hex(),
            "nonce": one.nonce.hex(),
            "instance": one.instance,
            "seed": one.seed.hex(),
            "authority": base58(one.key),
        }
        for root_seed, one in derived
    ]


def domain_vectors() -> list[Members]:
    """The first bytes of what is signed or hashed, and a signature of GABRIEL under each."""
    message = b'{"v":1}'
    return [
        {
            "purpose": purpose,
            "domain": domain(purpose).hex(),
            "key": base58(GABRIEL.key),
            "text": message.decode(),
            "signature": GABRIEL.sign(message, purpose).hex(),
        }
        for purpose in PURPOSES
    ]


def ed25519_vectors() -> list[Members]:
    """`flags` have the names of C2SP/CCTV's; high_S and wrong are ours. No domain is signed."""
    vectors = [*_plain(), *_mixed_order(), *_low_order(), *_non_canonical(), *_scalars()]
    return [
        {"name": " ".join([str(number), *one["flags"]]), **one}  # type: ignore[misc]  # texts
        for number, one in enumerate(vectors)
    ]


def _vector(expect: str, flags: str, key: bytes, signature: bytes, message: bytes) -> Members:
    return {
        "expect": expect,
        "flags": flags.split(),  # type: ignore[dict-item]  # a list of texts is a value
        "key": key.hex(),
        "message": message.hex(),
        "signature": signature.hex(),
    }


SECRET = edwards.secret_scalar(GABRIEL.seed)
KEY = edwards.BASE.times(SECRET)
NONCE = 0x5EED  # of every signature here; a real signer must never use one twice


def _signed(key: bytes, scalar: int, commitment: bytes, nonce: int, message: bytes) -> bytes:
    """R and S = nonce + k · scalar; whether it verifies depends on the points chosen."""
    number = (nonce + edwards.challenge(commitment, key, message) * scalar) % L
    return commitment + number.to_bytes(32, "little")


def _message(
    key: bytes, commitment: bytes, torsion_of_r: int, torsion_of_a: int, *, left: bool
) -> bytes:
    """A message for which the torsion parts of R + k·A cancel, or (`left`) do not."""
    number = 0
    while True:
        message = f"message {number}".encode()
        k = edwards.challenge(commitment, key, message)
        if ((torsion_of_r + k * torsion_of_a) % 8 != 0) == left:
            return message
        number += 1


def _plain() -> Iterator[Members]:
    message = b"message"
    signature = _signed(GABRIEL.key, SECRET, edwards.BASE.times(NONCE).encoded(), NONCE, message)
    yield _vector("ok", "", GABRIEL.key, signature, message)
    yield _vector("refused", "wrong", GABRIEL.key, signature, message + b"\n")
    yield _vector("refused", "wrong", GABRIEL.key, signature, b"")
    yield _vector("refused", "wrong", STRANGER.key, signature, message)
    yield _vector("refused", "wrong", GABRIEL.key, signature[:-1], message)
    yield _vector("refused", "wrong", GABRIEL.key, signature + b"\x00", message)
    yield _vector("refused", "wrong", GABRIEL.key, b"", message)
    yield _vector("refused", "wrong", GABRIEL.key[:-1], signature, message)
    yield _vector("refused", "wrong", GABRIEL.key, signature[32:] + signature[:32], message)
    negated = bytes([*GABRIEL.key[:-1], GABRIEL.key[-1] ^ 0x80])
    yield _vector("refused", "wrong", negated, signature, message)
    off_curve = next(one.to_bytes(32, "little") for one in range(2, 99) if not _is_point(one))
    yield _vector("refused", "wrong", off_curve, signature, message)
    # RFC 8032, section 7.1, test 2
    yield _vector(
        "ok",
        "",
        bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
        bytes.fromhex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
        b"\x72",
    )


def _is_point(y: int) -> bool:
    return edwards.decoded(y.to_bytes(32, "little")) is not None


def _mixed_order() -> Iterator[Members]:
    """Points with a part of small order are allowed, as long as the plain equation holds."""
    for flags, in_a, in_r in (
        ("low_order_component_A", 1, 0),
        ("low_order_component_R low_order_component_A", 1, 3),
        ("low_order_component_R", 0, 1),
    ):
        key = (KEY + ORDER_8.times(in_a)).encoded()
        commitment = (edwards.BASE.times(NONCE) + ORDER_8.times(in_r)).encoded()
        for left in (False, True):
            if not (left or in_a):
                continue  # R alone never cancels
            message = _message(key, commitment, in_r, in_a, left=left)
            signature = _signed(key, SECRET, commitment, NONCE, message)
            more = " low_order_residue" if left else ""
            yield _vector("refused" if left else "ok", flags + more, key, signature, message)


def _low_order() -> Iterator[Members]:
    """A key or R in the small subgroup: one signature holds for many messages."""
    for multiple in (0, 1, 2, 4):
        key = ORDER_8.times(multiple).encoded()
        commitment = edwards.BASE.times(NONCE).encoded()
        message = _message(key, commitment, 0, multiple, left=False)
        signature = _signed(key, 0, commitment, NONCE, message)
        yield _vector("refused", "low_order_A", key, signature, message)
    for multiple in (0, 1, 2, 4):
        key = (KEY + ORDER_8.times(1 if multiple else 0)).encoded()
        commitment = ORDER_8.times(multiple).encoded()
        message = _message(key, commitment, multiple, 1 if multiple else 0, left=False)
        signature = _signed(key, SECRET, commitment, 0, message)
        yield _vector("refused", "low_order_R", key, signature, message)
    yield _vector("refused", "low_order_A low_order_R", bytes(32), bytes(64), b"any message")
    neutral = IDENTITY.encoded()
    yield _vector(
        "refused", "low_order_A low_order_R", neutral, neutral + bytes(32), b"any message"
    )


def _non_canonical() -> Iterator[Members]:
    """A second spelling of a point; k over the bytes as they are, or over the point's own."""
    encodings = {
        "y = p + 1": (P + 1).to_bytes(32, "little"),
        "y = p": P.to_bytes(32, "little"),
        "y = 1, x negative": (1 | 1 << 255).to_bytes(32, "little"),
        "y = p - 1, x negative": (P - 1 | 1 << 255).to_bytes(32, "little"),
        "y = 2^255 - 1": (2**255 - 1).to_bytes(32, "little"),
    }
    for encoded in encodings.values():
        point = edwards.decoded(encoded)
        canonical = encoded if point is None else point.encoded()
        commitment = edwards.BASE.times(NONCE).encoded()
        order = 1 if point is None else _torsion(point)
        message = _message(encoded, commitment, 0, order, left=False)
        signature = _signed(encoded, 0, commitment, NONCE, message)
        yield _vector("refused", "low_order_A non_canonical_A", encoded, signature, message)
        for hashed, flag in ((encoded, ""), (canonical, " reencoded_k")):
            k = edwards.challenge(hashed, GABRIEL.key, b"message")
            whole = encoded + (k * SECRET % L).to_bytes(32, "little")
            flags = "low_order_R non_canonical_R" + flag
            yield _vector("refused", flags, GABRIEL.key, whole, b"message")


def _torsion(point: Point) -> int:
    """Which multiple of ORDER_8 it is; 1 where it is none."""
    return next((one for one in range(8) if ORDER_8.times(one) == point), 1)


def _scalars() -> Iterator[Members]:
    message = b"message"
    commitment = edwards.BASE.times(NONCE).encoded()
    signature = _signed(GABRIEL.key, SECRET, commitment, NONCE, message)
    number = int.from_bytes(signature[32:], "little")
    for wrong in (number + L, number + 8 * L, number | 1 << 255, number | 7 << 253, L, 2**256 - 1):
        high = commitment + wrong.to_bytes(32, "little")
        yield _vector("refused", "high_S", GABRIEL.key, high, message)
