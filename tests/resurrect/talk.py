"""Conversations as the client writes them: each record names the one before it."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from savepoint.resurrect import conversation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.resurrect.conversation import Session

SESSION = "11111111-2222-4333-8444-555555555555"


def read(saved: Iterable[bytes], *, full: bool) -> Session:
    """How a saved file comes back."""
    reader = conversation.Reader(full=full)
    for _ in reader.passing(saved):
        pass
    return reader.session()


class Talk:
    """Grows a transcript; `data` is the file."""

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self.records: list[dict[str, Any]] = []
        self._last: str | None = None

    @property
    def data(self) -> bytes:
        """The file."""
        lines = (json.dumps(one, separators=(",", ":")) for one in self.records)
        return b"".join(line.encode() + b"\n" for line in lines)

    def say(self, count: int, tag: str) -> Talk:
        """So many questions and answers: `TAG-u0`, `TAG-a0`, …"""
        for number in range(count):
            self.user(f"{tag}-u{number}")
            self.answer(f"{tag}-a{number}")
        return self

    def user(self, text: str) -> Talk:
        """A question."""
        return self.add("user", {"role": "user", "content": text})

    def answer(self, text: str) -> Talk:
        """An answer."""
        message = {
            "id": f"msg_{len(self.records)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        return self.add("assistant", message)

    def compact(self, summary: str = "in short") -> Talk:
        """A compaction: a boundary, and the client's summary."""
        before, self._last = self._last, None
        self._add({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": before})
        message = {"role": "user", "content": summary}
        return self.add("user", message, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def lose_the_link(self) -> Talk:
        """What comes next names a parent that was never written."""
        self._last = str(uuid.uuid4())
        return self

    def add(self, kind: str, message: dict[str, Any], **more: object) -> Talk:
        """A record with a message."""
        return self._add({"type": kind, "message": message, **more})

    def _add(self, record: dict[str, Any]) -> Talk:
        identity = str(uuid.uuid4())
        head = {"parentUuid": self._last, "isSidechain": False, "cwd": "/nowhere"}
        tail = {"uuid": identity, "timestamp": "2026-11-30T10:00:00.000Z"}
        whole = {**head, "sessionId": self.session, "version": "2.1.300", **record, **tail}
        self.records.append(whole)
        self._last = identity
        return self
