"""The Ledger protocol: what anchoring and verification ask of a place that keeps accounts.

Implementations: anchor_service/ledgers. One suite of tests holds for all of them. A slot is the
cluster's own count of time, a block height counts the blocks in it, lamports are its smallest coin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class AccountState(NamedTuple):
    """An account at one slot."""

    owner: bytes  # 32 bytes: the program that may write it
    lamports: int
    data: bytes
    executable: bool
    slot: int  # of the bank that was asked: at least as new as the data


class Blockhash(NamedTuple):
    """What a transaction must name, and until when it can land."""

    hash: bytes  # 32 bytes
    last_valid_height: int  # block height
    slot: int  # of the bank that gave it


class Failure(NamedTuple):
    """Why a transaction was refused or failed, in words a program can match on."""

    kind: str  # "program" (code says which), "funds", "blockhash", "duplicate", "other"
    code: int | None  # the program's own error code
    detail: str


class Landing(NamedTuple):
    """What the cluster knows of a transaction that it has seen."""

    slot: int
    level: str  # processed | confirmed | finalized
    error: Failure | None  # None: it did what it says


class Ledger(Protocol):
    """A cluster, or what stands for one. Each method raises LedgerUnreachableError (nobody
    answered in time, or only nonsense came back), LedgerRefusedError (asked, and it says no).
    """

    @property
    def name(self) -> str:
        """embedded, localnet, devnet, testnet, mainnet-beta, or the URL without credentials."""

    @property
    def is_public(self) -> bool:
        """Is this a known public cluster, by its genesis hash?"""

    @property
    def endpoints(self) -> int:
        """How many independent places are asked for what is finalized."""

    def bound(self, deadline: float) -> None:
        """From now on no call lasts longer than until then, of time.monotonic()."""

    def genesis(self) -> bytes:
        """32 bytes: what tells one cluster, or one life of it, from another."""

    def account(self, address: bytes, level: str, not_before: int = 0) -> AccountState | None:
        """The account at confirmed or finalized, None where there is none; of a bank at or after
        slot `not_before`, so that reads do not go backwards behind a balancer.
        """

    def accounts(self, addresses: Sequence[bytes], level: str) -> list[AccountState | None]:
        """Many of them, from one bank."""

    def blockhash(self) -> Blockhash:
        """A recent one, at confirmed."""

    def height(self) -> int:
        """Block height at confirmed: the same level as `blockhash` asks at (bloom#231)."""

    def rent(self, size: int) -> int:
        """Lamports that an account of `size` bytes must hold."""

    def balance(self, address: bytes) -> int:
        """Lamports at confirmed."""

    def send(self, transaction: bytes, blockhash: Blockhash) -> None:
        """Hand in signed bytes. That it took them says nothing of whether they land. Raises
        LedgerRejectedError with the Failure of a simulation that failed.
        """

    def landing(self, signature: bytes, *, history: bool) -> Landing | None:
        """What became of a transaction, or None if nobody has seen it. history: not only what
        landed lately.
        """

    def airdrop(self, address: bytes, lamports: int) -> None:
        """Ask for coins where the cluster gives some away."""
