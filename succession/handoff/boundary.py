"""May a thread be handed off now? Only when nothing is in the middle of something."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import DiskError, MalformedError
from savepoint.store.files import open_regular, read_at
from succession.handoff import running, turn
from succession.handoff.turn import Reason

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from succession.handoff.ledger import Ledger, Thread

ANSWER = (  # to a candidate
    "`savepoint handoff item map ITEM CANDIDATE` says which open item one is, "
    "`savepoint handoff item dismiss CANDIDATE --reason TEXT` that it is none"
)


def reasons(
    store: Store, ledger: Ledger, thread: Thread, transcript: str | None, until: float = 0.0
) -> list[Reason]:
    """Everything that is in the way, each with its evidence; empty: the thread may be handed off.

    transcript: of the thread's session, as it is now; None: there is none. until: as `in_flight`
    has it. Raises DiskError.
    """
    return [*in_flight(store, thread, transcript, until), *reconciled(ledger, thread)]


def in_flight(
    store: Store, thread: Thread, transcript: str | None, until: float = 0.0
) -> list[Reason]:
    """As `reasons`, without the ledger: what passes by itself when the agent comes to rest.

    until: of time.monotonic(); so long the agent is given to write down the call that runs us,
    which it does late (claude-code#15812).
    """
    found = _of_session(store, thread, transcript)
    while any(one.what == "mid-turn" for one in found) and time.monotonic() < until:
        time.sleep(limits.STILL_SECONDS)
        found = _of_session(store, thread, transcript)
    return [*found, *_of_actions(thread)]


def reconciled(ledger: Ledger, thread: Thread) -> list[Reason]:
    """Why the ledger does not say yet what the thread owes."""
    found = []
    if thread.gathered is None:
        why = f"nothing was gathered for {thread.id}: `savepoint handoff gather`"
        found.append(Reason("not reconciled", why))
    for one in ledger.unresolved(thread.id):
        why = f"{one.id} ({one.what}) is neither mapped nor dismissed: {turn.shown(one.text)}"
        found.append(Reason("not reconciled", why, one.offset))
    for item in ledger.waiting(thread):
        why = f"{item.id} was not taken over from {thread.predecessor}"
        found.append(Reason("not reconciled", why))
    return found


def _of_session(store: Store, thread: Thread, transcript: str | None) -> list[Reason]:
    if thread.session is None:
        return []
    if transcript is None:
        why = f"the transcript of session {thread.session} is not there"
        return [Reason("not known", why), *running.reasons(store, thread.session)]
    data, base = end_of(transcript)
    return [*turn.open_turn(data, base), *running.reasons(store, thread.session)]


def _of_actions(thread: Thread) -> list[Reason]:
    found = [
        Reason("hold", f"{name}, an evaluation that fixed its guidance: {text}")
        for name, text in thread.holds.items()
    ]
    for name, (text, process) in thread.actions.items():
        if process is None:
            found.append(Reason("action", f"{name} is pending: {text}"))
        elif running.is_alive(process):
            found.append(Reason("running", f"{name}, a process: {text}"))
    return found


def end_of(path: str) -> tuple[bytes, int]:
    """The end of a transcript from the start of a line on, and its offset. Raises DiskError."""
    fd = opened(path)
    try:
        size = os.fstat(fd).st_size
        base = max(0, size - limits.HANDOFF_TURN_BYTES)
        data = read_at(fd, size - base, base)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)
    cut = data.find(b"\n") + 1 if base else 0
    return data[cut:], base + cut


def opened(path: str) -> int:
    """A descriptor of a transcript. Raises DiskError, also for what is no regular file."""
    try:
        return open_regular(path)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    except MalformedError as failure:
        raise DiskError(failure.message) from failure
