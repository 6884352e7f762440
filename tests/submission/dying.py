"""A real worker process that dies at a named point, without a word: `python dying.py POINT ARGS…`.

What it has written by then is all that the next worker knows.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from anchor_service import queue
from anchor_service.ledgers.embedded import EmbeddedLedger
from anchor_service.queue import Queue
from savepoint.cli.worker import process
from savepoint.store import trusted

if TYPE_CHECKING:
    from anchor_service.queue import Submission
    from savepoint.core.ledger import Blockhash
    from savepoint.core.trusted_head import TrustedHead
    from savepoint.store.layout import InstancePaths

BEFORE = [f"before {state}" for state in (queue.PREPARED, queue.SENT, queue.VERIFIED)]
BEHIND = [f"behind {state}" for state in (queue.PREPARED, queue.SENT, queue.VERIFIED)]
POINTS = [*BEFORE, *BEHIND, "before send", "behind send", "before head", "behind head"]


def die() -> NoReturn:
    """As the kernel ends a process that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead")


def arm(point: str) -> None:
    """Die there the first time."""
    put, send, save = Queue.put, EmbeddedLedger.send, trusted.save

    def at(here: str) -> None:
        if here == point:
            die()

    def dying_put(box: Queue, row: Submission) -> Submission:
        at(f"before {row.state}")
        written = put(box, row)
        at(f"behind {row.state}")
        return written

    def dying_send(ledger: EmbeddedLedger, transaction: bytes, blockhash: Blockhash) -> None:
        at("before send")
        send(ledger, transaction, blockhash)
        at("behind send")

    def dying_save(paths: InstancePaths, head: TrustedHead) -> None:
        at("before head" if head.ledgers else "")
        save(paths, head)
        at("behind head" if head.ledgers else "")

    for owner, name, dying in (
        (Queue, "put", dying_put),
        (EmbeddedLedger, "send", dying_send),
        (trusted, "save", dying_save),
    ):
        setattr(owner, name, dying)


if __name__ == "__main__":
    _, named, *sys.argv[1:] = sys.argv
    arm(named)
    sys.exit(process.main())
