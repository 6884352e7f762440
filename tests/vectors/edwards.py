"""Arithmetic on edwards25519, slow and plain (RFC 8032, section 5.1): to make bad points."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, P) % P


class Point(NamedTuple):
    """A point of the curve, affine."""

    x: int
    y: int

    def __add__(self, other: tuple[int, ...]) -> Point:  # type: ignore[override]  # no concatenation
        """Their sum on the curve."""
        x, y = other
        product = _D * self.x * x * self.y * y % P
        return Point(
            (self.x * y + x * self.y) * pow(1 + product, -1, P) % P,
            (self.y * y + self.x * x) * pow(1 - product, -1, P) % P,
        )

    def times(self, scalar: int) -> Point:
        """The sum of `scalar` copies."""
        total, double = IDENTITY, self
        while scalar:
            if scalar & 1:
                total += double
            double, scalar = double + double, scalar >> 1
        return total

    def encoded(self) -> bytes:
        """The one canonical spelling."""
        return (self.y | (self.x & 1) << 255).to_bytes(32, "little")


IDENTITY = Point(0, 1)


def decoded(data: bytes) -> Point | None:
    """The point that these 32 bytes spell, y taken modulo p; None where there is none."""
    number = int.from_bytes(data, "little")
    y, odd = (number & (1 << 255) - 1) % P, number >> 255
    square = (y * y - 1) * pow(_D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square:
        return None
    return Point(x if x & 1 == odd else -x % P, y)


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or IDENTITY
ORDER_8 = (
    decoded(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
    or IDENTITY
)


def secret_scalar(seed: bytes) -> int:
    """The scalar of an ed25519 seed."""
    digest = bytearray(hashlib.sha512(seed).digest()[:32])
    digest[0] &= 248
    digest[31] = digest[31] & 63 | 64
    return int.from_bytes(digest, "little")


def challenge(commitment: bytes, key: bytes, message: bytes) -> int:
    """The k of a signature: SHA-512(R, A, M) modulo L."""
    return int.from_bytes(hashlib.sha512(commitment + key + message).digest(), "little") % L
