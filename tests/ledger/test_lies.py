"""A node that lies, breaks off or never ends: a named error in time, nothing done twice or lost."""

from __future__ import annotations

import os
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from anchor_service.ledgers.rpc import RpcLedger
from savepoint.core import limits
from savepoint.core.entry import NO_ENTRY
from savepoint.core.errors import (
    LedgerRefusedError,
    LedgerUnreachableError,
    RejectedError,
    WrongClusterError,
)
from tests.ledger import facade as lies
from tests.ledger.entries import Author, land, read, send
from tests.ledger.facade import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchor_service.ledgers.embedded import EmbeddedLedger
    from tests.ledger.facade import Facade, Reply

pytestmark = pytest.mark.usefixtures("impatient")

_BROKEN = [
    *(lies.html, lies.empty, lies.truncated, lies.hung_up, lies.oversized, lies.packed),
    *(lies.other_id, lies.deep, lies.nonsense, lies.behind),
    *(lies.overloaded("0"), lies.redirecting("/elsewhere")),
]


@pytest.fixture
def ledger(facade: Facade) -> RpcLedger:
    return RpcLedger(facade.cluster())


@pytest.mark.parametrize("lie", _BROKEN, ids=lambda lie: lie.__qualname__.split(".")[0])
def test_a_reply_that_is_none_is_no_answer(
    facade: Facade, ledger: RpcLedger, lie: Callable[[Reply], None]
) -> None:
    author = Author()
    land(ledger, author)
    facade.lies[""] = lie
    for ask in (
        ledger.genesis,
        ledger.blockhash,
        ledger.height,
        lambda: ledger.rent(465),
        lambda: ledger.balance(author.wallet.public),
        lambda: ledger.account(author.account, "confirmed"),
        lambda: ledger.account(author.account, "finalized"),
        lambda: ledger.landing(os.urandom(64), history=True),
        lambda: ledger.airdrop(author.wallet.public, 1),
    ):
        with pytest.raises(LedgerUnreachableError):
            ask()
    assert "/elsewhere" not in " ".join(facade.headers)
    facade.lies.clear()
    first = read(ledger, author)
    assert first is not None
    land(ledger, author, 2, first.hash)


@pytest.mark.parametrize("lie", _BROKEN, ids=lambda lie: lie.__qualname__.split(".")[0])
def test_a_send_without_an_answer_can_be_made_again(
    facade: Facade, ledger: RpcLedger, lie: Callable[[Reply], None]
) -> None:
    author = Author()
    facade.lies["sendTransaction"] = lie
    with pytest.raises(LedgerUnreachableError):
        send(ledger, author)
    landed = facade.ledger.account(author.account, "confirmed") is not None
    facade.lies.clear()
    if not landed:  # some lie before they act, some behind it
        send(ledger, author)
    account = read(ledger, author)
    assert account is not None
    assert account.seq == 1


