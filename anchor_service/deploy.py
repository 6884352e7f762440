"""Puts the program on a cluster, through loader-v3.

Each step is what the accounts show to be missing, so that a second run goes on where the first was
broken off: addresses follow from the payer's key and the program's bytes. Source of the bytes of
the instructions: loader-v3's `UpgradeableLoaderInstruction`, in bincode.
"""

from __future__ import annotations

import hashlib
import struct
import time
from typing import TYPE_CHECKING

from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.system_program import ID as SYSTEM_PROGRAM
from solders.system_program import create_account_with_seed
from solders.sysvar import CLOCK, RENT

from anchor_service.transaction import signed
from savepoint.core import accounts, deployed
from savepoint.core.errors import (
    DeadlineError,
    FundsError,
    LedgerRefusedError,
    MalformedError,
    RejectedError,
)
from savepoint.core.verify_chain import FINALIZED
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchor_service.wallet import Wallet
    from savepoint.core.deployed import Deployed
    from savepoint.core.ledger import AccountState, Blockhash, Ledger

_LOADER = Pubkey(accounts.LOADER)
_INITIALISE_BUFFER, _WRITE, _DEPLOY, _SET_AUTHORITY = 0, 1, 2, 4
_BUFFER_HEAD = struct.Struct("<IB32s")  # tag 1, there is an authority, the authority
_PROGRAM_BYTES = 36  # of the program's account: tag, where its data is
_DATA_HEAD_BYTES = 45  # before the bytes in the account of its data
_CHUNK = 950  # bytes of one write: what a transaction has room for
_AT_ONCE = 16  # writes on their way
_UNITS = 100_000  # compute units; what is not used costs nothing without a price
_FEE = 5_000  # lamports a signature
_POLL_SECONDS = 0.4
_RESEND_SECONDS = 2.0  # nodes drop what they cannot forward (agave#596)


def deploy(ledger: Ledger, payer: Wallet, elf: bytes, *, finalise: bool, deadline: float) -> bytes:
    """The id of the program with these bytes, which is there when this returns, at confirmed.

    payer: pays, and may upgrade it unless `finalise`, which nobody can take back. deadline: of
    time.monotonic(). Raises DeadlineError (call it again: it goes on), FundsError,
    LedgerRefusedError, LedgerUnreachableError.
    """
    if ledger.name == EMBEDDED:
        raise LedgerRefusedError("the embedded ledger has its program", hint="choose a cluster")
    work = _Deployment(ledger, payer, elf, deadline)
    try:
        while work.step(finalise=finalise):
            pass
    except RejectedError as failure:
        if failure.failure is None or failure.failure.kind != "funds":
            raise
        needed = price(ledger, elf)
        raise FundsError(f"the payer has too little: some {needed} lamports are needed") from None
    return work.program


