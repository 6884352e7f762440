"""Why a transaction failed, from what a cluster says of it.

A TransactionError is a name, or a name with details: "BlockhashNotFound", {"InstructionError":
[0, {"Custom": 1007}]}. LiteSVM and the RPC spell it alike.
"""

from __future__ import annotations

from savepoint.core import limits
from savepoint.core.ledger import Failure

# Whoever pays is not there (AccountNotFound), or has too little.
_FUNDS = {"AccountNotFound", "InsufficientFundsForFee", "InsufficientFundsForRent"}
_FUNDS_OF_INSTRUCTION = {"InsufficientFunds", "AccountNotRentExempt"}
_SYSTEM_TOO_LITTLE = 1  # of the system program: a transfer of more than there is
_PAYER_TOO_POOR = 1011  # of ours: less than the account's rent


def classify(error: object) -> Failure:
    """`error`: the `err` of a status or of a simulation; anything is accepted."""
    name, details = _named(error)
    if name == "InstructionError" and isinstance(details, list) and len(details) == 2:
        return _of_instruction(details[1])
    if name in _FUNDS:
        return Failure("funds", None, name)
    if name == "BlockhashNotFound":
        return Failure("blockhash", None, name)
    if name == "AlreadyProcessed":
        return Failure("duplicate", None, name)
    return Failure("other", None, _text(error))


def _of_instruction(error: object) -> Failure:
    from anchor_service.program.instructions import ERRORS

    name, details = _named(error)
    if name != "Custom" or type(details) is not int:
        kind = "funds" if name in _FUNDS_OF_INSTRUCTION else "other"
        return Failure(kind, None, name or _text(error))
    if details == _SYSTEM_TOO_LITTLE:
        return Failure("funds", details, "the payer has less than is to be transferred")
    if details not in ERRORS:
        return Failure("other", details, f"a program failed with code {details}")
    kind = "funds" if details == _PAYER_TOO_POOR else "program"
    return Failure(kind, details, ": ".join(ERRORS[details]))


def _named(error: object) -> tuple[str, object]:
    if isinstance(error, str):
        return error, None
    if isinstance(error, dict) and len(error) == 1:
        ((name, details),) = error.items()
        return str(name), details
    return "", None


def _text(error: object) -> str:
    return str(error)[: limits.LEDGER_REASON_CHARS]
