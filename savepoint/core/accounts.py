"""Program-derived addresses: where the account of an instance must lie.

Computed here, so that verification needs no Solana library: an address is a SHA-256 that is no
point of the curve, so that no key can sign for it.
"""

from __future__ import annotations

import hashlib

from savepoint.core.errors import MalformedError
from savepoint.core.spelling import key_bytes

SEED = b"gabriel-consciousness"
LOADER = key_bytes("BPFLoaderUpgradeab1e11111111111111111111111")  # loader-v3, owns programs

_FIELD = 2**255 - 19
_D = -121665 * pow(121666, -1, _FIELD) % _FIELD


def address(instance_hash: bytes, authority: bytes, program: bytes) -> tuple[bytes, int]:
    """(account, bump) of an instance; each 32 bytes but the bump."""
    return canonical((SEED, instance_hash, authority), program)


def program_data(program: bytes) -> bytes:
    """Where the loader keeps the bytes of a program and who may change them."""
    return canonical((program,), LOADER)[0]


def canonical(seeds: tuple[bytes, ...], program: bytes) -> tuple[bytes, int]:
    """(address, bump): the highest bump that gives no point of the curve is the canonical one.
    Source: Solana's `find_program_address`.
    """
    for bump in range(255, -1, -1):
        found = derive((*seeds, bytes([bump])), program)
        if not is_on_curve(found):
            return found, bump
    raise MalformedError("no bump gives an address")  # one in 2^256


def derive(seeds: tuple[bytes, ...], program: bytes) -> bytes:
    """The candidate that these seeds give under `program`."""
    return hashlib.sha256(b"".join(seeds) + program + b"ProgramDerivedAddress").digest()


def is_on_curve(encoded: bytes) -> bool:
    """Do these 32 bytes decompress to a point? The sign bit says nothing about that; y is taken
    modulo p, as curve25519-dalek does.
    """
    y = (int.from_bytes(encoded, "little") & ((1 << 255) - 1)) % _FIELD
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _FIELD) % _FIELD
    return square == 0 or pow(square, (_FIELD - 1) // 2, _FIELD) == 1
