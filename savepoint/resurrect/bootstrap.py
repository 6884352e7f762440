"""A store out of nothing but a remote and the backup of its keys.

It is made in a home of its own, beside the others, and has its place when steps 1 to 5 have passed:
keys first, the store last, by one rename. A run that dies is finished by doing it again.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.bootstrap_document import Holder
from savepoint.core.errors import (
    OutputExistsError,
    RolledBackError,
    SelectorError,
    TamperedError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.gitlayer import repository
from savepoint.gitlayer.remote import glance, shallow
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.resurrect import absent, lineage
from savepoint.store import birth, config, durable, registry, savepoints, trusted
from savepoint.store.keys import agekeys, backup, keyring, safekeeping
from savepoint.store.layout import SET_ASIDE, THREADS, Home
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.core.record import Record
    from savepoint.gitlayer.remote.remote_url import RemoteUrl
    from savepoint.gitlayer.remote.shallow import Brought
    from savepoint.store.config import Config
    from savepoint.store.keys.backup import Backup
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.store.trusted import TrustedHead

_OF_KEYS = {"config.json", "lock"}  # files that `keys restore` makes in the folder of a store


class Fetched(NamedTuple):
    """A store in a home for the moment."""

    store: Store
    config: Config
    paths: InstancePaths  # whose savepoint comes back
    savepoint: Record
    commit: str  # that holds it
    known: list[Holder]  # who holds which number, at the remote and in the backup


class Published(NamedTuple):
    """A store in its place."""

    store: Store
    aside: str | None  # where a store without savepoints is now that stood there


@contextmanager
def fetched(
    home: Home, kept: Backup, url: RemoteUrl, instance: str, env: Mapping[str, str]
) -> Iterator[Fetched]:
    """The newest savepoint of an instance out of the remote: one commit, and no other savepoint.

    kept: the backup of its keys. instance: slug or `NAME #N`; empty: the one of the backup, or the
    newest of its line. env: what git may see of the environment.

    Raises SelectorError, OutputExistsError (the store is here already), KeyFileError, and what
    `shallow.bring` raises.
    """
    _refuse_existing(home.store(kept.store))
    durable.make_directories(home.path)
    apart = Home(os.path.join(os.path.realpath(home.path), durable.temporary_name().decode()))
    try:
        durable.make_directories(apart.path)
        store = safekeeping.restore(apart, kept).store
        repo = Repository.of(store, env, time.monotonic() + limits.COMMAND_SECONDS)
        repository.ensure(repo)
        yield _fetch(home, store, kept, Remote.of(repo, url), instance)
    finally:
        durable.remove_folder(apart.path)


def _refuse_existing(store: Store) -> None:
    if savepoints.instances(store):
        raise OutputExistsError(
            f"this machine has store {store.id} already",
            hint="`savepoint resurrect` in its project's folder brings savepoints back, with "
            "--instance NAME those of an instance that only the remote has; "
            f"`savepoint init --adopt {store.id[:8]}` gives a folder to it; another SAVEPOINT_HOME "
            "begins anew",
        )


def _fetch(home: Home, store: Store, kept: Backup, remote: Remote, instance: str) -> Fetched:
    tips = remote.tips()
    births = _births(remote, store, kept, tips, instance)
    known = [Holder(one.instance, one.key) for one in kept.instances]
    known += [Holder(one.instance, one.signer) for one in births.values()]
    for slug, born in births.items():
        if (seed := backup.derive(kept.roots, absent.member(born))) is not None:
            keyring.write_authority(store.instance(slug), seed)  # who is left there is known here
    heads = _heads(home.store(store.id), kept)
    slug = _chosen(remote, kept, tips, births, heads, instance)
    if slug not in tips:
        raise RolledBackError(
            f"{remote.url.shown} has lost {slug}, which was seen there", hint=shallow.OLDER
        )
    brought = shallow.bring(remote, store.instance(slug), tips[slug], heads.get(slug))
    one = brought.newest
    if one is None:
        brought, one = _origin(remote, brought, tips, heads)
    shallow.put(remote, brought, one, agekeys.identities(store))
    chosen = config.load(store)._replace(instance=brought.paths.slug, remote=remote.url.text)
    chosen.save(store)
    birth.restore_authority(brought.paths)
    return Fetched(store, chosen, brought.paths, one, brought.commit, known)


def _heads(here: Store, kept: Backup) -> dict[str, TrustedHead]:
    """Slug → the highest state of it that the backup or this machine has seen."""
    found = {one.slug: one.head for one in kept.instances if one.head is not None}
    for slug in (one.slug for one in kept.instances):
        own = trusted.load(here.instance(slug))
        if own is not None and (slug not in found or own.seq > found[slug].seq):
            found[slug] = own
    return found


def _births(
    remote: Remote, store: Store, kept: Backup, tips: Mapping[str, str], instance: str
) -> dict[str, Record]:
    """The birth records of the instances that the backup does not know, and whose number counts.
    Raises as `glance.births`.
    """
    own = {one.slug for one in kept.instances}
    current = next(one for one in kept.instances if one.slug == kept.instance)
    base = Instance.parse(current.instance)
    wanted = {
        slug: commit
        for slug, commit in tips.items()
        if slug not in own
        and (glance.same_name(slug, base) > 0 or savepoints.is_named(slug, instance or "-"))
    }
    if instance and len(wanted) > limits.GLANCED_BRANCHES:  # somebody put them there
        wanted = {slug: tip for slug, tip in wanted.items() if savepoints.is_named(slug, instance)}
    return glance.births(remote, store.scratch, wanted)


def _chosen(
    remote: Remote,
    kept: Backup,
    tips: Mapping[str, str],
    births: Mapping[str, Record],
    heads: Mapping[str, TrustedHead],
    instance: str,
) -> str:
    """The slug of the instance that comes back: of those that the backup's keys can sign for, the
    one named, else the last of the line. The remote may have lost it since it was seen there.
    """
    pushed = {slug for slug, head in heads.items() if head.remote_tip is not None}
    known = {one.slug: Instance.parse(one.instance) for one in kept.instances}
    ours = {slug: one for slug, one in known.items() if slug in tips or slug in pushed}
    for slug, one in births.items():
        if backup.derive(kept.roots, absent.member(one)) is not None:
            ours[slug] = Instance.parse(one.instance)
    if instance:
        fitting = [slug for slug in ours if savepoints.is_named(slug, instance)]
    else:
        current = next(one for one in kept.instances if one.slug == kept.instance)
        name = Instance.parse(current.instance).name
        line = {slug: one.number for slug, one in ours.items() if one.name == name}
        fitting = [slug for slug, number in line.items() if number == max(line.values())]
    if len(fitting) != 1:
        there = ", ".join(sorted(ours))
        raise SelectorError(
            f"{remote.url.shown} has {len(fitting)} instances that are meant and that these keys "
            "sign for",
            hint=f"name one with --instance: {there}"
            if there
            else "nothing had been pushed there when the backup was made; name another remote",
        )
    return fitting[0]


def _origin(
    remote: Remote,
    brought: Brought,
    tips: Mapping[str, str],
    heads: Mapping[str, TrustedHead],
) -> tuple[Brought, Record]:
    """The savepoint that a newborn comes from, where it has none of its own yet."""
    document = lineage.check_own(brought.paths)
    if document is None:
        raise SelectorError(f"{brought.paths.slug} has no savepoint at {remote.url.shown}")
    before, wanted = document.predecessor, document.savepoint
    slug = Instance.parse(before.instance).slug(before.key)
    tip = tips.get(slug)
    if tip is None:
        raise RolledBackError(
            f"{remote.url.shown} has lost {slug}, which {brought.paths.slug} names"
        )
    store = brought.paths.store
    found = shallow.bring(remote, store.instance(slug), tip, heads.get(slug))
    one = next((one for one in found.records if one.hash == wanted.record), None)
    if one is None:
        raise TamperedError(
            f"{slug} has no savepoint {wanted.seq} as {brought.paths.slug} names it"
        )
    if found.newest != one:
        shallow.fetch_older(remote, found.paths, one, agekeys.identities(store))
    return found, one


def publish(found: Fetched, home: Home, kept: Backup, folder: str) -> Published:
    """The store has its place, by one rename, and the project in `folder` belongs to it. Keys and
    trusted heads have theirs before: without a store they are what `keys restore` leaves, and the
    next run goes on from there.

    Raises KeyFileError (other keys are there), OutputExistsError (another run was first),
    BusyError, DiskError.
    """
    there = home.store(found.store.id)
    chosen = found.config._replace(projects=(registry.project_of(folder),))
    chosen.save(found.store)
    repository.sync(Repository.of(found.store, {}, 0.0))
    if os.path.lexists(there.keys):
        safekeeping.restore(home, kept)
    with Lock(home.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        _refuse_existing(there)
        if not os.path.lexists(there.keys):
            _move(found.store.keys, there.keys)
        for paths in savepoints.instances(found.store):
            head, here = trusted.load(paths), there.instance(paths.slug)
            if head is not None:
                trusted.make_folder(here)
                trusted.save(here, head)
        _raise_threads(found.store, there)
        aside = _make_room(home, there)
        _move(found.store.path, there.path)
        registry.rebuild(home)
    for paths in savepoints.instances(there):
        birth.restore_authority(paths)  # keys that were restored before have not all of them
    return Published(there, aside)


def _raise_threads(source: Store, target: Store) -> None:
    """What was seen here of their log is not forgotten for one that ends before."""
    head, here = trusted.load(source.instance(THREADS)), target.instance(THREADS)
    seen = trusted.load(here)
    if head is not None and (seen is None or seen.seq < head.seq):
        trusted.make_folder(here)
        trusted.save(here, head)


def _make_room(home: Home, store: Store) -> str | None:
    """What stands in the place of a store and has no savepoints goes elsewhere: where it went, if
    there is more in it than `keys restore` makes.
    """
    if not os.path.lexists(store.path):
        return None
    files = [name for _, _, names in os.walk(store.path) for name in names]
    if set(files) <= _OF_KEYS:
        aside = os.path.join(home.path, durable.temporary_name().decode())
        durable.set_aside(store.path, aside)
        durable.remove_folder(aside)
        return None
    aside = os.path.join(home.path, f"{store.id}{SET_ASIDE}{os.urandom(8).hex()}")
    durable.set_aside(store.path, aside)
    durable.sync_directory(home.path)
    return aside


def _move(source: str, target: str) -> None:
    """A folder gets its place, where nothing is."""
    durable.make_directories(os.path.dirname(target))
    durable.set_aside(source, target)
    durable.sync_directory(os.path.dirname(target))