def test_one_byte_now_and_then_ends_with_the_deadline_of_a_reply(
    facade: Facade, ledger: RpcLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEDGER_REPLY_SECONDS", 0.5)
    facade.lies["getBlockHeight"] = lies.trickling
    start = time.monotonic()
    with pytest.raises(LedgerUnreachableError, match="no whole answer"):
        ledger.height()
    assert time.monotonic() - start < 30  # trickling takes 60 s, three times


def test_one_byte_now_and_then_ends_with_the_deadline_of_a_job(facade: Facade) -> None:
    facade.lies[""] = lies.trickling
    start = time.monotonic()
    with pytest.raises(LedgerUnreachableError):
        RpcLedger(facade.cluster(), start + 0.7).height()
    assert time.monotonic() - start < 30
    with pytest.raises(LedgerUnreachableError, match="time allowed"):
        RpcLedger(facade.cluster(), time.monotonic() - 1).height()


@pytest.mark.parametrize("lie", [lies.oversized, lies.packed])
def test_nothing_large_is_read_or_unpacked(
    facade: Facade, ledger: RpcLedger, lie: Callable[[Reply], None]
) -> None:
    ledger.height()
    lies.bomb()
    facade.lies[""] = lie
    tracemalloc.start()
    try:
        with pytest.raises(LedgerUnreachableError):
            ledger.height()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * limits.LEDGER_REPLY_BYTES  # three attempts, and the server is in here too


def test_a_signature_is_that_of_the_bytes(facade: Facade, ledger: RpcLedger) -> None:
    author = Author()
    facade.lies["sendTransaction"] = lies.other_signature
    with pytest.raises(LedgerUnreachableError, match="signature of another"):
        send(ledger, author)
    facade.lies.clear()
    assert read(ledger, author) is not None, "it landed, whatever the node says"


def test_finalized_without_an_account_is_seen(facade: Facade, ledger: RpcLedger) -> None:
    author = Author()
    facade.lies |= {
        "sendTransaction": lies.dropped,
        "getSignatureStatuses": lies.made_up,
    }
    sent = send(ledger, author)
    landing = ledger.landing(sent.signature, history=True)
    assert landing is not None
    assert landing.level == "finalized"
    assert ledger.account(author.account, "finalized") is None


def test_a_dropped_send_lands_when_it_is_sent_again(facade: Facade, ledger: RpcLedger) -> None:
    author = Author()
    facade.lies["sendTransaction"] = lies.dropped
    sent = send(ledger, author)
    assert ledger.landing(sent.signature, history=True) is None
    facade.lies.clear()
    ledger.send(sent.transaction, ledger.blockhash())
    assert ledger.landing(sent.signature, history=False) is not None


def test_a_node_without_history_does_not_say_never(facade: Facade, ledger: RpcLedger) -> None:
    facade.lies["getSignatureStatuses"] = lies.pruned
    with pytest.raises(LedgerUnreachableError, match="history"):
        ledger.landing(os.urandom(64), history=True)


def test_a_failed_transaction_is_told_with_its_reason(facade: Facade, ledger: RpcLedger) -> None:
    def failed(reply: Reply) -> None:
        lies.made_up(reply)
        reply.document["result"]["value"][0]["err"] = {"InstructionError": [1, {"Custom": 1018}]}

    facade.lies["getSignatureStatuses"] = failed
    landing = ledger.landing(os.urandom(64), history=False)
    assert landing is not None
    assert landing.error is not None
    assert landing.error[:2] == ("program", 1018)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("AccountNotFound", "funds"),
        ("InsufficientFundsForFee", "funds"),
        ({"InsufficientFundsForRent": {"account_index": 0}}, "funds"),
        ({"InstructionError": [0, {"Custom": 1}]}, "funds"),
        ({"InstructionError": [0, {"Custom": 1011}]}, "funds"),
        ({"InstructionError": [0, {"Custom": 1008}]}, "program"),
        ({"InstructionError": [0, {"Custom": 4}]}, "other"),
        ({"InstructionError": [0, "ProgramFailedToComplete"]}, "other"),
        ({"InstructionError": "?"}, "other"),
        ("BlockhashNotFound", "blockhash"),
        ("AlreadyProcessed", "duplicate"),
        ("SomethingNew", "other"),
        (["a", 1.5], "other"),
    ],
)
def test_a_refused_simulation_is_classified(
    facade: Facade, ledger: RpcLedger, error: object, kind: str
) -> None:
    def refusing(reply: Reply) -> None:
        data = {"err": error, "logs": []}
        reply.document["error"] = {"code": -32002, "message": "failed", "data": data}

    facade.lies["sendTransaction"] = refusing
    with pytest.raises(RejectedError) as refused:
        send(ledger, Author())
    assert refused.value.failure is not None
    assert refused.value.failure.kind == kind


def test_a_public_name_for_another_cluster_is_refused(embedded: EmbeddedLedger) -> None:
    with serving(embedded) as other:
        ledger = RpcLedger(other.cluster("devnet", b"\1" * 32))
        for ask in (ledger.genesis, ledger.height, lambda: send(ledger, Author())):
            with pytest.raises(WrongClusterError, match="not devnet"):
                ask()
        assert set(other.asked) == {"getGenesisHash"}


def test_a_reset_cluster_is_seen(facade: Facade, ledger: RpcLedger) -> None:
    before = ledger.genesis()
    facade.genesis = os.urandom(32)
    assert ledger.genesis() == facade.genesis != before
    ledger.height()


