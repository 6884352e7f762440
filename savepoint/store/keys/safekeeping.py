"""A store's keys on their way into a backup and out of it, and whether they are in one."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

from savepoint.core import limits, schema, spelling
from savepoint.core.errors import KeyFileError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse_file
from savepoint.store import durable, index, savepoints, trusted
from savepoint.store.config import Config
from savepoint.store.files import read_bounded
from savepoint.store.keys import agekeys, backup, keyring
from savepoint.store.keys.backup import Backup, Member
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Home, InstancePaths, Store
    from savepoint.store.trusted import TrustedHead

_NOTE = schema.members(
    {
        "v": schema.one_of(1),
        "made": schema.spelled(spelling.time_seconds),
        "keys": schema.spelled(spelling.digest),
    }
)


class Taken(NamedTuple):
    """What goes into a backup."""

    backup: Backup
    left_out: tuple[str, ...]  # slugs of instances whose key could not be derived again from it


def take(store: Store, chosen: Config, now: int, genesis: str | None = None) -> Taken:
    """All that a backup holds, read and checked. now: Unix seconds; genesis: of the ledger where
    entries are anchored, base58, as far as it was asked.

    Raises KeyFileError: a key is missing or unsafe, or the current instance could not sign again
    with what there is. A backup of that would only look like one.
    """
    roots = keyring.root_seeds(store)
    agekeys.identities(store)
    agekeys.recipients(store)
    known = {one.slug: _member(one) for one in savepoints.instances(store)}
    good = {
        slug: one
        for slug, one in known.items()
        if one is not None and one.slug == slug and backup.derive(roots, one) is not None
    }
    if chosen.instance not in good:
        raise KeyFileError(
            f"{store.root_seed} does not give the key of {chosen.instance}, or its birth record "
            "is not here",
            hint="`savepoint doctor` says which; `savepoint fsck --repair` brings records back",
        )
    made = Backup(
        created=now,
        store=store.id,
        remote=chosen.remote,
        ledger=chosen.ledger,
        genesis=genesis,
        program=chosen.program,
        instance=chosen.instance,
        instances=tuple(good.values()),
        roots=roots,
        identity=agekeys.text(store.age_identity),
        recipients=agekeys.text(store.recipients),
    )
    return Taken(made, tuple(sorted((known.keys() | keyring.slugs(store)) - good.keys())))


def note_made(store: Store, made: Backup) -> None:
    """Remember that the keys are in a backup. Raises DiskError."""
    document = dump(
        {
            "v": 1,
            "made": spelling.time_text(made.created),
            "keys": _fingerprint(made.roots, made.identity.encode()),
        }
    )
    durable.replace(store.backup_note, document + b"\n")


def backed_up(store: Store) -> int | None:
    """When the backup was made that holds the keys of today, in Unix seconds; None: there is none.

    Keys that cannot be read may well be in it: what is wrong with them is for others to say.
    """
    try:
        data = read_bounded(store.backup_note, limits.SMALL_DOCUMENT_BYTES) or b""
        value = parse_file(data)
        _NOTE(value, "backup.json")
    except SavepointError:
        return None
    try:
        roots = keyring.root_seeds(store)
        identity = agekeys.text(store.age_identity).encode()
    except KeyFileError:
        pass
    else:
        if _fingerprint(roots, identity) != value["keys"]:
            return None
    return spelling.time_seconds(str(value["made"]))


class Restored(NamedTuple):
    """What a restore did."""

    store: Store
    written: tuple[str, ...]  # paths
    kept: tuple[str, ...]  # that were there already
    other_recipients: bool  # recipients.txt was there, and is not the backup's


def restore(home: Home, kept: Backup) -> Restored:
    """The keys of a backup stand where they stood, with trusted heads and a config, so that the
    remote can be fetched. What is there is never replaced; heads only rise.

    The config comes last: what a crash leaves before it is no store, and the next run finishes it.
    Raises KeyFileError (other keys are there; then nothing is written), BusyError, DiskError.
    """
    store = home.store(kept.store)
    for folder in (store.keys, store.objects, store.sessions, store.pending, store.scratch):
        durable.make_directories(folder)
    with (
        Lock(home.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS),
        Lock(store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS),
    ):
        secrets = _secrets(store, kept)
        there = [path for path, data in secrets.items() if _is_there(path, data)]
        written = [path for path in secrets if path not in there]
        for path in written:
            durable.create_exclusive(path, secrets[path])
        if durable.create_exclusive(store.recipients, kept.recipients.encode()):
            written.append(store.recipients)
        _raise_heads(store, kept)
        if backed_up(store) is None:
            note_made(store, kept)
        if not os.path.lexists(store.config):
            chosen = Config(kept.instance, (), (), kept.remote)
            chosen._replace(ledger=kept.ledger, program=kept.program).save(store)
            written.append(store.config)
    others = agekeys.text(store.recipients) != kept.recipients
    return Restored(store, tuple(written), tuple(there), others)


def _secrets(store: Store, kept: Backup) -> dict[str, bytes]:
    """Path → bytes of each file of secrets that a backup makes."""
    files = {os.path.join(store.keys, name): seed for name, seed in kept.roots.items()}
    files[store.age_identity] = kept.identity.encode()
    for one in kept.instances:
        files[store.instance(one.slug).authority] = keyring.keypair(kept.seed_of(one))
    return files


def _is_there(path: str, data: bytes) -> bool:
    """Raises KeyFileError if something else is."""
    if not os.path.lexists(path):
        return False
    if keyring.read_private(path, len(data) + 1) != data:
        raise KeyFileError(
            f"{path} holds another key than the backup",
            hint="nothing was changed; move the folder away if the backup is the one to keep",
        )
    return True


def _raise_heads(store: Store, kept: Backup) -> None:
    for one in kept.instances:
        paths = store.instance(one.slug)
        trusted.make_folder(paths)
        before = trusted.load(paths)
        after = _higher(before, one.head)
        if after is not None and after != before:
            trusted.save(paths, after)


def _higher(ours: TrustedHead | None, theirs: TrustedHead | None) -> TrustedHead | None:
    """Of each witness what is higher."""
    if ours is None or theirs is None:
        return ours or theirs
    chosen, other = (theirs, ours) if theirs.seq > ours.seq else (ours, theirs)
    ledgers = dict(chosen.ledgers)
    for genesis, entry in other.ledgers.items():
        ledgers[genesis] = max(ledgers.get(genesis, entry), entry, key=_sequence)
    return chosen._replace(ledgers=ledgers, remote_tip=chosen.remote_tip or other.remote_tip)


def _sequence(entry: Json) -> int:
    return int(str(entry["seq"]))  # type: ignore[call-overload,index]  # the shape of a head says so


def _member(paths: InstancePaths) -> Member | None:
    """None where the record of its birth cannot be read."""
    birth = index.birth(paths)
    if birth is None or birth.kind != "birth":
        return None
    nonce = bytes.fromhex(str(birth.body["nonce"]))
    return Member(birth.instance, nonce, birth.signer, trusted.load(paths))


def _fingerprint(roots: dict[str, bytes], identity: bytes) -> str:
    """Changes with every new root, and with another identity; tells nothing of them."""
    seeds = b"".join(roots[name] for name in sorted(roots))
    return hashlib.sha256(b"\xffsavepoint/backup/v1\0" + seeds + identity).hexdigest()
