"""What fsck says of key files: those that are missing or broken, and those that contradict records.

Shares no code with what writes these files. A key that cannot be used is a warning: it touches no
savepoint, and a machine that only verifies needs none. Damage is a key that is whole, and another.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from savepoint.core import keys, limits
from savepoint.core.errors import SavepointError
from savepoint.core.strict_json import parse
from savepoint.core.verdicts import Lack
from savepoint.store.fsck.items import Item, damage, warning
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.record import Record
    from savepoint.core.verify_index import Index
    from savepoint.store.layout import InstancePaths, Store

_RETIRED = re.compile(r"root\.[1-9][0-9]{0,8}\.seed")
_KEYPAIR_BYTES = 4 * limits.KIB
_RESTORE = "`savepoint keys restore FILE` brings it back, after what is left of it was moved away"
_DERIVE = "move away what is left of it; `savepoint init` derives it again from root.seed"


def of_instance(paths: InstancePaths, index: Index) -> Iterator[Item]:
    """Root seed and nonce give the key that signed the birth; the key file holds that key."""
    birth = index.records[0][0] if index.records else None
    if birth is None or birth.kind != "birth":
        return
    yield from _root(paths, birth)
    yield from _authority(paths, birth)


def of_age(store: Store) -> Iterator[Item]:
    """What opens the savepoints in git, and whom they are encrypted to, itself among them."""
    identity, recipients = _lines(store.age_identity), _lines(store.recipients)
    public = None if isinstance(identity, Lack) else _public(identity)
    where, others = _name(store, store.age_identity), _name(store, store.recipients)
    anew = f"`age-keygen -y {store.age_identity} > {store.recipients}` makes it anew"
    if isinstance(identity, Lack):
        yield warning(f"{where} {identity.reason}", _RESTORE)
    elif public is None:
        yield warning(f"{where} holds no age identity", _RESTORE)
    if isinstance(recipients, Lack):
        yield warning(f"{others} {recipients.reason}", anew)
    elif not recipients or not all(map(_is_recipient, recipients)):
        yield warning(f"{others} has a line that is no key to encrypt to", anew)
    elif public is not None and not public & set(recipients):
        yield warning(f"{others} does not name the key of {where}", anew)


def _root(paths: InstancePaths, birth: Record) -> Iterator[Item]:
    where = _name(paths.store, paths.store.root_seed)
    root = evidence.read(paths.store.root_seed, _KEYPAIR_BYTES)
    if isinstance(root, Lack):
        yield warning(f"{where} {root.reason}", _RESTORE)
    elif len(root) != keys.SEED_BYTES:
        yield warning(f"{where} has {len(root)} bytes, not {keys.SEED_BYTES}", _RESTORE)
    elif birth.signer not in {_derived(one, birth) for one in (root, *_retired(paths.store))}:
        yield damage(f"{where} does not derive the key of {paths.slug}", hint=_RESTORE)


def _retired(store: Store) -> list[bytes]:
    """The roots that were kept when their keys were retired."""
    names = [one for one in sorted(os.listdir(store.keys)) if _RETIRED.fullmatch(one)]
    found = [evidence.read(os.path.join(store.keys, one), _KEYPAIR_BYTES) for one in names]
    return [one for one in found if not isinstance(one, Lack) and len(one) == keys.SEED_BYTES]


def _authority(paths: InstancePaths, birth: Record) -> Iterator[Item]:
    where = _name(paths.store, paths.authority)
    data = evidence.read(paths.authority, _KEYPAIR_BYTES)
    if isinstance(data, Lack):
        yield warning(f"{where} {data.reason}", _DERIVE)
        return
    pair = _pair(data)
    if pair is None:
        yield warning(f"{where} is no Solana keypair file", _DERIVE)
    elif not keys.public_key(pair[:32]) == pair[32:] == birth.signer:
        yield damage(f"{where} does not hold the key of the birth record", hint=_DERIVE)


def _derived(root: bytes, birth: Record) -> bytes:
    nonce = bytes.fromhex(str(birth.body["nonce"]))
    return keys.public_key(keys.derive_seed(root, nonce, birth.instance))


def _pair(data: bytes) -> bytes | None:
    """32 bytes of seed, 32 of the public key that belongs to them; None if it is no such file."""
    try:
        numbers = parse(data)
        pair = bytes(numbers) if isinstance(numbers, list) else b""  # type: ignore[arg-type]  # what is no byte raises
    except (SavepointError, TypeError, ValueError):
        return None
    return pair if len(pair) == 2 * keys.SEED_BYTES else None


def _lines(path: str) -> list[str] | Lack:
    """Without comments and blank lines."""
    data = evidence.read(path, limits.KEY_LIST_BYTES)
    if isinstance(data, Lack):
        return data
    lines = [one.strip() for one in data.decode("utf-8", "replace").split("\n")]
    return [one for one in lines if one and not one.startswith("#")]


def _public(lines: list[str]) -> set[str] | None:
    """The public keys of the identities; None where there is none, or a line is none."""
    from pyrage import IdentityError, x25519  # type: ignore[import-untyped]  # it ships no types

    try:
        return {str(x25519.Identity.from_str(one).to_public()) for one in lines} or None
    except IdentityError:
        return None


def _is_recipient(line: str) -> bool:
    from pyrage import RecipientError, ssh, x25519

    kind = ssh.Recipient if line.startswith("ssh-") else x25519.Recipient
    try:
        kind.from_str(line)
    except RecipientError:
        return False
    return True


def _name(store: Store, path: str) -> str:
    return os.path.relpath(path, store.home)
