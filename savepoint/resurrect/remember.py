"""A session that was brought back, as the next save will find it: whose it is, what it goes on
from, and that its bytes are stored already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import spelling
from savepoint.core.errors import SavepointError
from savepoint.store import index, savepoints
from savepoint.store.session import rebuild
from savepoint.store.session.sessions import Session

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store


def session(paths: InstancePaths, anchor: Record, identity: str) -> None:
    """Session `identity` goes on behind `anchor`: the restore record of a successor, or a savepoint
    whose conversation alone was brought back. A cache: where it cannot be written, its first
    savepoint stores all anew.
    """
    origin = anchor.origin() if anchor.kind == "save" else anchor.body["from"]
    try:
        cached = Session(
            instance=paths.slug,
            seq=anchor.seq,
            record=anchor.hash,
            signature=anchor.signature.hex(),
            offset=index.read(paths).index(anchor.line),
            saved_at=anchor.timestamp,
            transcript=None,
            blobs={},
            files=rebuild.files_of(*_found(paths.store, origin)),
        )
        cached.save(paths.store, identity)
    except SavepointError:
        return


def _found(store: Store, origin: Json) -> tuple[InstancePaths, Record]:
    """The savepoint that an origin names. Raises SelectorError."""
    assert isinstance(origin, dict)  # noqa: S101  # record.ORIGIN saw it; for the type checker
    digits = spelling.key_bytes(str(origin["signer"]))[:4].hex()
    for paths in savepoints.instances(store):
        if paths.slug.endswith(f"-{digits}"):
            return paths, savepoints.find(paths, str(origin["snapshot_hash"]))
    raise savepoints.nothing(store.instance(digits), str(origin["snapshot_hash"]))
