"""Writes the test vectors of docs/format.md: `python -m tests.vectors.make`.

Seeds, salts and times are fixed, and no compressor runs, so the same bytes come out everywhere; a
test compares them with the files. Nothing of savepoint is imported.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vectors import (
    bootstrap_vectors,
    document_vectors,
    handoff_vectors,
    index_vectors,
    ledger_vectors,
    proof_vectors,
    record_vectors,
    signature_vectors,
    snapshot_vectors,
    trusted_vectors,
)
from tests.vectors.builders import compacted

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).resolve().parent


def files() -> dict[str, bytes]:
    """Name → bytes of every file of vectors."""
    records = compacted(record_vectors.vectors(), "save", b',"signature":"')
    snapshots = compacted(snapshot_vectors.vectors(), "full", b',"integrity":')
    contents: dict[str, Mapping[str, object]] = {
        "spelling.json": document_vectors.spellings(),
        "json.json": {"vectors": document_vectors.json_vectors()},
        "record.json": {"vectors": records},
        "index.json": {"vectors": compacted(index_vectors.vectors(), "whole", b"\n\n\n")},
        "snapshot.json": {"vectors": snapshots},
        "segment.json": {"vectors": document_vectors.segment_vectors()},
        "pack.json": {"vectors": document_vectors.pack_vectors()},
        "key.json": {
            "derived": signature_vectors.key_vectors(),
            "domains": signature_vectors.domain_vectors(),
        },
        "ed25519.json": {"vectors": signature_vectors.ed25519_vectors()},
        "ledger.json": {"vectors": ledger_vectors.ledger_vectors()},
        "threads.json": {
            "vectors": compacted(handoff_vectors.logs(), "whole", b"\n\n\n"),
        },
        "receipt.json": {
            "vectors": compacted(handoff_vectors.receipts(), "good", b',"signature":"'),
        },
        "bootstrap.json": {
            "vectors": compacted(bootstrap_vectors.vectors(), "good", b',"signature":"'),
        },
        "trusted.json": {
            "vectors": trusted_vectors.heads(),
            "verdicts": trusted_vectors.verdicts(),
        },
        "proof.json": {"vectors": compacted(proof_vectors.vectors(), "whole", b"\n\n\n")},
    }
    return {name: _pretty(content) for name, content in contents.items()}


def _pretty(content: Mapping[str, object]) -> bytes:
    """A vector a line, ASCII only: what is odd about it stands there as an escape."""
    groups = []
    for name, vectors in content.items():
        lines = ",\n".join(json.dumps(one) for one in vectors)  # type: ignore[attr-defined]  # lists
        groups.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return ("{" + ",\n".join(groups) + "}\n").encode("ascii")


if __name__ == "__main__":
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)
