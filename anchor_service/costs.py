"""What entries cost: rent for an account once, and a fee for each signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import entry, limits

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger


def fee(signatures: int = 2) -> int:
    """Lamports for one transaction; payer and authority sign, and are hardly ever one key."""
    return signatures * limits.FEE_LAMPORTS


def of_entry(ledger: Ledger, *, is_first: bool) -> int:
    """Lamports for the next entry of an instance. Raises LedgerUnreachableError, where it is the
    first: rent is never assumed, it was changed three times in 2026.
    """
    return fee() + (ledger.rent(entry.ACCOUNT_BYTES) if is_first else 0)
