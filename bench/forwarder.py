"""Stands between us and a cluster, on the loopback, and notes what is asked."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from types import TracebackType

_STATUSES = "getSignatureStatuses"


class Call(NamedTuple):
    """One question."""

    method: str
    at: float  # time.perf_counter() when its reply had come
    is_confirmed: bool  # the reply calls a transaction confirmed, or finalized


class Forwarder:
    """An endpoint that asks another, and keeps `calls` in the order of their replies."""

    def __init__(self, url: str) -> None:
        self.calls: list[Call] = []
        self._target = url
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def besides_finality(self) -> int:
        """Calls, without those that asked for the status of what was known to be confirmed."""
        first = next(at for at, one in enumerate(self.calls) if one.is_confirmed)
        waits = sum(one.method == _STATUSES for one in self.calls[first + 1 :])
        return len(self.calls) - waits

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        forward = self._forward

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # the connection is kept, as the cluster keeps it

            def do_POST(self) -> None:  # its name there
                reply = forward(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_args: object) -> None:
                """Nothing on stderr."""

        return Handler

    def _forward(self, question: bytes) -> bytes:
        request = urllib.request.Request(  # noqa: S310  # of this machine
            self._target, question, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # as above
            reply: bytes = answer.read()
        method = json.loads(question)["method"]
        confirmed = method == _STATUSES and _is_confirmed(json.loads(reply))
        self.calls.append(Call(method, time.perf_counter(), confirmed))
        return reply


def _is_confirmed(reply: Any) -> bool:  # noqa: ANN401  # JSON
    levels = [one and one["confirmationStatus"] for one in reply["result"]["value"]]
    return any(level in {"confirmed", "finalized"} for level in levels)
