"""What anchoring works with: one store's ledger, program, payer, queue and repository."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from anchor_service import wallet
from anchor_service.ledgers import clusters
from savepoint.core import spelling
from savepoint.core.entry import Place
from savepoint.core.errors import LedgerRefusedError
from savepoint.core.named import NamedTuple
from savepoint.store import config
from savepoint.store.layout import Home

if TYPE_CHECKING:
    from anchor_service.queue import Queue, Submission
    from anchor_service.wallet import Wallet
    from savepoint.core.ledger import Ledger
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.config import Config
    from savepoint.store.layout import Store


class Desk(NamedTuple):
    """Of one worker, for one step."""

    store: Store
    chosen: Config
    ledger: Ledger
    program: bytes  # 32 bytes
    payer: Wallet
    repo: Repository
    queue: Queue
    looks: dict[bytes, int]  # signature → how often this process has looked for it

    @property
    def choice(self) -> str:
        """The ledger, as the owner chose it."""
        return self.chosen.ledger or ""

    @property
    def program_id(self) -> str:
        """Base58."""
        return spelling.base58(self.program)

    def place(self, row: Submission) -> Place:
        """What an entry of that row is signed for."""
        return Place(*map(spelling.key_bytes, (row.genesis, row.program, row.account)))

    def put(self, row: Submission, state: str, *, error: str = "", **more: object) -> Submission:
        """The row in that state, durably. A reason is kept until the next one."""
        changed = row._replace(state=state, error=error, changed=now(), **more)  # type: ignore[arg-type]  # fields of a row
        return self.queue.put(changed)


def program_of(chosen: Config) -> bytes:
    """The id of the program, 32 bytes. Raises LedgerRefusedError: no id is known for the ledger."""
    if chosen.program is not None:
        return spelling.key_bytes(chosen.program)
    if chosen.ledger != config.EMBEDDED:
        raise LedgerRefusedError(
            f"no program is known on {clusters.cluster(chosen.ledger or '').name}",
            hint="`savepoint ledger deploy` deploys it, or `savepoint config program ID` names it",
        )
    from anchor_service.ledgers.embedded import PROGRAM

    return PROGRAM


def payer_of(store: Store, chosen: Config) -> Wallet:
    """Who pays; one of our own is made the first time. Raises KeyFileError, DiskError."""
    path = chosen.payer or Home(store.home).payer
    if chosen.payer is None and not os.path.lexists(path):
        return wallet.create(path)
    return wallet.load(path)


def now() -> int:
    """Unix seconds."""
    return int(time.time())
