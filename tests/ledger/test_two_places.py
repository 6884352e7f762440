"""Two endpoints of one cluster: finalized, and never, is what both say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers.rpc import RpcLedger
from savepoint.core.errors import (
    LedgerUnreachableError,
    WrongClusterError,
)
from tests.ledger import facade as lies
from tests.ledger.entries import Author, land, read, send
from tests.ledger.facade import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from anchor_service.ledgers.clusters import Cluster
    from tests.ledger.facade import Facade, Reply

pytestmark = pytest.mark.usefixtures("impatient")


class Two:
    """Two endpoints of one cluster, of which the second is another place."""

    def __init__(self, first: Facade, second: Facade) -> None:
        self.first = first
        self.second = second

    def cluster(self) -> Cluster:
        addresses = self.first.cluster().addresses + self.second.cluster().addresses
        return self.first.cluster()._replace(addresses=addresses)


@pytest.fixture
def two(facade: Facade) -> Iterator[Two]:
    with serving(facade.ledger) as other:
        yield Two(facade, other)


def test_the_other_endpoint_is_asked_when_one_fails(two: Two) -> None:
    ledger = RpcLedger(two.cluster())
    two.first.lies[""] = lies.html
    author = Author()
    send(ledger, author)
    two.first.lies[""] = lies.behind
    assert read(ledger, author) is not None
    assert "sendTransaction" not in two.first.asked


def test_finalized_is_what_two_places_say(two: Two, tmp_path: Path) -> None:
    ledger = RpcLedger(two.cluster())
    author = Author()
    land(ledger, author)
    assert ledger.endpoints == 2
    assert read(ledger, author, "finalized") is not None
    assert "getMultipleAccounts" in two.first.asked
    assert "getMultipleAccounts" in two.second.asked
    two.second.lies["getMultipleAccounts"] = lies.html
    with pytest.raises(LedgerUnreachableError):
        ledger.account(author.account, "finalized")
    assert ledger.account(author.account, "confirmed") is not None


def test_places_that_disagree_are_no_answer(two: Two) -> None:
    ledger = RpcLedger(two.cluster())
    author = Author()
    land(ledger, author)

    def older(reply: Reply) -> None:
        reply.document["result"] = {"context": {"slot": 1}, "value": [None]}

    two.second.lies["getMultipleAccounts"] = older
    with pytest.raises(LedgerUnreachableError, match="disagree"):
        ledger.account(author.account, "finalized")


def test_never_is_what_every_place_says(two: Two) -> None:
    ledger = RpcLedger(two.cluster())
    author = Author()
    sent = land(ledger, author)
    two.first.lies["getSignatureStatuses"] = lies.unseen
    assert ledger.landing(sent.signature, history=True) is not None
    two.second.lies["getSignatureStatuses"] = lies.html
    with pytest.raises(LedgerUnreachableError):
        ledger.landing(sent.signature, history=True)


def test_endpoints_of_two_clusters_are_refused(two: Two) -> None:
    two.second.genesis = os.urandom(32)
    ledger = RpcLedger(two.cluster())
    with pytest.raises(WrongClusterError):
        ledger.account(os.urandom(32), "finalized")
