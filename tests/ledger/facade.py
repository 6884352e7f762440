"""A JSON-RPC endpoint over an embedded ledger: honest as it is, and lying where a test says how.

What a real node does not do when a test wants it. Lies are functions of a reply under way.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from anchor_service.ledgers.clusters import Address, Cluster
from savepoint.core.errors import LedgerRefusedError, LedgerUnreachableError, RejectedError
from savepoint.core.spelling import base58, key_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from savepoint.core.ledger import AccountState, Ledger


class Reply:
    """What is about to be answered. A lie changes `document`, or answers by itself."""

    def __init__(self, handler: BaseHTTPRequestHandler, facade: Facade, question: Any) -> None:  # noqa: ANN401  # JSON
        self.handler = handler
        self.facade = facade
        self.question = question
        self.document: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        self.is_sent = False

    def answer_honestly(self) -> None:
        """Ask the ledger behind."""
        try:
            self._refuse_if_behind()
            result = getattr(self.facade, self.question["method"])(*self.question["params"])
        except RejectedError as failure:
            error = _error(failure)
            data = {"err": error, "logs": [], "newMember": 1.5}
            self.document["error"] = {"code": -32002, "message": "simulation failed", "data": data}
        except LedgerUnreachableError:
            behind(self)
        except LedgerRefusedError as failure:
            self.document["error"] = {"code": -32602, "message": failure.message}
        else:
            self.document["result"] = result

    def _refuse_if_behind(self) -> None:
        options = self.question["params"][-1:]
        if options and isinstance(options[0], dict):
            slot = options[0].get("minContextSlot", 0)
            if slot > self.facade.ledger.height():
                raise LedgerUnreachableError("behind")

    def raw(self, status: int, body: bytes, **headers: str) -> None:
        """These bytes, in the place of a document."""
        self.is_sent = True
        self.handler.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(body)


class Facade:
    """Serves one ledger. `asked`: methods in their order; `lies`: method, or "", → lie."""

    def __init__(self, ledger: Ledger, genesis: bytes | None = None) -> None:
        self.ledger = ledger
        self.asked: list[str] = []
        self.lies: dict[str, Callable[[Reply], None]] = {}
        self.headers: list[str] = []  # authorization and path of each question
        self.genesis = genesis
        self.server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def cluster(self, name: str = "", genesis: bytes | None = None) -> Cluster:
        """As a choice of that name, but served here."""
        return Cluster(name or self.url, genesis, (Address(self.url, self.url + "/", "", ""),))

    # The methods, by their names on the wire.

    def getGenesisHash(self) -> str:  # noqa: N802
        return base58(self.genesis or self.ledger.genesis())

    def getLatestBlockhash(self, options: Any) -> object:  # noqa: ANN401, N802
        assert options["commitment"] == "confirmed"
        found = self.ledger.blockhash()
        value = {"blockhash": base58(found.hash), "lastValidBlockHeight": found.last_valid_height}
        return {"context": {"slot": found.slot}, "value": value}

    def getBlockHeight(self, options: Any) -> int:  # noqa: ANN401, N802
        assert options["commitment"] == "confirmed"
        return self.ledger.height()

    def getMinimumBalanceForRentExemption(self, size: int, _options: object) -> int:  # noqa: N802
        return self.ledger.rent(size)

    def getBalance(self, address: str, _options: object) -> object:  # noqa: N802
        value = self.ledger.balance(key_bytes(address))
        return {"context": {"slot": self.ledger.height()}, "value": value}

    def getMultipleAccounts(self, addresses: list[str], options: Any) -> object:  # noqa: ANN401, N802
        states = self.ledger.accounts([key_bytes(one) for one in addresses], options["commitment"])
        return {
            "context": {"slot": self.ledger.height()},
            "value": [_spelled(one) for one in states],
        }

    def sendTransaction(self, text: str, options: Any) -> str:  # noqa: ANN401, N802
        assert options["maxRetries"] == 0
        transaction = base64.b64decode(text)
        self.ledger.send(transaction, self.ledger.blockhash())
        return base58(transaction[1:65])

    def getSignatureStatuses(self, signatures: list[str], options: Any) -> object:  # noqa: ANN401, N802
        found = [
            self.ledger.landing(_signature(one), history=options["searchTransactionHistory"])
            for one in signatures
        ]
        value = [
            one
            and {
                "slot": one.slot,
                "confirmations": None,
                "err": None,
                "status": {"Ok": None},
                "confirmationStatus": one.level,
                "newMember": {"a": [1.5]},
            }
            for one in found
        ]
        return {"context": {"slot": self.ledger.height(), "apiVersion": "5.0"}, "value": value}

    def requestAirdrop(self, address: str, lamports: int, _options: object) -> str:  # noqa: N802
        self.ledger.airdrop(key_bytes(address), lamports)
        return base58(bytes(64))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on a liar is what the tests want."""


