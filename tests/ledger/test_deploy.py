"""The shipped program, deployed on the real validator through its loader."""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

import pytest

from anchor_service import deploy
from anchor_service.deploy import deployed_bytes
from anchor_service.ledgers import open_ledger
from anchor_service.program.instructions import elf
from savepoint.core.deployed import trimmed
from savepoint.core.errors import (
    DeadlineError,
    FundsError,
    LedgerRefusedError,
    LedgerUnreachableError,
    MalformedError,
)
from tests.ledger.entries import SOL, Author, fund, until

if TYPE_CHECKING:
    from anchor_service.ledgers.embedded import EmbeddedLedger
    from anchor_service.wallet import Wallet
    from savepoint.core.ledger import Blockhash, Ledger
    from tests.ledger.validator import Validator

pytestmark = [pytest.mark.xdist_group("validator"), pytest.mark.timeout(180)]


@pytest.fixture
def cluster(validator: Validator) -> Ledger:
    return open_ledger(validator.url, store=None, program=None)


@pytest.fixture
def payer(cluster: Ledger) -> Wallet:
    author = Author()
    fund(cluster, author)
    return author.wallet


def soon() -> float:
    return time.monotonic() + 60


def _is_finalized(ledger: Ledger, program: bytes, authority: bytes | None) -> bool:
    try:
        found = deployed_bytes(ledger, program)
    except MalformedError:
        return False
    return found.elf == trimmed(elf()) and found.upgrade_authority == authority


def test_the_bytes_on_the_cluster_are_the_shipped_ones(cluster: Ledger, payer: Wallet) -> None:
    before = cluster.balance(payer.public)
    price = deploy.price(cluster, elf())
    program = deploy.deploy(cluster, payer, elf(), finalise=False, deadline=soon())
    until(lambda: _is_finalized(cluster, program, payer.public))
    assert before - cluster.balance(payer.public) <= price + 100_000, "the price was told right"
    assert deploy.deploy(cluster, payer, elf(), finalise=False, deadline=soon()) == program
    assert deploy.deploy(cluster, payer, elf(), finalise=True, deadline=soon()) == program
    until(lambda: _is_finalized(cluster, program, None))
    assert deploy.deploy(cluster, payer, elf(), finalise=True, deadline=soon()) == program


def test_a_deployment_goes_on_where_it_was_broken_off(
    cluster: Ledger, payer: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "_AT_ONCE", 4)
    send = cluster.send
    calls = itertools.count(1)

    def breaking(transaction: bytes, blockhash: Blockhash) -> None:
        if next(calls) % 5 == 0:
            raise LedgerUnreachableError("unplugged")
        send(transaction, blockhash)

    monkeypatch.setattr(cluster, "send", breaking)
    program = b""
    breaks = 0
    while not program:
        try:
            program = deploy.deploy(cluster, payer, elf(), finalise=True, deadline=soon())
        except LedgerUnreachableError:
            breaks += 1
    assert breaks >= 2
    until(lambda: _is_finalized(cluster, program, None))


def test_a_deadline_ends_it(cluster: Ledger, payer: Wallet) -> None:
    with pytest.raises(DeadlineError):
        deploy.deploy(cluster, payer, elf(), finalise=False, deadline=time.monotonic() - 1)


def test_who_cannot_pay_is_told_how_much_it_takes(cluster: Ledger) -> None:
    poor = Author()
    with pytest.raises(FundsError, match=str(deploy.price(cluster, elf()))):
        deploy.deploy(cluster, poor.wallet, elf(), finalise=False, deadline=soon())
    fund(cluster, poor, SOL // 100)
    with pytest.raises(FundsError):
        deploy.deploy(cluster, poor.wallet, elf(), finalise=False, deadline=soon())


def test_what_is_no_program_is_refused_by_the_loader(cluster: Ledger, payer: Wallet) -> None:
    with pytest.raises(LedgerRefusedError):
        deploy.deploy(cluster, payer, os.urandom(700), finalise=False, deadline=soon())


def test_there_is_nothing_where_nothing_was_deployed(cluster: Ledger, payer: Wallet) -> None:
    with pytest.raises(MalformedError):
        deployed_bytes(cluster, payer.public)


def test_the_embedded_ledger_takes_none(embedded: EmbeddedLedger) -> None:
    with pytest.raises(LedgerRefusedError, match="embedded"):
        deploy.deploy(embedded, Author().wallet, elf(), finalise=False, deadline=soon())
