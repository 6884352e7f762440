"""Records of a made-up transcript, and the scan of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from savepoint.capture.agents.claude_scan import Scan

if TYPE_CHECKING:
    from savepoint.capture.agents import FileNote, Span


def line_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def fed(*records: dict[str, Any]) -> Scan:
    scan = Scan.empty()
    for record in records:
        scan.feed(line_of(record) + b"\n")
    return scan


def at(data: bytes, span: Span | FileNote | None) -> bytes:
    assert span is not None
    return data[span.offset : span.offset + span.length]
