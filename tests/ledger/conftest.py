"""The places that one suite of tests holds for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers import open_ledger
from anchor_service.ledgers.clusters import PUBLIC
from anchor_service.ledgers.embedded import EmbeddedLedger
from anchor_service.ledgers.rpc import RpcLedger
from savepoint.core import limits
from tests.ledger.entries import Author, fund
from tests.ledger.facade import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from savepoint.core.ledger import Ledger
    from tests.ledger.facade import Facade
    from tests.ledger.validator import Validator

_PLACES = [
    "embedded",
    "facade",
    "devnet",
    pytest.param("validator", marks=pytest.mark.xdist_group("validator")),
]


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedLedger:
    return EmbeddedLedger(str(tmp_path / "ledger.db"))


@pytest.fixture
def facade(embedded: EmbeddedLedger) -> Iterator[Facade]:
    with serving(embedded) as one:
        yield one


@pytest.fixture
def devnet(embedded: EmbeddedLedger) -> Iterator[Facade]:
    """It answers with devnet's genesis hash."""
    (genesis,) = (genesis for genesis, name in PUBLIC.items() if name == "devnet")
    with serving(embedded, genesis) as one:
        yield one


@pytest.fixture(params=_PLACES)
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """Each kind, in turn."""
    kind: str = request.param
    place = request.getfixturevalue(kind)
    if kind == "devnet":
        return RpcLedger(place.cluster("devnet", place.genesis))
    if kind == "embedded":
        known: EmbeddedLedger = place
        return known
    running: Validator | Facade = place
    return open_ledger(running.url, store=None, program=None)


@pytest.fixture
def author(ledger: Ledger) -> Author:
    """Somebody who can pay."""
    one = Author()
    fund(ledger, one)
    return one


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEDGER_PAUSE_LONGEST_SECONDS", 0.01)
    monkeypatch.setattr(limits, "LEDGER_BREAK_FAILURES", 1000)
