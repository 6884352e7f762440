"""What stands between solana-py's client and the wire: nothing reaches the client unchecked.

solana-py follows what httpx2 does: it waits as long as bytes trickle in, reads a body of any size,
unpacks it, takes a reply to another question, and shows the URL, with the keys in it, in a log.
"""

from __future__ import annotations

import base64
import email.utils
import json
import time
from typing import TYPE_CHECKING

import httpx2
from solana.rpc.async_api import AsyncClient

from savepoint.core import limits
from savepoint.core.errors import LedgerUnreachableError, MalformedError
from savepoint.core.strict_json import check_depth

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from anchor_service.ledgers.clusters import Address


class Guard(httpx2.AsyncBaseTransport):
    """Carries questions to one endpoint. `retry_after`: seconds that it last asked to wait."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if address.user or address.password:
            secret = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
            self._headers["authorization"] = f"Basic {secret}"
        self._wire = httpx2.AsyncHTTPTransport()
        self.retry_after = 0.0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One question, one whole reply to it. Raises LedgerUnreachableError for anything else.

        The caller bounds the time.
        """
        question = await request.aread()
        url = self._address.url
        try:
            asked = httpx2.Request("POST", url, headers=self._headers, content=question)
            reply = await self._wire.handle_async_request(asked)
            try:
                self._check_head(reply)
                body = await _bounded(reply)
            finally:
                await reply.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL) as failure:  # its text may hold the URL
            raise LedgerUnreachableError(f"does not answer: {type(failure).__name__}") from None
        _check_id(body, question)
        return httpx2.Response(200, content=body)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _check_head(self, reply: httpx2.Response) -> None:
        """A redirect would carry the question, and its keys, wherever the answer says; a packed
        body of a megabyte can be a thousand when it is unpacked, so none was asked for.
        """
        if reply.status_code != httpx2.codes.OK:
            self.retry_after = _seconds(reply.headers.get("retry-after", ""))
            raise LedgerUnreachableError(f"answers with status {reply.status_code} of HTTP")
        if reply.headers.get("content-encoding", "identity") != "identity":
            raise LedgerUnreachableError("answers with a packed body, which was not asked for")


def client(guard: Guard) -> AsyncClient:
    """solana-py's client, with `guard` for its only way out."""
    made = AsyncClient("https://ledger.invalid", max_transport_retries=0, http2=False)
    # It takes no transport: its provider's session is replaced before anything was asked.
    made._provider.session = httpx2.AsyncClient(  # noqa: SLF001
        transport=guard, timeout=None, follow_redirects=False, trust_env=False
    )
    return made


async def _bounded(reply: httpx2.Response) -> bytes:
    """The body as it came. Raises LedgerUnreachableError when it grows too long."""
    body = bytearray()
    parts: AsyncIterable[bytes] = reply.stream  # type: ignore[assignment]  # of an async transport
    async for part in parts:
        body += part
        if len(body) > limits.LEDGER_REPLY_BYTES:
            raise LedgerUnreachableError(
                f"answers with more than {limits.LEDGER_REPLY_BYTES} bytes"
            )
    return bytes(body)


def _check_id(body: bytes, question: bytes) -> None:
    try:
        check_depth(body)  # before any parser, the client's own included, recurses into it
        reply = json.loads(body)
    except (ValueError, MalformedError):
        raise LedgerUnreachableError("answers with what is no JSON") from None
    if not isinstance(reply, dict) or reply.get("id") != json.loads(question)["id"]:
        raise LedgerUnreachableError("answers another question than the one that was asked")


def _seconds(retry_after: str) -> float:
    """Of a Retry-After: seconds, or a date (RFC 9110, 10.2.3); 0 for anything else."""
    if retry_after.isascii() and retry_after.isdigit():
        wait = float(retry_after[:9])
    else:
        try:
            wait = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            wait = 0.0
    return min(max(wait, 0.0), limits.LEDGER_RETRY_AFTER_SECONDS)
