"""The beginning of a store, and of an instance in it: keys, birth record, trusted head, config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import keys, record, spelling
from savepoint.core.errors import DiskError
from savepoint.store import durable, index, registry, trusted
from savepoint.store.config import Config
from savepoint.store.keys import agekeys, keyring

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.spelling import Instance
    from savepoint.store.layout import Home, InstancePaths, Store


def create_store(home: Home, folder: str, instance: Instance, now: int) -> Store:
    """A new store for the project in `folder`. now: Unix seconds.

    The config comes last: what a crash leaves before it is no store, and nothing finds it. What a
    full disk leaves is removed: the next event of an agent tries again, and the next.
    Raises DiskError.
    """
    project = registry.project_of(folder)
    store = home.store(os.urandom(16).hex())
    try:
        keyring.create_root(store)
        agekeys.create(store, now)
        paths, _ = give_birth(store, instance, now)
        Config(paths.slug, (), (project,)).save(store)
    except DiskError:
        if not os.path.lexists(store.config):
            for one in (store.path, store.keys, os.path.dirname(store.instance("x").trusted)):
                durable.remove_folder(one)
        raise
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
    trusted.save(paths, trusted.first(1, birth.hash, recreated=False))
    return paths, birth


def restore_authority(paths: InstancePaths) -> None:
    """Derive a lost authority again, from the root that gave it: its nonce stands in the birth
    record. Raises KeyFileError.
    """
    first = index.birth(paths)
    path = root_of(paths)
    if first is not None and path is not None:
        keyring.write_authority(paths, _derived(path, first))


def root_of(paths: InstancePaths) -> str | None:
    """The path of the root that gives the instance's key; None where there is none, or no birth
    record. Raises KeyFileError.
    """
    first = index.birth(paths)
    if first is None or first.kind != "birth":
        return None
    roots = keyring.root_files(paths.store)
    roots.sort(key=lambda one: one != paths.store.root_seed)  # after a kill it has a second name
    fits = (one for one in roots if keys.public_key(_derived(one, first)) == first.signer)
    return next(fits, None)


def _derived(root: str, first: Record) -> bytes:
    nonce = bytes.fromhex(str(first.body["nonce"]))
    return keys.derive_seed(keyring.read_seed(root), nonce, first.instance)
