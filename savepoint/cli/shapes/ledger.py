"""Shapes: what `ledger` says."""

from __future__ import annotations

from savepoint.cli.shapes.shape import Shape
from savepoint.cli.shapes.store import Cost


class LedgerProgram(Shape):
    """The program of a ledger. `shipped`: are its bytes ours; `problem`: why it cannot be used."""

    id: str | None
    shipped: bool
    upgrade_authority: str | None
    problem: str | None


class LedgerEntry(Shape):
    """The newest finalized entry of an account. `record`: the sequence in the index."""

    seq: int
    kind: str
    record: int | None
    slot: int
    hash: str
    retired: bool


class LedgerFunds(Shape):
    """Who pays; lamports."""

    ledger: str
    payer: str
    payer_file: str
    balance: int
    next_entry: int


class LedgerBalance(LedgerFunds):
    """`ledger balance --json`."""


class LedgerStatus(LedgerFunds):
    """`ledger status --json`."""

    genesis: str
    public: bool
    endpoints: int
    program: LedgerProgram
    account: str | None
    entry: LedgerEntry | None
    cost: Cost | None


class LedgerAirdrop(Shape):
    """`ledger airdrop --json`. `balance`: at once, which may be before the coins come."""

    ledger: str
    payer: str
    asked: int
    balance: int


class LedgerDeployment(Shape):
    """`ledger deploy --json`. `upgrade_authority`: who may change the program."""

    ledger: str
    program: str
    upgrade_authority: str | None