def price(ledger: Ledger, elf: bytes) -> int:
    """Lamports that a deployment takes: rent, and the fees of all its transactions."""
    writes = -(-len(elf) // _CHUNK)
    rent = ledger.rent(_PROGRAM_BYTES) + ledger.rent(_DATA_HEAD_BYTES + len(elf))
    return rent + (writes + 3) * _FEE


def deployed_bytes(ledger: Ledger, program: bytes) -> Deployed:
    """What runs under that id, finalized. Raises MalformedError (no program of loader-v3),
    LedgerUnreachableError.
    """
    states = ledger.accounts([program, accounts.program_data(program)], FINALIZED)
    return deployed.parse(program, *states)


class _Deployment:
    def __init__(self, ledger: Ledger, payer: Wallet, elf: bytes, deadline: float) -> None:
        self._ledger = ledger
        self._payer = payer
        self._elf = elf
        self._deadline = deadline
        self._slot = 0  # of the last transaction: reads do not go behind it
        self._seed = hashlib.sha256(elf).hexdigest()[:30]
        self._key = Pubkey(payer.public)
        self._buffer = Pubkey.create_with_seed(self._key, f"b{self._seed}", _LOADER)
        self._program = Pubkey.create_with_seed(self._key, f"p{self._seed}", _LOADER)
        self.program = bytes(self._program)
        self._data = Pubkey(accounts.program_data(self.program))

    def step(self, *, finalise: bool) -> bool:
        """Do one thing that is missing; False where nothing is."""
        found = self._found()
        if found is None:
            self._build()
        elif found.elf != deployed.trimmed(self._elf):
            raise LedgerRefusedError(f"{self._program} was upgraded to other bytes")
        elif finalise and found.upgrade_authority:
            self._land([_set_authority(self._data, self._key)])
        else:
            return False
        return True

    def _build(self) -> None:
        buffer = self._account(self._buffer)
        if buffer is None:
            self._land(self._create_buffer())
        elif missing := self._missing(buffer.data):
            self._write(missing[:_AT_ONCE])
        else:
            self._land(self._create_program())

    def _found(self) -> Deployed | None:
        states = [self._account(self._program), self._account(self._data)]
        try:
            return deployed.parse(self.program, *states)
        except MalformedError:
            return None

    def _missing(self, buffer: bytes) -> list[int]:
        """Offsets of the pieces that the buffer has not."""
        if buffer[: _BUFFER_HEAD.size] != _BUFFER_HEAD.pack(1, 1, self._payer.public):
            raise LedgerRefusedError(f"{self._buffer} is no buffer of this payer")
        written = buffer[_BUFFER_HEAD.size :]
        return [
            offset
            for offset in range(0, len(self._elf), _CHUNK)
            if written[offset : offset + _CHUNK] != self._elf[offset : offset + _CHUNK]
        ]

    def _create_buffer(self) -> list[Instruction]:
        accounts_ = [_writable(self._buffer), _readable(self._key)]
        begin = Instruction(_LOADER, struct.pack("<I", _INITIALISE_BUFFER), accounts_)
        return [self._create(self._buffer, "b", _BUFFER_HEAD.size + len(self._elf)), begin]

    def _create_program(self) -> list[Instruction]:
        places = [
            AccountMeta(self._key, is_signer=True, is_writable=True),
            *(_writable(self._data), _writable(self._program), _writable(self._buffer)),
            *(_readable(RENT), _readable(CLOCK), _readable(SYSTEM_PROGRAM)),
            AccountMeta(self._key, is_signer=True, is_writable=False),
        ]
        put = Instruction(_LOADER, struct.pack("<IQ", _DEPLOY, len(self._elf)), places)
        return [self._create(self._program, "p", _PROGRAM_BYTES), put]

    def _create(self, address: Pubkey, letter: str, size: int) -> Instruction:
        return create_account_with_seed(
            {
                "from_pubkey": self._key,
                "to_pubkey": address,
                "base": self._key,
                "seed": letter + self._seed,
                "lamports": self._ledger.rent(size),
                "space": size,
                "owner": _LOADER,
            }
        )

    def _write(self, offsets: Sequence[int]) -> None:
        """Hand in these pieces, and look whether the buffer has them: one question for all."""
        blockhash = self._ledger.blockhash()
        sent = [self._sign([self._piece(offset)], blockhash)[0] for offset in offsets]
        for transaction in sent:
            self._send(transaction, blockhash)
        until = time.monotonic() + _RESEND_SECONDS
        while time.monotonic() < until:
            self._wait()
            buffer = self._account(self._buffer)
            if buffer is not None and not set(offsets) & set(self._missing(buffer.data)):
                return

    def _piece(self, offset: int) -> Instruction:
        piece = self._elf[offset : offset + _CHUNK]
        data = struct.pack("<IIQ", _WRITE, offset, len(piece)) + piece
        return Instruction(_LOADER, data, [_writable(self._buffer), _signing(self._key)])

    def _land(self, instructions: Sequence[Instruction]) -> None:
        """Send until it is confirmed, or can no longer be: the accounts tell which."""
        blockhash = self._ledger.blockhash()
        transaction, signature = self._sign(instructions, blockhash)
        while self._ledger.height() <= blockhash.last_valid_height:
            self._send(transaction, blockhash)
            until = time.monotonic() + _RESEND_SECONDS
            while time.monotonic() < until:
                self._wait()
                landing = self._ledger.landing(signature, history=False)
                if landing is not None and landing.error is not None:
                    raise RejectedError(landing.error.detail, landing.error)
                if landing is not None and landing.level != "processed":
                    self._slot = max(self._slot, landing.slot)
                    return

    def _sign(
        self, instructions: Sequence[Instruction], blockhash: Blockhash
    ) -> tuple[bytes, bytes]:
        return signed(instructions, self._payer, [], blockhash.hash, units=_UNITS)

    def _send(self, transaction: bytes, blockhash: Blockhash) -> None:
        try:
            self._ledger.send(transaction, blockhash)
        except RejectedError as failure:
            if failure.failure is None or failure.failure.kind not in ("duplicate", "blockhash"):
                raise  # those two: it is there already; the node is behind, or it is too late

    def _account(self, address: Pubkey) -> AccountState | None:
        return self._ledger.account(bytes(address), "confirmed", self._slot)

    def _wait(self) -> None:
        if time.monotonic() > self._deadline:
            raise DeadlineError("the program is not wholly on the cluster yet")
        time.sleep(_POLL_SECONDS)


def _set_authority(data: Pubkey, authority: Pubkey) -> Instruction:
    """To nobody: no new authority is named."""
    places = [_writable(data), _signing(authority)]
    return Instruction(_LOADER, struct.pack("<I", _SET_AUTHORITY), places)


def _writable(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=False, is_writable=True)


def _readable(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=False, is_writable=False)


def _signing(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=True, is_writable=False)
