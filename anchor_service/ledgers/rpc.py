"""A cluster, asked over JSON-RPC: each method of the Ledger is one question, or one of each place.

Read anchor_service/ledgers/guard.py for what a reply must pass, endpoints.py for who is asked.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
import weakref
from typing import TYPE_CHECKING, TypeVar

from anchor_service.failures import classify
from anchor_service.ledgers.clusters import PUBLIC
from anchor_service.ledgers.endpoints import Endpoints, Question
from anchor_service.ledgers.shapes import (
    COUNT,
    AccountShape,
    BlockhashShape,
    Contextual,
    Count,
    StatusShape,
)
from anchor_service.transaction import signature_of
from savepoint.core import limits
from savepoint.core.errors import LedgerUnreachableError, MalformedError
from savepoint.core.ledger import AccountState, Blockhash, Landing
from savepoint.core.spelling import base58, key_bytes

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from anchor_service.ledgers.clusters import Cluster
    from savepoint.core.strict_json import Json

Answer = TypeVar("Answer")

_LEVELS = ("processed", "confirmed", "finalized")
_CONFIRMED: Json = {"commitment": "confirmed"}
_DISAGREEMENTS = 3  # times that places which disagree are asked: one may be some slots behind


class RpcLedger:
    """A cluster. deadline: of time.monotonic(), for all that is asked in its life."""

    def __init__(self, cluster: Cluster, deadline: float | None = None) -> None:
        self.name = cluster.name
        self._endpoints = Endpoints(cluster, deadline)
        self._runner = asyncio.Runner()
        weakref.finalize(self, _close, self._runner, self._endpoints)

    def bound(self, deadline: float) -> None:
        """As the protocol says."""
        self._endpoints.deadline = deadline

    @property
    def is_public(self) -> bool:
        """Asked, unless somebody did before."""
        return (self._endpoints.identity.genesis or self.genesis()) in PUBLIC

    @property
    def endpoints(self) -> int:
        """So many must answer, and agree, before anything is called finalized."""
        return min(len(self._endpoints.places), limits.LEDGER_WITNESSES)

    def genesis(self) -> bytes:
        """Asked anew each time: a cluster may be reset."""
        return self._run(self._endpoints.genesis())

    def account(self, address: bytes, level: str, not_before: int = 0) -> AccountState | None:
        """As the protocol says."""
        return self._accounts([address], level, not_before)[0]

    def accounts(self, addresses: Sequence[bytes], level: str) -> list[AccountState | None]:
        """At most 100, which is what one call takes."""
        return self._accounts(addresses, level, 0)

    def blockhash(self) -> Blockhash:
        """As the protocol says."""
        question = Question("getLatestBlockhash", [_CONFIRMED], Contextual[BlockhashShape])
        found = self._run(self._endpoints.ask(question))
        return Blockhash(
            _key(found.value.blockhash), found.value.last_valid_height, found.context.slot
        )

    def height(self) -> int:
        """As the protocol says."""
        return self._run(self._endpoints.ask(Question("getBlockHeight", [_CONFIRMED], COUNT)))

    def rent(self, size: int) -> int:
        """As the protocol says."""
        question = Question("getMinimumBalanceForRentExemption", [size, _CONFIRMED], COUNT)
        return self._run(self._endpoints.ask(question))

    def balance(self, address: bytes) -> int:
        """As the protocol says."""
        question = Question("getBalance", [base58(address), _CONFIRMED], Contextual[Count])
        return self._run(self._endpoints.ask(question)).value

    def send(self, transaction: bytes, blockhash: Blockhash) -> None:
        """The node that simulates must have seen the blockhash: others call it unknown, and a
        simulation at another level than the blockhash's does so too (brave-browser#24345).
        """
        options: Json = {
            "encoding": "base64",
            "preflightCommitment": "confirmed",
            "minContextSlot": blockhash.slot,
            "maxRetries": 0,  # who sends again is the caller
        }
        text = base64.b64encode(transaction).decode()
        self._run(self._send(Question("sendTransaction", [text, options], str), transaction))

    def landing(self, signature: bytes, *, history: bool) -> Landing | None:
        """With history every place is asked: None means that none has seen it, and each looked."""
        options: Json = {"searchTransactionHistory": history}
        question = Question(
            "getSignatureStatuses",
            [[base58(signature)], options],
            Contextual[list[StatusShape | None]],
        )
        count = len(self._endpoints.places) if history else 1
        found = self._run(self._endpoints.ask_each(question, count))
        seen = [one.value[0] for one in found if len(one.value) == 1 and one.value[0]]
        if any(len(one.value) != 1 for one in found):
            raise LedgerUnreachableError(f"{self.name} answers with another number of statuses")
        if not seen:
            return None
        best = max(seen, key=lambda one: _LEVELS.index(one.level))
        error = None if best.err is None else classify(best.err)
        return Landing(best.slot, best.level, error)

    def airdrop(self, address: bytes, lamports: int) -> None:
        """Asked once: a request that seems to fail may succeed (solana#29274)."""
        params: list[Json] = [base58(address), lamports, _CONFIRMED]
        self._run(self._endpoints.ask(Question("requestAirdrop", params, str), once=True))

    async def _send(self, question: Question[str], transaction: bytes) -> None:
        """The bytes say by themselves what their signature is. A node that names another did
        something else with them, or nothing.
        """
        if await self._endpoints.ask(question) != base58(signature_of(transaction)):
            raise LedgerUnreachableError(f"{self.name} answers with the signature of another")

    def _accounts(
        self, addresses: Sequence[bytes], level: str, not_before: int
    ) -> list[AccountState | None]:
        count = self.endpoints if level == "finalized" else 1
        for _ in range(_DISAGREEMENTS):
            answers = self._run(
                self._endpoints.ask_each(_accounts(addresses, level, not_before), count)
            )
            found = [_states(one, len(addresses)) for one in answers]
            if all(_content(one) == _content(found[0]) for one in found):
                return found[0]
            not_before = max(one.context.slot for one in answers)
        raise LedgerUnreachableError("two endpoints disagree about what is finalized")

    def _run(self, asked: Coroutine[object, object, Answer]) -> Answer:
        return self._runner.run(asked)


def _close(runner: asyncio.Runner, endpoints: Endpoints) -> None:
    """When nobody has the ledger any more. Where that is noticed, another loop may be running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        runner.run(endpoints.close())
        runner.close()
    else:
        aside = threading.Thread(target=_close, args=(runner, endpoints))
        aside.start()
        aside.join()


def _accounts(
    addresses: Sequence[bytes], level: str, not_before: int
) -> Question[Contextual[list[AccountShape | None]]]:
    options: dict[str, Json] = {"commitment": level, "encoding": "base64"}
    if not_before:
        options["minContextSlot"] = not_before
    names: list[Json] = [base58(address) for address in addresses]
    shape = Contextual[list[AccountShape | None]]
    return Question("getMultipleAccounts", [names, options], shape)


def _states(answer: Contextual[list[AccountShape | None]], count: int) -> list[AccountState | None]:
    if len(answer.value) != count:
        raise LedgerUnreachableError("an endpoint answers with another number of accounts")
    return [None if one is None else _state(one, answer.context.slot) for one in answer.value]


def _state(account: AccountShape, slot: int) -> AccountState:
    return AccountState(
        _key(account.owner), account.lamports, _data(account), account.executable, slot
    )


def _content(states: list[AccountState | None]) -> list[tuple[bytes, bytes, bool] | None]:
    """What places must agree about: anybody may send lamports, at any slot."""
    return [one and (one.owner, one.data, one.executable) for one in states]


def _data(account: AccountShape) -> bytes:
    text, encoding = account.data
    try:
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    raise LedgerUnreachableError("an endpoint answers with data that is no base64")


def _key(text: str) -> bytes:
    try:
        return key_bytes(text)
    except MalformedError:
        raise LedgerUnreachableError("an endpoint answers with a key that is none") from None
