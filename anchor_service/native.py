"""Contains what native libraries throw: a panic is no `Exception`, and would end the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import LedgerRefusedError, SavepointError

if TYPE_CHECKING:
    from types import TracebackType

_PANIC = "PanicException"  # pyo3 makes the class anew in each library, and exports none


class contained:  # noqa: N801  # reads as a clause: with contained("transaction")
    """In the block, panics and refusals of a native library become `error` about `what`.

    A PanicException is a BaseException: no `except Exception` sees it. KeyboardInterrupt and
    SystemExit pass.
    """

    def __init__(self, what: str, error: type[SavepointError] = LedgerRefusedError) -> None:
        self._what = what
        self._error = error

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or value is None:
            return
        if kind.__name__ == _PANIC or isinstance(value, (ValueError, OverflowError)):
            reason = str(value)[: limits.LEDGER_REASON_CHARS]
            raise self._error(f"{self._what}: {reason}") from None
