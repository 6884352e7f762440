"""Is the log of threads as it was written? As far as its links and the trusted head tell: that
costs little, and a save must not pass for one that could bring damaged threads back.
"""

from __future__ import annotations

import os

from savepoint.core import limits, spelling
from savepoint.core.digest import sha256
from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.patterns import late
from savepoint.store import trusted
from savepoint.store.files import read_bounded
from savepoint.store.layout import THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Store

_LINKED = late(rb'\{"v":[0-9]{1,9},"seq":([0-9]{1,18}),"prev":"([0-9a-f]{64})",')


def damage(store: Store) -> str:
    """What is wrong with it; empty where nothing is. Signatures are not looked at. Raises
    DiskError.
    """
    try:
        head = trusted.load(store.instance(THREADS))  # first: the log only grows
    except UnsupportedFormatError as failure:  # no reason to save nothing else
        return failure.message
    path = os.path.join(store.path, THREADS, "log.jsonl")
    try:
        data = read_bounded(path, limits.HANDOFF_LOG_BYTES)
    except MalformedError as failure:
        return failure.message
    seen, last = (head.seq if head else 0), spelling.ZERO_DIGEST
    lines = (data or b"").split(b"\n")
    for number, line in enumerate(lines, 1):
        found = _LINKED.match(line)
        if found is None or (int(found[1]), found[2].decode()) != (number, last):
            if number < len(lines):
                return f"{path} does not hold at line {number}"
            return f"{path} ends before line {seen}, which was there" if number <= seen else ""
        last = sha256(line).hexdigest()
        if head and number == seen and last != head.record:
            return f"{path} has another line {number} than it had"
    return ""
