"""What only the real validator shows: empty payers, kills, resets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers import open_ledger
from savepoint.core.errors import LedgerUnreachableError, RejectedError
from tests.ledger.entries import Author, fund, is_at, land, read, send, until

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger
    from tests.ledger.validator import Validator

pytestmark = [pytest.mark.xdist_group("validator"), pytest.mark.timeout(240)]


def opened(validator: Validator) -> Ledger:
    return open_ledger(validator.url, store=None, program=None)


def test_a_payer_without_coins_is_a_matter_of_funds(validator: Validator) -> None:
    cluster = opened(validator)
    author = Author()
    for lamports in (0, 1_000_000):  # nothing; the fee, but not the rent
        if lamports:
            fund(cluster, author, lamports)
        with pytest.raises(RejectedError) as refused:
            send(cluster, author)
        assert refused.value.failure is not None
        assert refused.value.failure.kind == "funds"


def test_a_validator_that_was_killed_goes_on(validator: Validator) -> None:
    cluster = opened(validator)
    author = Author()
    fund(cluster, author)
    sent = land(cluster, author)
    until(lambda: is_at(cluster, sent, "finalized"))
    genesis = cluster.genesis()
    first = read(cluster, author)
    assert first is not None
    validator.kill()
    try:
        with pytest.raises(LedgerUnreachableError):
            cluster.height()
    finally:
        validator.start()
    cluster = opened(validator)
    assert cluster.genesis() == genesis
    until(lambda: read(cluster, author) == first)  # for a moment it answers from its snapshot
    land(cluster, author, 2, first.hash)


def test_a_reset_is_another_genesis_without_our_account(validator: Validator) -> None:
    cluster = opened(validator)
    author = Author()
    fund(cluster, author)
    land(cluster, author)
    genesis = cluster.genesis()
    validator.kill()
    validator.start(reset=True)
    assert cluster.genesis() != genesis
    assert read(cluster, author) is None
