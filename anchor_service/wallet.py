"""Keys that sign transactions. They are Solana keypair files, and leave them only as signatures."""

from __future__ import annotations

import os
from typing import NoReturn

from savepoint.core import keys, spelling
from savepoint.core.errors import KeyFileError
from savepoint.store import durable
from savepoint.store.keys import keyring


class Wallet:
    """One key: what it is called, and its signatures. Nothing formats or copies the secret."""

    __slots__ = ("_seed", "public")

    def __init__(self, seed: bytes) -> None:
        """seed: 32 bytes."""
        self._seed = seed
        self.public = keys.public_key(seed)

    def sign(self, message: bytes) -> bytes:
        """64 bytes: ed25519 over `message` as it is, as transactions are signed."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(message)

    def __repr__(self) -> str:
        return f"Wallet({spelling.base58(self.public)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a wallet is not pickled: the bytes would hold its secret")


def load(path: str) -> Wallet:
    """The wallet of a keypair file. Raises KeyFileError: missing, a link, a FIFO, another user's,
    readable by others, or no keypair.
    """
    return Wallet(keyring.read_keypair(path)[: keys.SEED_BYTES])


def create(path: str) -> Wallet:
    """A new key in a new file, 0600, durable. Raises KeyFileError if there is a file already: a key
    is never replaced. Raises DiskError.
    """
    seed = os.urandom(keys.SEED_BYTES)
    durable.make_directories(os.path.dirname(path))
    if not durable.create_exclusive(path, keyring.keypair(seed)):
        raise KeyFileError(f"{path} exists already", hint="it is never replaced")
    return Wallet(seed)
