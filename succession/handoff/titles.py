"""Titles of threads: a base, and ` v<N>` behind it from the first handoff on.

A title names nothing: threads are found by registry row, project and id.
"""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"(.*\S) v([0-9]{1,9})", re.DOTALL)


def own(title: str) -> str:
    """What the outgoing thread is called from now on: one without a suffix was the first."""
    return title if _NUMBERED.fullmatch(title) else f"{title} v1"


def successor(title: str) -> str:
    """What its successor is called: `x` → `x v2`, `x v01` → `x v2`, `x v2 v3` → `x v2 v4`."""
    found = _NUMBERED.fullmatch(title)
    return f"{found[1]} v{int(found[2]) + 1}" if found else f"{title} v2"
