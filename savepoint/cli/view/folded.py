"""A record with what became of it since it was signed, as `create`, `list` and `show` give it.

Layers 2 and 3 are not in the signed line: it is signed before they are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import spelling
from savepoint.core.record import EVENTS
from savepoint.work import layer2

if TYPE_CHECKING:
    from savepoint.cli.ledger.layer3 import Layer3
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.work.layer2 import Layer2


def folded(one: Record, git: Layer2 | None, chain: Layer3 | None) -> dict[str, Json]:
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
    return shown | _layers(git, chain) if one.kind == "save" else shown


def _layers(git: Layer2 | None, chain: Layer3 | None) -> dict[str, Json]:
    return {
        "layer_2_status": git.status if git else layer2.QUEUED_FOR_COMMIT,
        "layer_2_commit": git.commit if git else None,
        "layer_3_status": chain.status if chain else "DISABLED",
        "layer_3_task_id": chain.task if chain else None,
    }
