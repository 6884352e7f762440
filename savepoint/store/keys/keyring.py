"""Key files: made once, read only when they are safe, never printed, never made anew in silence."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from savepoint.core import keys, limits
from savepoint.core.errors import KeyFileError, SavepointError
from savepoint.core.patterns import late
from savepoint.core.strict_json import dump, parse
from savepoint.store import durable
from savepoint.store.files import open_regular

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store

ROOT_FILE = late(r"root(\.[1-9][0-9]{0,8})?\.seed")  # in the folder of keys
_AUTHORITY_FILE = late(r"([a-z0-9-]+-[0-9a-f]{8})\.json")
_OTHERS = 0o077  # permission bits that no key file may have
_KEYPAIR_BYTES = 4 * limits.KIB  # a Solana keypair file has at most some 350


def create_root(store: Store) -> None:
    """The root seed of a new store. Raises KeyFileError if there is one already."""
    durable.make_directories(store.keys)
    if not durable.create_exclusive(store.root_seed, os.urandom(keys.SEED_BYTES)):
        raise KeyFileError(f"{store.root_seed} exists already", hint="it is never replaced")


def retire_root(store: Store) -> str:
    """Keep the root as root.<n>.seed, the path of which is returned, and make a new one.

    A kill in between leaves the old root under both names; then that number is taken up again.
    Raises KeyFileError (there is no root that may be used), DiskError.
    """
    old = root_seed(store)
    for number in range(1, limits.ROOTS):
        path = os.path.join(store.keys, f"root.{number}.seed")
        if durable.create_exclusive(path, old) or read_seed(path) == old:
            durable.replace(store.root_seed, os.urandom(keys.SEED_BYTES))
            return path
    raise KeyFileError(f"{store.keys} has {limits.ROOTS} roots")


def root_seed(store: Store) -> bytes:
    """32 bytes. Raises KeyFileError."""
    return read_seed(store.root_seed)


def root_seeds(store: Store) -> dict[str, bytes]:
    """File name → 32 bytes of every root. Raises KeyFileError."""
    return {os.path.basename(path): read_seed(path) for path in root_files(store)}


def root_files(store: Store) -> list[str]:
    """Where the roots lie: root.seed, there or not, and root.<n>.seed, those that were retired.

    Raises KeyFileError.
    """
    names = {os.path.basename(store.root_seed), *filter(ROOT_FILE.fullmatch, _names(store))}
    return [os.path.join(store.keys, name) for name in sorted(names)]


def slugs(store: Store) -> set[str]:
    """The instances that have a file for their key. Raises KeyFileError."""
    found = map(_AUTHORITY_FILE.fullmatch, _names(store))
    return {one[1] for one in found if one}


def _names(store: Store) -> list[str]:
    try:
        return os.listdir(store.keys)
    except FileNotFoundError:
        return []
    except OSError as failure:
        raise KeyFileError(f"{store.keys}: {failure.strerror}") from None


def read_seed(path: str) -> bytes:
    """32 bytes. Raises KeyFileError."""
    seed = read_private(path, _KEYPAIR_BYTES)
    if len(seed) != keys.SEED_BYTES:
        raise KeyFileError(f"{path} has {len(seed)} bytes, not {keys.SEED_BYTES}")
    return seed


def write_authority(paths: InstancePaths, seed: bytes) -> None:
    """The derived key as a Solana keypair file: 32 bytes of seed, 32 of public key."""
    if not durable.create_exclusive(paths.authority, keypair(seed)):
        authority(paths)  # the one that stands there must be good


def keypair(seed: bytes) -> bytes:
    """What a Solana keypair file holds: 32 bytes of seed, 32 of public key, as numbers."""
    return dump(list(seed + keys.public_key(seed))) + b"\n"


def authority(paths: InstancePaths) -> bytes:
    """The ed25519 seed (32 bytes) that signs for the instance.

    Raises KeyFileError: missing, readable by others, no keypair, halves that do not belong
    together, or a key other than the one the folder is named after.
    """
    path = paths.authority
    try:
        pair = read_keypair(path)
    except KeyFileError as failure:
        if not os.path.lexists(path) and os.path.isfile(paths.store.root_seed):
            raise KeyFileError(failure.message, hint=_DERIVABLE) from None
        raise
    if not paths.slug.endswith(pair[32:36].hex()):
        raise KeyFileError(f"{path} holds the key of another instance")
    return pair[:32]


def read_keypair(path: str) -> bytes:
    """The 64 bytes of a Solana keypair file: seed, then public key. Raises KeyFileError."""
    text = read_private(path, _KEYPAIR_BYTES)
    try:
        numbers = parse(text)
    except SavepointError:
        raise KeyFileError(f"{path} is no Solana keypair file") from None  # its text is secret
    if not isinstance(numbers, list) or len(numbers) != 2 * keys.SEED_BYTES:
        raise KeyFileError(f"{path} is no list of {2 * keys.SEED_BYTES} numbers")
    if any(type(number) is not int or not 0 <= number <= 255 for number in numbers):
        raise KeyFileError(f"{path} has a member that is no byte")
    pair = bytes(numbers)  # type: ignore[arg-type]  # each was checked just above
    if keys.public_key(pair[:32]) != pair[32:]:
        raise KeyFileError(f"{path}: its two halves do not belong together")
    return pair


def read_private(path: str, limit: int) -> bytes:
    """The first `limit` bytes of a file that nobody else may read or write. Raises KeyFileError."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        raise KeyFileError(f"{path} is missing", hint=_LOST) from None
    except OSError as failure:
        raise KeyFileError(f"{path}: {failure.strerror}") from None
    except SavepointError as failure:
        raise KeyFileError(failure.message) from None
    try:
        _refuse_unsafe(path, os.fstat(fd))
        return os.read(fd, limit)
    except OSError as failure:
        raise KeyFileError(f"{path}: {failure.strerror}") from None
    finally:
        os.close(fd)


def _refuse_unsafe(path: str, seen: os.stat_result) -> None:
    if seen.st_uid not in (os.geteuid(), 0):
        raise KeyFileError(f"{path} belongs to another user")
    if seen.st_mode & _OTHERS:
        mode = stat.S_IMODE(seen.st_mode)
        raise KeyFileError(f"{path} has mode {mode:04o}", hint=f"chmod 600 {path}")


_DERIVABLE = (
    "`savepoint fsck --repair` derives it from the root seed again; savepoints made meanwhile stay "
    "pending, and none is lost"
)
_LOST = "bring it back from a backup; savepoints made meanwhile stay pending, and none is lost"
