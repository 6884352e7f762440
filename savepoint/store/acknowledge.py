"""From a draft to an acknowledged savepoint: snapshot, record, trusted head, under one lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import keys, limits, record, schema, snapshot, spelling
from savepoint.core.errors import DiskError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse_file
from savepoint.store import durable, index, trusted
from savepoint.store.files import read_bounded
from savepoint.store.layout import SNAPSHOT_FOLDER, InstancePaths
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record
    from savepoint.core.snapshot import Snapshot
    from savepoint.store.index import Position, Tail
    from savepoint.store.trusted import TrustedHead

_DRAFT = schema.members(
    {
        "v": schema.one_of(1),
        "instance": schema.text,
        "session_id": schema.text,
        "trigger": schema.text,
        "from": schema.nullable(record.ORIGIN),
        "document": schema.mapping(schema.anything),
    }
)


_NAMES_TRIED = 1000  # snapshots of one second


class Draft(NamedTuple):
    """A savepoint whose bytes are durable in packs and whose document waits for a signature."""

    instance: str  # slug
    session_id: str  # key of the session
    trigger: str
    origin: Json  # `from` of its record
    document: dict[str, Json]  # all but checkpoint_verification and integrity

    def to_bytes(self) -> bytes:
        """For keeping it until there is a key to sign with."""
        instance, session_id, trigger, origin, document = self
        value: dict[str, Json] = {
            "v": 1,
            "instance": instance,
            "session_id": session_id,
            "trigger": trigger,
            "from": origin,
            "document": document,
        }
        return dump(value) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Draft:
        """The inverse of `to_bytes`. Raises MalformedError."""
        value = parse_file(data, 2 * limits.SNAPSHOT_BYTES)
        _DRAFT(value, "draft")
        _, *fields = value.values()
        return cls(*fields)  # type: ignore[arg-type]  # _DRAFT


class Acknowledged(NamedTuple):
    """The record of a savepoint and the offset of its line in the index."""

    record: Record
    offset: int


def acknowledge(
    paths: InstancePaths,
    seed: bytes,
    draft: Draft,
    deadline: float,
    commit: Callable[[Record, Snapshot], None],
) -> Acknowledged:
    """Make a draft a savepoint. When this returns, it survives kill and power cut.

    seed: of the instance's authority, 32 bytes. deadline: time.monotonic() until which the store
    lock is waited for. commit: puts what the index has into git; what it cannot do is queued, so it
    raises nothing. Raises BusyError, DiskError, MalformedError.
    """
    with Lock(paths.store.lock, deadline):
        tail = index.settle(paths)
        head = index.believed(paths, tail.last, trusted.load(paths))
        position = index.next_position(paths, tail, head)
        if position.gap is not None and head is not None:
            head = head._replace(gaps=(*head.gaps, position.gap))
            trusted.save(paths, head)  # before the record: else a kill makes it look cut out
        sealed = _sealed(paths, draft.document, seed, tail, position)
        name = _write_snapshot(paths, sealed, position.seq)
        one = _record(draft, sealed, name, seed, position)
        offset = index.append(paths, tail, one.line)
        commit(one, sealed)
        if head is None or index.holds(paths, tail.last, head.seq, head.record) or position.gap:
            _raise_trusted(paths, head, one, is_first=tail.size == 0)
    return Acknowledged(one, offset)


def _sealed(
    paths: InstancePaths, document: dict[str, Json], seed: bytes, tail: Tail, position: Position
) -> Snapshot:
    birth = index.birth(paths)
    standing = tail.last is not None and position.gap is None and tail.last.signature_holds()
    verification: dict[str, Json] = {
        "modulo_zero": _follows_lawfully(paths, birth),
        "bootstrap_confirmed": birth is not None
        and birth.kind == "birth"
        and birth.signer == keys.public_key(seed),
        "contextual_priming": _priming(document["loaded_files"]),
        "standing_verified": standing,
    }
    whole = {**document, "checkpoint_verification": verification}
    return snapshot.seal(whole, str(document["timestamp_iso8601"]))


def _follows_lawfully(paths: InstancePaths, birth: Record | None) -> bool:
    """Modulo zero: the instance is the first of its line, or its document holds."""
    if not os.path.lexists(paths.bootstrap):
        return index.origin(paths) is None
    from savepoint.core import bootstrap_document

    try:
        document = bootstrap_document.parse(
            read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES) or b""
        )
    except SavepointError:
        return False
    return birth is not None and not bootstrap_document.fault(document, birth)


def _priming(entries: Json) -> str:
    """Were all loaded files stored? COMPLETE, PARTIAL, or NONE of them."""
    if snapshot.is_spilled(entries) or not isinstance(entries, dict):
        return "PARTIAL"  # a list this long is not walked again; this can only understate
    stored = [isinstance(one, dict) and one["segments"] is not None for one in entries.values()]
    if all(stored):
        return "COMPLETE"
    return "PARTIAL" if any(stored) else "NONE"


def _write_snapshot(paths: InstancePaths, sealed: Snapshot, seq: int) -> str:
    """Its name below the instance's folder. A taken name is never reused: the second savepoint of
    a second, or what a crash left without a record.
    """
    stem = "snapshot_" + str(sealed.document["timestamp_iso8601"]).replace(":", "-")
    for suffix in ("", *(f"_{number}" for number in range(seq, seq + _NAMES_TRIED))):
        name = f"{SNAPSHOT_FOLDER}/{stem}{suffix}.json"
        if durable.create_exclusive(os.path.join(paths.path, name), sealed.data):
            return name
    raise DiskError(f"{paths.snapshots}: no name is free for a snapshot of {stem}")


def _record(draft: Draft, sealed: Snapshot, name: str, seed: bytes, position: Position) -> Record:
    document = sealed.document
    body: dict[str, Json] = {
        "session_id": draft.session_id,
        "from": draft.origin,
        "trigger": draft.trigger,
        "snapshot_hash": "sha256:" + sealed.hash,
        "snapshot_size_bytes": len(sealed.data),
        "snapshot_file": name,
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": document["tokens_used_this_session"],
        "tokens_remaining": document["tokens_remaining"],
        "context_utilization_percent": document["context_utilization_percent"],
        "consciousness_preserved": not document["omitted"],
    }
    return record.make(
        "save",
        seq=position.seq,
        prev=position.prev,
        timestamp=spelling.time_seconds(str(document["timestamp_iso8601"])),
        instance=str(document["instance_id"]),
        seed=seed,
        body=body,
    )


def _raise_trusted(
    paths: InstancePaths, head: TrustedHead | None, one: Record, *, is_first: bool
) -> None:
    """After the record: the head may lag behind the index, never lead it.

    It is not raised over an index that lacks what it names: a fork must not be covered by the next
    save (verify says so until `fsck --repair` has accepted it by a record).
    """
    try:
        if head is None:
            head = trusted.first(0, spelling.ZERO_DIGEST, recreated=not is_first)
            trusted.make_folder(paths)
        trusted.save(paths, head.raised(one.seq, one.hash))
    except DiskError as failure:
        raise failure.behind(one.seq) from failure
