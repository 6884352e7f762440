"""A deployed program: its own bytes, and who may change them, from the loader's two accounts.

Source: loader-v3's `UpgradeableLoaderState`, in bincode: a tag of 4 bytes, then the fields.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from savepoint.core import accounts
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from savepoint.core.ledger import AccountState

_PROGRAM, _PROGRAM_DATA = 2, 3  # tags
_POINTER = struct.Struct("<I32s")  # tag, account with the data
_HEAD = struct.Struct("<IQB32s")  # tag, slot, is there an authority, the authority


class Deployed(NamedTuple):
    """What a cluster runs under a program's id."""

    elf: bytes  # without the zeros that the loader keeps behind it
    upgrade_authority: bytes | None  # 32 bytes; None: nobody can change it any more


def parse(program: bytes, state: AccountState | None, data_state: AccountState | None) -> Deployed:
    """The program of that id. state, data_state: its account, and that of `accounts.program_data`.

    Raises MalformedError: there is none, or loader-v3 did not put it there.
    """
    if state is None or not state.executable or state.owner != accounts.LOADER:
        raise MalformedError("no program of loader-v3 has that id")
    where = accounts.program_data(program)
    if state.data[: _POINTER.size] != _POINTER.pack(_PROGRAM, where):
        raise MalformedError("the program's account does not name its data")
    data = b"" if data_state is None or data_state.owner != accounts.LOADER else data_state.data
    if len(data) < _HEAD.size:
        raise MalformedError("the program has no data")
    tag, _, has_authority, authority = _HEAD.unpack_from(data)
    if tag != _PROGRAM_DATA or has_authority not in (0, 1):
        raise MalformedError("the program's data is none")
    return Deployed(trimmed(data[_HEAD.size :]), authority if has_authority else None)


def trimmed(elf: bytes) -> bytes:
    """Without trailing zeros: an upgrade may leave room behind a program."""
    return elf.rstrip(b"\0")
