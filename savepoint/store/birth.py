"""The beginning of a store, and of an instance in it: keys, birth record, trusted head, config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import keys, record, spelling
from savepoint.store import agekeys, durable, index, keyring, registry, trusted
from savepoint.store.config import Config

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.spelling import Instance
    from savepoint.store.layout import Home, InstancePaths, Store


def create_store(home: Home, folder: str, instance: Instance, now: int) -> Store:
    """A new store for the project in `folder`. now: Unix seconds.

    The config comes last: what a crash leaves before it is no store, and nothing finds it.
    Raises DiskError.
    """
    project = registry.project_of(folder)
    store = home.store(os.urandom(16).hex())
    keyring.create_root(store)
    agekeys.create(store, now)
    paths, _ = give_birth(store, instance, now)
    Config(paths.slug, (), (project,)).save(store)
    registry.rebuild(home)
    return store


def give_birth(store: Store, instance: Instance, now: int) -> tuple[InstancePaths, Record]:
    """A new instance: its nonce, its key, and the first record of its index. Raises KeyFileError,
    DiskError.
    """
    nonce = os.urandom(keys.NONCE_BYTES)
    seed = keys.derive_seed(keyring.root_seed(store), nonce, str(instance))
    paths = store.instance(instance.slug(keys.public_key(seed)))
    for folder in (store.objects, store.sessions, store.pending, store.scratch, paths.snapshots):
        durable.make_directories(folder)
    keyring.write_authority(paths, seed)
    birth = record.make(
        "birth",
        seq=1,
        prev=spelling.ZERO_DIGEST,
        timestamp=now,
        instance=str(instance),
        seed=seed,
        body={"nonce": nonce.hex()},
    )
    index.append(paths, index.settle(paths), birth.line)
    trusted.make_folder(paths)
    trusted.first(1, birth.hash, recreated=False).save(paths)
    return paths, birth


def restore_authority(paths: InstancePaths) -> None:
    """Derive a lost authority again: its nonce stands in the birth record. Raises KeyFileError."""
    birth = index.birth(paths)
    if birth is None or birth.kind != "birth":
        return
    nonce = bytes.fromhex(str(birth.body["nonce"]))
    seed = keys.derive_seed(keyring.root_seed(paths.store), nonce, birth.instance)
    if keys.public_key(seed) == birth.signer:
        keyring.write_authority(paths, seed)
