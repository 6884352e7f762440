"""The rules over an account, on every kind of ledger: the real validator's accounts as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anchor_service import witness
from anchor_service.ledgers.embedded import PROGRAM
from savepoint.core import verify_chain
from savepoint.core.verdicts import Verdict, worst
from savepoint.core.verify_chain import Seen, Who
from tests.ledger.entries import Author, fund, is_at, land, until

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger
    from savepoint.core.verify_chain import Anchor

pytestmark = pytest.mark.timeout(240)


class Named(Author):
    """One whose instance has a name."""

    def __init__(self) -> None:
        super().__init__()
        self.who = Who("Gabriel #215", self.wallet.public, PROGRAM)
        self.instance_hash = self.who.instance_hash
        self.account, self.bump = self.who.address


def _judged(ledger: Ledger, author: Named, seen: Seen) -> Anchor:
    who = author.who
    answer = witness.ask(ledger, who, ledger.genesis(), seen)
    return verify_chain.account(who, answer, seen, witness.shipped())


def test_an_entry_that_is_final_holds_by_every_rule_of_the_account(ledger: Ledger) -> None:
    author = Named()
    fund(ledger, author)
    nothing = Seen(0, "", ())
    found = _judged(ledger, author, nothing)
    assert worst(one.verdict for one in found.findings) is Verdict.PENDING
    sent = land(ledger, author)
    until(lambda: is_at(ledger, sent, "finalized"))
    found = _judged(ledger, author, nothing)
    assert [one.rule for one in found.findings] == list(verify_chain.ACCOUNT_RULES)
    assert [one.detail for one in found.findings if one.result != "pass"] == []
    assert found.account is not None
    assert found.upgrade_authority in (None, bytes(32))  # the validator's --bpf-program gives that
    assert "fewer than two endpoints" in found.dependence
    later = _judged(ledger, author, Seen(found.account.seq, found.account.hash, ()))
    assert later.findings[3].detail.endswith("up to 1 was seen before")
