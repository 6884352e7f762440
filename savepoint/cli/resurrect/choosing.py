"""Which savepoint comes back, and which instance of the store has it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.core.errors import RemoteUnreachableError, SelectorError
from savepoint.store import savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths


def where(project: str, instance: str, *, offline: bool) -> place.Place:
    """As `place.find`; an instance that only the remote has is brought from there. Raises as that,
    and what `absent.bring` raises.
    """
    try:
        return place.find(project, instance)
    except SelectorError as failure:
        at = place.find(project) if instance and not offline else None
        if at is None or at.config.remote is None:
            raise
        if not _brought(at, at.config.remote, instance, failure):
            raise
    return place.find(project, instance)


def _brought(at: place.Place, url: str, instance: str, failure: SelectorError) -> bool:
    from savepoint.gitlayer.remote import remote_url
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.resurrect import absent

    remote = Remote.of(place.repository(at.store), remote_url.parse(url, "/"))
    with terminal.busy("fetching"):
        try:
            return absent.bring(remote, at.store, instance) is not None
        except RemoteUnreachableError as unreached:
            if any(savepoints.is_named(slug, instance) for slug in savepoints.absent(at.store)):
                raise
            terminal.note(f"the remote was not asked for it: {unreached.message}")
            raise failure from unreached


def meant(
    at: place.Place, selector: str, session: str, instance: str
) -> tuple[place.Place, Record]:
    """The savepoint that is asked for, and the place of the instance that has it. Where the user
    names no instance, a current one without savepoints leads to that which it comes from, and a
    hash or a session to whoever has it.

    Raises UsageError (no selector), SelectorError, TamperedError (the line does not hold),
    MalformedError, DiskError.
    """
    session = _whole(at, session)
    try:
        return at, _chosen(at, selector, session)
    except SelectorError:
        found = None if instance else _elsewhere(at, selector, session)
        if found is None:
            raise
    terminal.note(f"{at.title} has no such savepoint; this is one of {found[0].title}")
    return found


def _whole(at: place.Place, session: str) -> str:
    """The id of the session that starts like that, as `list` shows it and as hashes are given; as
    it was given where none does. Raises SelectorError (several do), DiskError.
    """
    if len(session) < savepoints.HASH_DIGITS:
        return session
    every = [
        one for paths in savepoints.instances(at.store) for one in savepoints.records(paths).saves
    ]
    fitting = {key for one in every if (key := str(one.body["session_id"])).startswith(session)}
    if len(fitting) > 1 and session not in fitting:
        hint = f"give more digits: {', '.join(sorted(fitting))}"
        raise SelectorError(f"{session} names {len(fitting)} sessions", hint=hint)
    return session if session in fitting or not fitting else fitting.pop()


def _chosen(at: place.Place, selector: str, session: str) -> Record:
    if not session:
        return savepoints.find(at.paths, selector)
    from savepoint.store import index
    from savepoint.store.layout import session_key

    found = index.last_of_session(at.paths, session_key(session))
    if found is None:
        raise savepoints.nothing(at.paths, session)
    return found[0]


def _of_session(at: place.Place, session: str) -> tuple[InstancePaths, Record] | None:
    """A session has one id in the whole store; its newest savepoint, of whatever instance."""
    from savepoint.store import index
    from savepoint.store.layout import session_key

    found = [
        (paths, last[0])
        for paths in savepoints.instances(at.store)
        if (last := index.last_of_session(paths, session_key(session))) is not None
    ]
    return max(found, key=lambda one: one[1].timestamp, default=None)


def _elsewhere(at: place.Place, selector: str, session: str) -> tuple[place.Place, Record] | None:
    from savepoint.resurrect import lineage

    before = None if savepoints.records(at.paths).saves else lineage.origin(at.paths)
    if before is not None:
        paths, newest = before
        there = at._replace(paths=paths, instance=newest.instance)
        if selector == "latest" and not session:
            return there, newest
        with suppress(SelectorError):
            return there, _chosen(there, selector, session)
    found = _of_session(at, session) if session else savepoints.find_elsewhere(at.paths, selector)
    return (at._replace(paths=found[0], instance=found[1].instance), found[1]) if found else None
