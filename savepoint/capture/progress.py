"""How far a session has come since its last savepoint, for events that do not always save.

Only what is new is read: the fold of the last savepoint goes on from where it stopped.
"""

from __future__ import annotations

import os

from savepoint.capture.agents import Tokens
from savepoint.core import limits
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.files import open_regular, read_at
from savepoint.store.session import sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.agents.adapter import Adapter, Fold
    from savepoint.capture.request import Request
    from savepoint.store.layout import Store
    from savepoint.store.session.sessions import CachedFile, Session

_NOTHING = Tokens(None, None, None, None, "not looked at")


class Progress(NamedTuple):
    """What is new."""

    grown: int  # bytes that the transcript grew by, or shrank
    messages: int  # of the user and the agent; -1: it may be any number
    age: int  # seconds since the last savepoint; since ever where there is none
    tokens: Tokens
    compactions: int


def progress(store: Store, key: str, request: Request, adapter: Adapter) -> Progress | None:
    """None where there is no transcript. `request` is resolved, and knows its window."""
    try:
        fd = open_regular(request.transcript)
    except (OSError, SavepointError):
        return None
    try:
        return _progress(fd, store, key, request, adapter)
    except OSError:
        return None
    finally:
        os.close(fd)


def ends_compacted(last: Session, adapter: Adapter) -> bool:
    """Has the transcript, as far as its last savepoint has it, the mark of a compaction and no
    answer after it? No, where it can no longer be read.
    """
    saved = last.files.get(last.transcript or "")
    if saved is None or last.transcript is None:
        return False
    try:
        fd = open_regular(last.transcript)
    except (OSError, SavepointError):
        return False
    try:
        scan = _begun(adapter, saved, saved.stamp.size)
        _feed(scan, fd, saved.stamp.size)
    except OSError:
        return False
    finally:
        os.close(fd)
    ended = scan.end()
    return ended.boundaries > 0 and ended.usage is None


def _progress(fd: int, store: Store, key: str, request: Request, adapter: Adapter) -> Progress:
    size = os.fstat(fd).st_size
    last = sessions.load(store, key)
    saved = last.files.get(request.transcript) if last else None
    before = saved.stamp.size if saved else 0
    age = request.now - last.saved_at if last and saved else request.now
    scan = _begun(adapter, saved, size)
    if size - scan.size > limits.PROGRESS_BYTES:
        return Progress(abs(size - before), -1, age, _NOTHING, 0)
    is_longer = saved is not None and scan.size <= before <= size
    if is_longer:
        _feed(scan, fd, before)
    said = scan.messages
    _feed(scan, fd, size)
    ended = scan.end()
    at = ended.usage
    line = read_at(fd, min(at.length, limits.SEGMENT_HARD_BYTES), at.offset) if at else None
    return Progress(
        grown=abs(size - before),
        messages=ended.messages - said if is_longer or saved is None else -1,
        age=age,
        tokens=adapter.tokens(ended, line, request.window),
        compactions=ended.boundaries,
    )


def _begun(adapter: Adapter, saved: CachedFile | None, size: int) -> Fold:
    """The fold of the last savepoint; an empty one where that is not this file's beginning."""
    if saved is not None and saved.stamp.size <= size:
        try:
            return adapter.Scan.from_json(saved.extra)
        except MalformedError:
            pass
    return adapter.Scan.empty()


def _feed(scan: Fold, fd: int, until: int) -> None:
    while scan.size < until:
        piece = read_at(fd, min(limits.SEGMENT_SOFT_BYTES, until - scan.size), scan.size)
        if not piece:
            return
        scan.feed(piece)
