"""A key that is no longer trusted signs its last record, and the instance's next number begins.

    1  the old root.seed is kept as root.<n>.seed, and a new one takes its place: whoever has the
       old one can sign for nothing that begins from now on
    2  the old key signs `retire`, the last record of its index
    3  the next number is born, from the new root
    4  the config names it: new sessions belong to it, and those that go on

A run that died anywhere is finished by the next. The record gets its commit and its entry RETIRE
from the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import record
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.store import birth, config, index, savepoints, trusted
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths


class Retired(NamedTuple):
    """What it did."""

    old: InstancePaths
    new: InstancePaths
    seq: int  # of the record `retire`
    root: str  # where the old root is now


def retire(paths: InstancePaths, now: int) -> Retired:
    """Retire the key of the store's current instance. The caller holds the store lock. now: Unix
    seconds. Raises KeyFileError (the key cannot sign any more), DiskError.
    """
    store = paths.store
    name = Instance.parse(index.instance(paths))
    seed = keyring.authority(paths)
    root = _new_root(paths)
    seq = _sign_off(paths, str(name), seed, now)
    new, _ = birth.give_birth(store, Instance(name.name, _next_number(paths, name)), now)
    config.load(store)._replace(instance=new.slug).save(store)
    return Retired(paths, new, seq, root)


def _new_root(paths: InstancePaths) -> str:
    """Where the old root lies from now on. One that another run retired already is not retired
    again: its root is that of nothing that is current.
    """
    found = birth.root_of(paths)
    if found is not None and found != paths.store.root_seed:
        return found
    return keyring.retire_root(paths.store)


def _sign_off(paths: InstancePaths, name: str, seed: bytes, now: int) -> int:
    """The last record; that of an earlier run, where that one died behind it."""
    tail = index.settle(paths)
    head = index.believed(paths, tail.last, trusted.load(paths))
    if tail.last is not None and tail.last.kind == "retire":
        return tail.last.seq
    position = index.next_position(paths, tail, head)
    if position.gap is not None and head is not None:
        head = head._replace(gaps=(*head.gaps, position.gap))
        trusted.save(paths, head)  # before the record: else a kill would make the gap look cut out
    last = record.make(
        "retire",
        seq=position.seq,
        prev=position.prev,
        timestamp=now,
        instance=name,
        seed=seed,
        body={},
    )
    index.append(paths, tail, last.line)
    if head is not None and (position.gap or index.holds(paths, tail.last, head.seq, head.record)):
        trusted.save(paths, head.raised(last.seq, last.hash))  # a fork stays, as after a save
    return last.seq


def _next_number(paths: InstancePaths, name: Instance) -> int:
    """The next that no instance of that name in the store has."""
    taken = {name.number}
    for one in savepoints.instances(paths.store):
        try:
            known = Instance.parse(index.instance(one))
        except SavepointError:
            continue
        if known.name == name.name:
            taken.add(known.number)
    return max(taken) + 1
