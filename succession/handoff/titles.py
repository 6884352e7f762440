"""Titles of threads: a base, and ` v<N>` behind it from the first handoff on.

A title names nothing: threads are found by registry row, project and id. None is refused; of a base
that two of them would not leave room for in a line, the start is kept.
"""

from __future__ import annotations

import re

from savepoint.core import limits
from succession.handoff import texts

_NUMBERED = re.compile(r"(.*\S) v([0-9]{1,9})", re.DOTALL)


def fitting(title: str) -> str:
    """So much of a title as every line of the log has room for."""
    found = _NUMBERED.fullmatch(title)
    return f"{_base(found[1])} v{found[2]}" if found else _base(title)


def own(title: str) -> str:
    """What the outgoing thread is called from now on: one without a suffix was the first."""
    return fitting(title) if _NUMBERED.fullmatch(title) else f"{_base(title)} v1"


def successor(title: str) -> str:
    """What its successor is called: `x` → `x v2`, `x v01` → `x v2`, `x v2 v3` → `x v2 v4`."""
    found = _NUMBERED.fullmatch(title)
    return f"{_base(found[1])} v{int(found[2]) + 1}" if found else f"{_base(title)} v2"


def _base(text: str) -> str:
    return texts.cut(text, limits.HANDOFF_TITLE_BYTES)
