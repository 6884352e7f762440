"""A record with what became of it since it was signed, as `create`, `list` and `show` give it.

Layers 2 and 3 are not in the signed line: it is signed before they are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import spelling
from savepoint.core.record import EVENTS

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json


def folded(one: Record) -> dict[str, Json]:
    """The members of a savepoint's record, and its layers; of another record its own members."""
    shown: dict[str, Json] = {
        "seq": one.seq,
        "timestamp": spelling.time_text(one.timestamp),
        "instance": one.instance,
        "event": EVENTS[one.kind],
        "kind": one.kind,
        "signer": spelling.base58(one.signer),
        **one.body,
    }
    return shown | _layers() if one.kind == "save" else shown


def _layers() -> dict[str, Json]:
    return {
        "layer_2_status": "QUEUED_FOR_COMMIT",
        "layer_2_commit": None,
        "layer_3_status": "DISABLED",
        "layer_3_task_id": None,
    }
