"""The scan of a transcript that comes in pieces, and what of it is compared."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from savepoint.capture.agents.claude_scan import Scan

if TYPE_CHECKING:
    from tests.capture.claude_reference import Reference
COUNTS = ("size", "messages", "records", "boundaries", "glued", "unparsable", "unended", "torn")
LASTS = ("session_id", "version", "cwd", "model", "usage", "todos")
MAPS = ("sessions", "files", "tasks", "skills", "backups")


def scan_of(data: bytes, cuts: list[int] | None = None) -> Scan:
    return fed(data, cuts or []).end()


def fed(data: bytes, cuts: list[int]) -> Scan:
    scan = Scan.empty()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, stop in itertools.pairwise(edges):
        scan.feed(data[start:stop])
    return scan


def facts(scan: Scan | Reference) -> dict[str, Any]:
    found = {name: getattr(scan, name) for name in (*COUNTS, *LASTS, *MAPS)}
    offsets = [file[1] for file in scan.files.values()]
    assert offsets == sorted(offsets)
    return found
