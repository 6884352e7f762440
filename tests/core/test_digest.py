"""The interpreter's own SHA-256 says what OpenSSL's says."""

from __future__ import annotations

import hashlib
import sys

import pytest

from savepoint.core.digest import sha256


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 1 << 20])
def test_of_every_length_of_the_last_block(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    assert sha256(data[:size]).hexdigest() == hashlib.sha256(data[:size]).hexdigest()


def test_it_is_the_interpreters_own() -> None:
    own = [name for name in ("_sha2", "_sha256") if name in sys.modules]
    assert own, "else every fire would load OpenSSL"
    assert sha256 is sys.modules[own[0]].sha256
