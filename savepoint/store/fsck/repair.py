"""The repair of a store that no other witness can help: signed records accept what is lost.

What is accepted stays visible in the index for ever. Bytes that were changed are never accepted:
only the records that are missing, and a trusted head that is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.core import record, spelling
from savepoint.core.chain import Gap
from savepoint.core.errors import DiskError
from savepoint.core.named import NamedTuple
from savepoint.core.verify_index import Index
from savepoint.store import index, journal, trusted
from savepoint.store.files import names_in
from savepoint.store.index import Position, Tail
from savepoint.store.keys import keyring
from savepoint.store.locks import Lock
from savepoint.store.witness import examine

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.store.trusted import TrustedHead


class Repaired(NamedTuple):
    """What was accepted, and the record that says so, or behind which none can."""

    slug: str
    record: Record
    what: str  # for people


def repair(store: Store, now: int, deadline: float) -> list[Repaired]:
    """Accept what is lost in every instance of the store; nothing where nothing is.

    now: Unix seconds. deadline: time.monotonic() until which the store lock is waited for.
    An index that is broken is left as it is, and what a retired one lacks. Raises BusyError,
    DiskError, KeyFileError.
    """
    with Lock(store.lock, deadline):
        every = map(store.instance, names_in(store.instances))
        return [one for paths in every for one in _repair(paths, now)]


def _repair(paths: InstancePaths, now: int) -> list[Repaired]:
    tail = index.settle(paths)
    head = index.believed(paths, tail.last, trusted.load(paths))
    found = Index(index.read(paths), head, examine.names(paths))
    if not found.is_unbroken:
        return []
    if tail.last is not None and tail.last.kind == "retire":
        return _retired(paths, now, tail.last, found, head)
    position = index.next_position(paths, tail, head)
    bodies = [_gap(gap) for gap in _lost(found, position, head)]
    if head is None or head.recreated:
        bodies.append({"reason": "recreated", "first": None, "last": None, "tip": None})
    if not bodies:
        return []
    seed = keyring.authority(paths)
    if head is not None and position.gap is not None:
        head = head._replace(gaps=(*head.gaps, position.gap))
        trusted.save(paths, head)  # before the record: else a kill would make the gap look cut out
    accept = _Accept(paths, found.records[0][0].instance, seed, now)
    made = accept.append(tail, position, bodies)
    _raise_trusted(paths, head, made[-1])
    return [Repaired(paths.slug, one, _tell(paths, now, one)) for one in made]


def _retired(
    paths: InstancePaths, now: int, last: Record, found: Index, head: TrustedHead | None
) -> list[Repaired]:
    """No record follows a `retire`. A head that is missing needs none: nothing newer can have been.
    What else is lost stays so.
    """
    lost = found.unaccepted_gaps() or (head is not None and (head.seq > last.seq or found.forked()))
    if not lost and (head is None or head.recreated):
        _raise_trusted(paths, head, last)
        return [Repaired(paths.slug, last, _tell(paths, now, last))]
    return []


def _lost(found: Index, position: Position, head: TrustedHead | None) -> list[Gap]:
    """Gaps that stand in the index, the one at its end, and the other record of a fork."""
    lost = found.unaccepted_gaps()
    if position.gap is not None:
        lost.append(position.gap)
    elif head is not None and found.forked():
        lost.append(Gap(head.seq, head.seq))
    return lost


def _gap(gap: Gap) -> dict[str, Json]:
    return {"reason": "gap", "first": gap.first, "last": gap.last, "tip": None}


class _Accept(NamedTuple):
    """Who signs accept records, and when."""

    paths: InstancePaths
    instance: str
    seed: bytes
    now: int

    def append(self, tail: Tail, position: Position, bodies: list[dict[str, Json]]) -> list[Record]:
        """One record each, linked to one another."""
        made: list[Record] = []
        seq, prev, _ = position
        for body in bodies:
            one = record.make(
                "accept",
                seq=seq,
                prev=prev,
                timestamp=self.now,
                instance=self.instance,
                seed=self.seed,
                body=body,
            )
            index.append(self.paths, tail, one.line)
            tail = Tail(tail.size + len(one.line) + 1, one, damaged=False)
            seq, prev = one.seq + 1, one.hash
            made.append(one)
        return made


def _raise_trusted(paths: InstancePaths, head: TrustedHead | None, last: Record) -> None:
    """After the records. A head that was made anew counts as a head from now on."""
    if head is None:
        head = trusted.first(0, spelling.ZERO_DIGEST, recreated=False)
        trusted.make_folder(paths)
    trusted.save(paths, head.raised(last.seq, last.hash)._replace(recreated=False))


def _tell(paths: InstancePaths, now: int, one: Record) -> str:
    if one.body.get("reason") == "gap":
        what = f"records {one.body['first']} to {one.body['last']} accepted as lost"
    else:
        what = "the trusted head accepted as it is now"
    with suppress(DiskError):  # a log for people; the record stands
        journal.continuity(paths, now, f"record {one.seq}: {what}")
    return what
