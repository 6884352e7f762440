"""What a case is measured against, as a process: `python -I references.py hash|open PATH…`."""

from __future__ import annotations

import hashlib
import os
import sys

try:
    from compression import zstd  # type: ignore[import-not-found]  # Python 3.14 has its own
except ImportError:
    from backports import zstd

_CHUNK = 1 << 20  # bytes


def hash_files(paths: list[str]) -> None:
    """SHA-256 of each file."""
    for path in paths:
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256")


def open_packs(folder: str) -> None:
    """SHA-256 of what all frames below a folder decompress to, in one thread."""
    for where, _, names in os.walk(folder):
        for name in names:
            digest = hashlib.sha256()
            with zstd.open(os.path.join(where, name)) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)


def compressed_bytes(data: bytes) -> int:
    """How many bytes `data` has at `zstd -3`."""
    return len(zstd.compress(data, 3))


if __name__ == "__main__":
    if sys.argv[1] == "hash":
        hash_files(sys.argv[2:])
    else:
        open_packs(sys.argv[2])
