"""An instance of the store that only the remote has, as after `bootstrap`, which takes one: its
newest commit comes into the store, and the rest when it is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core.errors import SelectorError
from savepoint.gitlayer import repository
from savepoint.gitlayer.remote import glance, shallow
from savepoint.store import birth, durable, savepoints, trusted
from savepoint.store.keys import agekeys, backup, keyring

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.store.keys.backup import Member
    from savepoint.store.layout import InstancePaths, Store


def bring(remote: Remote, store: Store, name: str) -> InstancePaths | None:
    """The instance of that slug or id, with its newest savepoint. None: the remote has none that
    the keys of this store sign for; whoever can write there can put others there.

    Raises SelectorError (several are there, or it was here), KeyFileError, and as `shallow.bring`.
    """
    tips = {slug: tip for slug, tip in remote.tips().items() if savepoints.is_named(slug, name)}
    births, roots = glance.births(remote, store.scratch, tips), keyring.root_seeds(store)
    ours = [slug for slug, one in births.items() if backup.derive(roots, member(one)) is not None]
    if not ours:
        return None
    if len(ours) > 1:
        hint = f"name one by its slug: {', '.join(sorted(ours))}"
        raise SelectorError(f"{remote.url.shown} has more than one instance {name!r}", hint=hint)
    paths = store.instance(ours[0])
    if os.path.lexists(paths.path):  # it was here, and may have what the remote has not
        hint = "`savepoint fsck --repair` brings back what git and the remote have"
        raise SelectorError(f"{paths.slug} has lost its records here", hint=hint)
    try:
        brought = shallow.bring(remote, paths, tips[ours[0]], trusted.load(paths))
    except BaseException:
        durable.remove(os.path.join(remote.repo.path, repository.branch(paths.slug)))
        raise  # nothing leads to what did not hold
    if brought.newest is not None:
        shallow.put(remote, brought, brought.newest, agekeys.identities(store))
    birth.restore_authority(paths)
    return paths


def member(one: Record) -> Member:
    """What gives the key of an instance again, out of the record of its birth."""
    return backup.Member(one.instance, bytes.fromhex(str(one.body["nonce"])), one.signer, None)