def _handler(facade: Facade) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that http.server calls
            question = json.loads(self.rfile.read(int(self.headers["content-length"])))
            facade.asked.append(question["method"])
            facade.headers.append(f"{self.headers.get('authorization')} {self.path}")
            reply = Reply(self, facade, question)
            lie = facade.lies.get(question["method"]) or facade.lies.get("")
            if lie is None:
                reply.answer_honestly()
            else:
                lie(reply)
            if not reply.is_sent:
                reply.raw(200, json.dumps(reply.document).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name
            """Nothing."""

    return Handler


@contextmanager
def serving(ledger: Ledger, genesis: bytes | None = None) -> Iterator[Facade]:
    facade = Facade(ledger, genesis)
    thread = threading.Thread(target=facade.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield facade
    finally:
        facade.server.shutdown()
        facade.server.server_close()
        thread.join()


def _spelled(state: AccountState | None) -> object:
    return state and {
        "data": [base64.b64encode(state.data).decode(), "base64"],
        "executable": state.executable,
        "lamports": state.lamports,
        "owner": base58(state.owner),
        "rentEpoch": 2**64 - 1,
        "space": len(state.data),
    }


def _error(refused: RejectedError) -> object:
    """As the wire has it."""
    if refused.failure is None or refused.failure.code is None:
        return refused.failure and refused.failure.detail
    return {"InstructionError": [1, {"Custom": refused.failure.code}]}


def _signature(text: str) -> bytes:
    number = 0
    for letter in text:
        number = number * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(
            letter
        )
    return number.to_bytes(64, "big")


# The lies.


def html(reply: Reply) -> None:
    reply.raw(200, b"<html><body>502 Bad Gateway</body></html>", content_type="text/html")


def empty(reply: Reply) -> None:
    reply.raw(200, b"")


def truncated(reply: Reply) -> None:
    reply.answer_honestly()
    body = json.dumps(reply.document).encode()
    reply.raw(200, body[: len(body) // 2])


def hung_up(reply: Reply) -> None:
    """Fewer bytes than it announced."""
    reply.raw(200, b'{"jsonrpc"', content_length="1000")
    reply.handler.close_connection = True


def oversized(reply: Reply) -> None:
    """Valid, and endless as far as the client can see."""
    reply.raw(200, b"", content_length=str(1 << 40))
    blank = b" " * 65536
    for _ in range(1 << 24):  # ends when the client hangs up
        reply.handler.wfile.write(blank)


def packed(reply: Reply) -> None:
    reply.raw(200, bomb(), content_encoding="gzip")


@functools.cache
def bomb() -> bytes:
    """64 MiB of blanks in 64 KiB."""
    return gzip.compress(b" " * (64 << 20))


def trickling(reply: Reply) -> None:
    """Headers at once, then a byte now and then."""
    reply.raw(200, b"", content_length="100000")
    for _ in range(600):
        reply.handler.wfile.write(b" ")
        reply.handler.wfile.flush()
        time.sleep(0.1)


def other_id(reply: Reply) -> None:
    reply.answer_honestly()
    reply.document["id"] += 1


def deep(reply: Reply) -> None:
    body = b'{"jsonrpc":"2.0","id":%d,"result":' % reply.question["id"]
    reply.raw(200, body + b"[" * 100_000 + b"]" * 100_000 + b"}")


def nonsense(reply: Reply) -> None:
    reply.document["result"] = {"context": {"slot": "1"}, "value": -5}


def behind(reply: Reply) -> None:
    """A node that has not seen what it is asked for."""
    message = "Minimum context slot has not been reached"
    reply.document["error"] = {"code": -32016, "message": message}  # without data (solana#15576)


def pruned(reply: Reply) -> None:
    message = "Transaction history is not available from this node"
    reply.document["error"] = {"code": -32011, "message": message}


def unseen(reply: Reply) -> None:
    """It fell out of the cache, or never was (solana#25971)."""
    reply.document["result"] = {"context": {"slot": 1}, "value": [None]}


def made_up(reply: Reply) -> None:
    """Finalized, which never happened."""
    status = {"slot": 7, "confirmations": None, "err": None, "confirmationStatus": "finalized"}
    reply.document["result"] = {"context": {"slot": 9}, "value": [status]}


def dropped(reply: Reply) -> None:
    """The right signature for a transaction that goes nowhere (solana#35485)."""
    transaction = base64.b64decode(reply.question["params"][0])
    reply.document["result"] = base58(transaction[1:65])


def other_signature(reply: Reply) -> None:
    reply.answer_honestly()
    reply.document["result"] = base58(b"\7" * 64)


def overloaded(retry_after: str) -> Callable[[Reply], None]:
    return lambda reply: reply.raw(429, b"slow down", retry_after=retry_after)


def redirecting(url: str) -> Callable[[Reply], None]:
    return lambda reply: reply.raw(307, b"", location=url)
