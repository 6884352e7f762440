"""Encryption for git: one age message a file. The clear text never leaves this process."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core.errors import DiskError, KeyFileError, MalformedError, TamperedError
from savepoint.store.files import open_regular
from savepoint.store.keys import agekeys

if TYPE_CHECKING:
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import Store


class Sealer:
    """Encrypts to the store's recipients. Raises KeyFileError if there are none."""

    def __init__(self, store: Store) -> None:
        self._recipients = agekeys.recipients(store)
        self.audience = ""  # who can open it, where that is not the store's own key alone
        if len(self._recipients) > 1:
            lines = sorted(agekeys.recipient_lines(store))
            self.audience = hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def seal(self, data: bytes) -> bytes:
        """`data` as one age message."""
        import pyrage  # type: ignore[import-untyped]  # it ships no types

        sealed: bytes = pyrage.encrypt(data, self._recipients)
        return sealed

    def seal_file(self, path: str) -> list[bytes]:
        """The file at `path` as one age message, in pieces: a pack is held once, in its encrypted
        form. Raises TamperedError (it is not there), DiskError.
        """
        import pyrage

        source, pieces = _Source(path), _Pieces()
        with source:
            try:
                pyrage.encrypt_io(source, pieces, self._recipients)
            except pyrage.EncryptError:
                if source.failure is None:
                    raise
        if source.failure is not None:
            raise DiskError.of(source.failure, path) from source.failure
        return pieces.all


def unseal(sealed: bytes, identities: list[Identity], where: str) -> bytes:
    """What an age message holds. Nothing of one that is changed or cut is given out.

    Raises TamperedError, or KeyFileError if it was not encrypted to any of these keys.
    """
    import pyrage

    try:
        data: bytes = pyrage.decrypt(sealed, identities)
    except pyrage.DecryptError as failure:
        if "No matching keys" in str(failure):
            raise KeyFileError(f"{where} does not open with the store's age identity") from None
        raise TamperedError(f"{where} is no whole age message: {failure}") from None
    return data


class _Source:
    """A file that age reads; it remembers the kernel's error, of which age keeps only words."""

    def __init__(self, path: str) -> None:
        self.failure: OSError | None = None
        try:
            self._fd = open_regular(path)
        except FileNotFoundError:
            raise TamperedError(f"{path} is missing") from None
        except MalformedError as failure:
            raise TamperedError(failure.message) from None
        except OSError as failure:
            raise DiskError.of(failure, path) from failure

    def __enter__(self) -> None:
        return None

    def __exit__(self, *ended: object) -> None:
        os.close(self._fd)

    def read(self, size: int) -> bytes:
        try:
            return os.read(self._fd, size)
        except OSError as failure:
            self.failure = failure
            raise


class _Pieces:
    """What age writes, 64 KiB at a time."""

    def __init__(self) -> None:
        self.all: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.all.append(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing to flush."""
