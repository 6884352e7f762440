"""The ledgers: where accounts are kept. Opened here, by the name that the owner chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import UsageError
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger
    from savepoint.store.layout import Store


def open_ledger(
    choice: str, *, store: Store | None, program: bytes | None, deadline: float | None = None
) -> Ledger:
    """The ledger of that name: embedded, a cluster's, or URLs of endpoints joined by one blank.

    store: whose embedded ledger; program: under which id the embedded one runs the shipped bytes.
    deadline: of time.monotonic(); no call lasts longer. Nothing is asked yet, and nothing needs to
    be closed. Raises UsageError for a choice that is none.
    """
    if choice == EMBEDDED:
        from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger

        if store is None:
            raise UsageError("the embedded ledger belongs to a store, and there is none here")
        return EmbeddedLedger(store.ledger_db, program or PROGRAM)
    from anchor_service.ledgers.clusters import cluster
    from anchor_service.ledgers.rpc import RpcLedger

    return RpcLedger(cluster(choice), deadline)