def test_a_cluster_that_was_reset_behind_our_back_gets_nothing(
    facade: Facade, ledger: RpcLedger
) -> None:
    ledger.height()
    facade.lies[""] = lies.hung_up  # it goes away …
    with pytest.raises(LedgerUnreachableError):
        ledger.height()
    facade.lies.clear()
    facade.genesis = os.urandom(32)  # … and comes back as another
    with pytest.raises(WrongClusterError, match="reset"):
        ledger.height()


def test_too_many_requests_are_followed_by_the_wait_that_is_asked_for(
    facade: Facade, ledger: RpcLedger
) -> None:
    moments: list[float] = []

    def busy_once(reply: Reply) -> None:
        moments.append(time.monotonic())
        if len(moments) == 1:
            lies.overloaded("1")(reply)
        else:
            reply.answer_honestly()

    facade.lies["getBlockHeight"] = busy_once
    ledger.height()
    assert len(moments) == 2
    assert moments[1] - moments[0] >= 1


@pytest.mark.parametrize("wait", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_wait_beyond_the_call_is_said_at_once(
    facade: Facade, ledger: RpcLedger, wait: str
) -> None:
    facade.lies["getBlockHeight"] = lies.overloaded(wait)
    for _ in range(2):
        with pytest.raises(LedgerUnreachableError):
            ledger.height()
    assert facade.asked.count("getBlockHeight") == 1, "it is not asked while it wants to be left"


def test_an_endpoint_that_fails_is_left_alone(
    facade: Facade, ledger: RpcLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEDGER_BREAK_FAILURES", 3)
    monkeypatch.setattr(limits, "LEDGER_BREAK_SECONDS", 600.0)
    facade.lies[""] = lies.html
    for _ in range(3):
        with pytest.raises(LedgerUnreachableError):
            ledger.height()
    assert len(facade.asked) == 3


def test_a_faucet_is_asked_once(facade: Facade, ledger: RpcLedger) -> None:
    facade.lies["requestAirdrop"] = lies.html
    with pytest.raises(LedgerUnreachableError):
        ledger.airdrop(os.urandom(32), 1)
    assert facade.asked.count("requestAirdrop") == 1


def test_what_a_node_says_is_repeated_without_its_control_characters(
    facade: Facade, ledger: RpcLedger
) -> None:
    def rude(reply: Reply) -> None:
        message = "\x1b[31mno\n" + "x" * 10_000
        reply.document["error"] = {"code": -32601, "message": message}

    facade.lies["getBlockHeight"] = rude
    with pytest.raises(LedgerRefusedError) as refused:
        ledger.height()
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 400


def test_keys_in_a_url_are_used_and_never_shown(
    facade: Facade, caplog: pytest.LogCaptureFixture
) -> None:
    from anchor_service.ledgers import open_ledger

    caplog.set_level(1)
    host = facade.url.removeprefix("http://")
    url = f"http://username:pass%20word@{host}/v2/pathkey?api-key=querykey"
    ledger = open_ledger(url, store=None, program=None)
    ledger.height()
    assert facade.headers[-1] == "Basic dXNlcm5hbWU6cGFzcyB3b3Jk /v2/pathkey?api-key=querykey"
    facade.lies[""] = lies.redirecting("/x")
    said = [ledger.name, repr(ledger), caplog.text]
    with pytest.raises(LedgerUnreachableError) as failure:
        ledger.height()
    facade.server.shutdown()
    facade.server.server_close()
    with pytest.raises(LedgerUnreachableError) as gone:
        ledger.height()
    said += [str(failure.value), str(gone.value), caplog.text]
    for secret in ("username", "pass%20", "pass word", "pathkey", "querykey", "dXNlcm5hbWU6"):
        assert secret not in " ".join(said)
    assert ledger.name == facade.url


def test_an_entry_behind_one_that_is_not_there_is_refused(
    ledger: RpcLedger,
) -> None:
    author = Author()
    with pytest.raises(RejectedError) as refused:
        send(ledger, author, 2, author.claim(1, NO_ENTRY).hash(1))
    assert refused.value.failure is not None
    assert refused.value.failure[:2] == ("program", 1008)
