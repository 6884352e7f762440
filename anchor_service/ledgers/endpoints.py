"""Which endpoint of a cluster is asked, and when: one that fails is left alone for a while.

An endpoint has one number, the time before which it is not asked. A failure moves it: by a pause
with full jitter that doubles, by the Retry-After of the reply, or, after some failures in a row, by
a longer break. The endpoint whose time comes first is asked.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from solana.rpc.jsonrpc import JsonRpcRequest, SolanaJsonRpcError

from anchor_service.failures import classify
from anchor_service.ledgers import guard
from anchor_service.native import contained
from savepoint.core import limits
from savepoint.core.errors import (
    LedgerRefusedError,
    LedgerUnreachableError,
    MalformedError,
    RejectedError,
    WrongClusterError,
)
from savepoint.core.spelling import base58, key_bytes

if TYPE_CHECKING:
    from anchor_service.ledgers.clusters import Address, Cluster
    from savepoint.core.strict_json import Json

Answer = TypeVar("Answer")

# Of a node that is behind, starting, or asked too often: another time, or another node, can answer.
_NOT_NOW = {-32004, -32005, -32014, -32016, -32603, -32429, 429}
_PREFLIGHT = -32002  # the transaction was simulated, and failed
_NO_HISTORY = -32011  # it cannot know, so that its "never seen" would be no answer


class Question(Generic[Answer]):
    """One method with its parameters, and the shape of its result."""

    def __init__(self, method: str, params: list[Json], shape: type[Answer]) -> None:
        self.method = method
        self.params = params
        self._shape: TypeAdapter[Answer] = TypeAdapter(shape)

    def read(self, result: object) -> Answer:
        """Raises LedgerUnreachableError: a result of another shape is none."""
        try:
            return self._shape.validate_python(result, strict=True)
        except ValidationError:
            raise LedgerUnreachableError(f"answers {self.method} with nonsense") from None


class Identity:
    """Which cluster it is: the one that was chosen by name, or else the first that answered."""

    def __init__(self, cluster: Cluster) -> None:
        self._name = cluster.name
        self._named = cluster.genesis
        self.genesis = cluster.genesis

    def forget(self) -> None:
        """A cluster without a public name may begin anew."""
        self.genesis = self._named

    def check(self, found: bytes) -> None:
        """Raises WrongClusterError."""
        if self.genesis is None:
            self.genesis = found
        elif found != self.genesis and self._named:
            raise WrongClusterError(f"is not {self._name}: its genesis hash is {base58(found)}")
        elif found != self.genesis:
            raise WrongClusterError(f"is of another cluster, or was reset: {base58(found)}")


_GENESIS = Question("getGenesisHash", [], str)


class Endpoint:
    """One place that answers, and how it did lately."""

    def __init__(self, address: Address, identity: Identity) -> None:
        self.origin = address.origin
        self.ready_at = 0.0  # of time.monotonic()
        self.is_checked = False  # is it of the right cluster?
        self._identity = identity
        self._guard = guard.Guard(address)
        self._client = guard.client(self._guard)
        self._failures = 0  # in a row
        self._ids = itertools.count(1)

    async def ask(self, question: Question[Answer], seconds: float) -> Answer:
        """The answer, within that time. Raises LedgerUnreachableError, LedgerRefusedError."""
        try:
            async with asyncio.timeout(seconds):
                if not self.is_checked and question.method != _GENESIS.method:
                    genesis: str = await self._ask(_GENESIS)
                    self._know(genesis)
                answer = await self._ask(question)
                if question.method == _GENESIS.method:
                    self._know(answer)
        except TimeoutError:
            raise self._failed(f"no whole answer in {seconds:.0f} s") from None
        except LedgerUnreachableError as failure:
            raise self._failed(failure.message) from None
        except LedgerRefusedError as failure:
            failure.message = f"{self.origin}: {failure.message}"
            raise
        self._failures = 0
        self.ready_at = 0.0
        return answer

    def _know(self, answer: object) -> None:
        """Which cluster it is of, by its genesis hash. Raises WrongClusterError."""
        self._identity.check(_genesis(str(answer)))
        self.is_checked = True

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def _ask(self, question: Question[Answer]) -> Answer:
        request = JsonRpcRequest(id=next(self._ids), method=question.method, params=question.params)
        try:
            with contained("answers with what breaks its reader", LedgerUnreachableError):
                result = await self._client.send_rpc_request(request, object)
        except SolanaJsonRpcError as failure:
            raise _refusal(failure) from None
        return question.read(result)

    def _failed(self, reason: str) -> LedgerUnreachableError:
        """Behind a failure another cluster may stand at the same place: it is checked again."""
        self.is_checked = False
        self._failures += 1
        wait, self._guard.retry_after = self._guard.retry_after, 0.0
        self.ready_at = time.monotonic() + max(wait, _pause(self._failures))
        return LedgerUnreachableError(f"{self.origin} {reason}")


class Endpoints:
    """All endpoints of a cluster. deadline: of time.monotonic(), for everything that is asked."""

    def __init__(self, cluster: Cluster, deadline: float | None) -> None:
        self.identity = Identity(cluster)
        self._all = [Endpoint(address, self.identity) for address in cluster.addresses]
        self.deadline = float("inf") if deadline is None else deadline
        # Two URLs of one host are one place.
        self.places = list({one.origin: one for one in reversed(self._all)}.values())[::-1]

    async def ask(self, question: Question[Answer], *, once: bool = False) -> Answer:
        """The first answer that anyone gives. Raises LedgerUnreachableError, LedgerRefusedError."""
        return await self._ask(question, self._all, once=once)

    async def ask_each(self, question: Question[Answer], count: int) -> list[Answer]:
        """The answers of `count` places. Raises LedgerUnreachableError if fewer give one,
        LedgerRefusedError.
        """
        if count == 1:
            return [await self.ask(question)]
        answers: list[Answer] = []
        failure = LedgerUnreachableError("no endpoint")
        for place in sorted(self.places, key=lambda one: one.ready_at):
            if len(answers) < count:
                try:
                    answers.append(await self._ask(question, [place]))
                except LedgerUnreachableError as last:
                    failure = last
        if len(answers) < count:
            raise failure
        return answers

    async def genesis(self) -> bytes:
        """Asked anew."""
        self.identity.forget()
        for one in self._all:
            one.is_checked = False
        return _genesis(await self.ask(_GENESIS))

    async def close(self) -> None:
        """Close all connections."""
        for one in self._all:
            await one.close()

    async def _ask(
        self, question: Question[Answer], among: list[Endpoint], *, once: bool = False
    ) -> Answer:
        end = min(self.deadline, time.monotonic() + limits.LEDGER_CALL_SECONDS)
        attempts = 1 if once else limits.LEDGER_ATTEMPTS * len(among)
        failure = LedgerUnreachableError("the time allowed for the ledger has passed")
        for _ in range(attempts):
            endpoint = min(among, key=lambda one: one.ready_at)
            start = max(endpoint.ready_at, time.monotonic())
            if start >= end:
                break
            await asyncio.sleep(start - time.monotonic())
            seconds = min(limits.LEDGER_REPLY_SECONDS, end - start)
            try:
                return await endpoint.ask(question, seconds)
            except LedgerUnreachableError as last:
                failure = last
        raise failure


def _genesis(text: str) -> bytes:
    try:
        return key_bytes(text)
    except MalformedError:
        raise LedgerUnreachableError("answers with what is no genesis hash") from None


def _pause(failures: int) -> float:
    """Seconds; random, so that clients whose endpoint came back do not all come at once."""
    if failures >= limits.LEDGER_BREAK_FAILURES:
        return limits.LEDGER_BREAK_SECONDS
    longest = limits.LEDGER_PAUSE_FIRST_SECONDS * 2 ** (failures - 1)
    return random.uniform(0, min(longest, limits.LEDGER_PAUSE_LONGEST_SECONDS))  # noqa: S311  # no secret


def _refusal(failure: SolanaJsonRpcError) -> LedgerUnreachableError | LedgerRefusedError:
    said = "".join(c if c.isprintable() else " " for c in failure.message)
    said = f"says: {said[: limits.LEDGER_REASON_CHARS]} ({failure.code})"
    if failure.code in _NOT_NOW or failure.code == _NO_HISTORY:
        return LedgerUnreachableError(said)
    if failure.code == _PREFLIGHT and isinstance(failure.data, dict) and failure.data.get("err"):
        reason = classify(failure.data["err"])
        return RejectedError(reason.detail, reason)
    return LedgerRefusedError(said)
