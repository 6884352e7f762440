"""A model server on the loopback for the real client: it answers what a test wants, and keeps what
it was asked.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPACTION = "Your task is to create a detailed summary of"
SUMMARY = "<analysis>looked</analysis><summary>what was said before, in short</summary>"


class Reply(NamedTuple):
    """What the model says in one turn: a text, or the call of a tool."""

    text: str = ""
    tool: str = ""
    given: dict[str, Any] | None = None  # the tool's input
    tokens: int = 1000  # that the prompt is said to have had
    status: int = 200  # other than 200: an error of the API, with `text` as its message


class Stub:
    """The server. Use as a context manager."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []  # bodies of /v1/messages, in order of arrival
        self.replies: deque[Reply] = deque()  # for the next turns of conversations, with tools
        self._lock = threading.Lock()
        self._calls = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """For ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The requests that go on with a conversation: not titles, not compactions."""
        return [one for one in self.requests if is_turn(one)]

    @property
    def compactions(self) -> list[dict[str, Any]]:
        """The requests for a summary."""
        return [one for one in self.requests if is_compaction(one)]

    def reply(self, body: dict[str, Any]) -> Reply:
        """Note a request; what to answer it."""
        with self._lock:
            self.requests.append(body)
            if is_compaction(body):
                return Reply(SUMMARY)
            if not is_turn(body):
                return Reply("a title")
            self._calls += 1
            return self.replies.popleft() if self.replies else Reply(f"answer {self._calls}")


def is_compaction(body: dict[str, Any]) -> bool:
    """Does the request ask for a summary of the conversation?"""
    return any(COMPACTION in text for text in last_texts(body))


def is_turn(body: dict[str, Any]) -> bool:
    """Does it go on with a conversation? Only those offer tools."""
    return bool(body.get("tools")) and not is_compaction(body)


def last_texts(body: dict[str, Any]) -> list[str]:
    """The texts of the user's last message; newer clients put messages of the system behind it."""
    users = [one for one in body.get("messages", []) if one.get("role") == "user"]
    return list(texts(users[-1:]))


def texts(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Every text in messages, of results of tools as well."""
    for message in messages:
        yield from _texts(message.get("content"))


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield from _texts(block.get("text"))
                yield from _texts(block.get("content"))


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._send(b"", "text/plain")

        def do_GET(self) -> None:
            self._send(b"{}", "application/json", 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            if not self.path.startswith("/v1/messages"):
                self._send(b"{}", "application/json", 404)
                return
            reply = stub.reply(body)
            model = str(body.get("model"))
            if reply.status != 200:
                error = {"type": "invalid_request_error", "message": reply.text}
                data = json.dumps({"type": "error", "error": error}).encode()
                self._send(data, "application/json", reply.status)
            elif body.get("stream"):
                self._send(_events(reply, model), "text/event-stream")
            else:
                message = {**_head(reply, model), "content": [_block(reply)]}
                ended = {"stop_reason": _stop(reply), "stop_sequence": None}
                self._send(json.dumps({**message, **ended}).encode(), "application/json")

        def _send(self, data: bytes, kind: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: a test looks at the requests."""

    return Handler


_COUNT = iter(range(1, 1_000_000))


def _head(reply: Reply, model: str) -> dict[str, Any]:
    usage = {
        "input_tokens": reply.tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 20,
    }
    return {
        "id": f"msg_{next(_COUNT):08}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _block(reply: Reply) -> dict[str, Any]:
    if reply.tool:
        identity = f"toolu_{next(_COUNT):08}"
        return {"type": "tool_use", "id": identity, "name": reply.tool, "input": reply.given or {}}
    return {"type": "text", "text": reply.text}


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.tool else "end_turn"


def _events(reply: Reply, model: str) -> bytes:
    """The reply as a stream of server-sent events."""
    block = _block(reply)
    if reply.tool:
        part = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        begun = {**block, "input": {}}
    else:
        part = {"type": "text_delta", "text": reply.text}
        begun = {"type": "text", "text": ""}
    head = _head(reply, model)
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": part},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": head["usage"]},
        {"type": "message_stop"},
    ]
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode())
        for one in events
    )
