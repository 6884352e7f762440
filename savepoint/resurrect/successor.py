"""The birth of a successor: its number, its key, its document, the first records of its index.

All of it is made in one folder aside, and is there with one rename. The key is derived from root
seed and nonce, so it is written after that, and again whenever it is lost.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import bootstrap_document, keys, record, spelling
from savepoint.core.bootstrap_document import Holder
from savepoint.core.errors import KeyFileError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.store import birth, durable, index, savepoints, trusted
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.bootstrap_document import Bootstrap
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store


class Newborn(NamedTuple):
    """A successor that is not in the store yet."""

    paths: InstancePaths
    document: Bootstrap
    birth: Record
    restore: Record

    @property
    def instance(self) -> str:
        """`NAME #N`."""
        return self.birth.instance


class Parent(NamedTuple):
    """What a successor is born of."""

    paths: InstancePaths
    savepoint: Record
    commit: str | None  # of the savepoint


def holders(store: Store) -> list[Holder]:
    """The instances of a store, those whose birth can be read."""
    births = (index.birth(paths) for paths in savepoints.instances(store))
    return [Holder(one.instance, one.signer) for one in births if one and one.kind == "birth"]


def prepare(parent: Parent, known: Iterable[Holder], unverified: list[str], now: int) -> Newborn:
    """The next of the line, with the next number that nobody in `known` has. Nothing is written.

    unverified: rules that the owner has allowed to be. now: Unix seconds. Raises KeyFileError (the
    predecessor's key, which signs the document, or the root seed is missing).
    """
    store, origin = parent.paths.store, parent.savepoint
    before = Instance.parse(origin.instance)
    line = _line(before, known)
    instance = Instance(before.name, max([before.number, *(n for n, _ in line)]) + 1)
    nonce = os.urandom(keys.NONCE_BYTES)
    seed = keys.derive_seed(keyring.root_seed(store), nonce, str(instance))
    own = Holder(str(instance), keys.public_key(seed))
    signing = keyring.authority(parent.paths)
    if keys.public_key(signing) != origin.signer:
        raise KeyFileError(f"{parent.paths.authority} is not the key that signed the savepoint")
    document = bootstrap_document.make(
        signing, now, origin, parent.commit, own, nonce, tuple(one for _, one in line)
    )
    born, restored = _records(own, seed, nonce, origin, unverified, now)
    fault = bootstrap_document.fault(document, born)
    if fault:
        raise TamperedError(f"modulo zero does not hold: {fault}")
    return Newborn(store.instance(instance.slug(own.key)), document, born, restored)


def _line(before: Instance, known: Iterable[Holder]) -> list[tuple[int, Holder]]:
    """Who of the name has a number after `before`, in their order."""
    found = [(Instance.parse(one.instance), one) for one in set(known)]
    later = [(i.number, one) for i, one in found if i.name == before.name]
    return sorted((number, one) for number, one in later if number > before.number)


def _records(
    own: Holder, seed: bytes, nonce: bytes, origin: Record, unverified: list[str], now: int
) -> tuple[Record, Record]:
    born = record.make(
        "birth",
        seq=1,
        prev=spelling.ZERO_DIGEST,
        timestamp=now,
        instance=own.instance,
        seed=seed,
        body={"nonce": nonce.hex()},
    )
    words: list[Json] = list(dict.fromkeys(unverified))
    restored = record.make(
        "restore",
        seq=2,
        prev=born.hash,
        timestamp=now,
        instance=own.instance,
        seed=seed,
        body={"from": origin.origin(), "unverified": words},
    )
    return born, restored


def publish(born: Newborn, arrival: bytes, lineage: str) -> None:
    """The successor is in its store, durably, with the note of what still waits for its place. The
    caller holds the store lock. Raises DiskError, also where an instance of that slug is there.
    """
    store = born.paths.store
    temporary = os.path.join(store.instances, durable.temporary_name().decode())
    aside = store.instance(os.path.basename(temporary))
    try:
        durable.make_directories(aside.snapshots)
        files = {
            aside.bootstrap: born.document.data,
            aside.arrival: arrival,
            aside.lineage: lineage.encode() + b"\n",
            aside.index_file: b"%b\n%b\n" % (born.birth.line, born.restore.line),
        }
        for path, data in files.items():
            durable.create_exclusive(path, data)
        durable.publish_folder(aside.path, born.paths.path)
    finally:
        durable.remove_folder(aside.path)


def settle(paths: InstancePaths) -> None:
    """Its key and its trusted head are there; harmless where they are already. Raises KeyFileError,
    DiskError.
    """
    if not os.path.lexists(paths.authority):
        birth.restore_authority(paths)
    if trusted.load(paths) is None:
        last = savepoints.records(paths).all[-1]
        trusted.make_folder(paths)
        trusted.save(paths, trusted.first(last.seq, last.hash, recreated=False))
