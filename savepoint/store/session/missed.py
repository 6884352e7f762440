"""Fires of the hook that made no savepoint, from hook.log: `init` catches them up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, schema, spelling
from savepoint.core.errors import DiskError, MalformedError, NoStoreError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import parse
from savepoint.store import begin, index, journal, registry
from savepoint.store.files import open_regular, read_at
from savepoint.store.layout import session_key
from savepoint.store.session import sessions

if TYPE_CHECKING:
    from savepoint.store.layout import Home, InstancePaths, Store

_SHAPE = schema.members(
    {
        "timestamp": schema.spelled(spelling.time_seconds),
        "event": schema.text,
        "session_id": schema.text,
        "transcript": schema.text,
        "project": schema.text,
        "reason": schema.text,
    }
)


class Fire(NamedTuple):
    """One line of hook.log."""

    timestamp: str
    event: str
    session_id: str
    transcript: str
    project: str  # the folder that it was for
    reason: str  # why it made no savepoint

    @property
    def is_misspelt(self) -> bool:
        """Was it fired at no event of an agent? That is to be put right where it is spelt so; no
        session of its own was missed.
        """
        return self.reason.startswith(journal.NO_EVENT)

    @property
    def can_be_caught_up(self) -> bool:
        """Is its transcript still there?"""
        return bool(self.transcript) and os.path.isfile(self.transcript)


def fires(home: Home) -> list[Fire]:
    """What the end of the log says, oldest first; what is no line of ours is skipped.

    Raises DiskError.
    """
    found = []
    for line in _end_of(home.hook_log).split(b"\n"):
        try:
            value = parse(line)
            _SHAPE(value, "hook.log")
        except MalformedError:
            continue
        assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
        if value["reason"] == journal.NOTHING_NAMED:
            continue  # no agent's, so no session's
        found.append(Fire(*map(str, value.values())))
    return found


def below(home: Home, folder: str) -> list[Fire]:
    """The fires that found no store, for a folder that has none and what is below it."""
    top = os.path.realpath(folder)
    inside = top.rstrip("/") + "/"
    found = [one for one in fires(home) if _is_inside(one.project, inside) and not one.is_misspelt]
    stores = {project: _has_store(home, project) for project in {one.project for one in found}}
    return [one for one in found if not stores[one.project]]


def misspelt(home: Home, store: Store) -> list[Fire]:
    """The fires of the store's project at what is no event, oldest first. Raises DiskError."""
    found = [one for one in fires(home) if one.is_misspelt]
    return [one for one in found if _belongs(home, store, one.project)]


def of_store(home: Home, store: Store, instances: list[InstancePaths]) -> list[Fire]:
    """Of each session of the store the newest fire, unless all of it was saved since, or before."""
    newest: dict[str, Fire] = {}
    is_ours: dict[str, bool] = {}
    for one in fires(home):
        if one.is_misspelt or one.reason == f"{begin.MADE}{store.id}":  # that was served, here
            continue
        if one.project not in is_ours:
            is_ours[one.project] = _belongs(home, store, one.project)
        if is_ours[one.project]:
            newest[one.session_id or one.transcript] = one
    return [
        one
        for one in newest.values()
        if not _is_served(one, instances) and not _is_saved(one, store)
    ]


def _is_inside(folder: str, top: str) -> bool:
    return os.path.isabs(folder) and (os.path.realpath(folder) + "/").startswith(top)


def _has_store(home: Home, folder: str) -> bool:
    try:
        registry.find(home, folder)
    except NoStoreError:
        return False
    return True


def _belongs(home: Home, store: Store, folder: str) -> bool:
    """A fire that names no folder, or one from where it stood, is nobody's: `realpath` would take
    it for a fire of the folder that we stand in.
    """
    if not os.path.isabs(folder):
        return False
    try:
        return registry.find(home, folder).id == store.id
    except NoStoreError:
        return False


def _is_served(fire: Fire, instances: list[InstancePaths]) -> bool:
    if not fire.session_id:
        return False  # saving it again adds nothing where nothing is new
    key = session_key(fire.session_id)
    for paths in instances:
        try:
            last = index.last_of_session(paths, key)
        except SavepointError:
            continue
        if last and last[0].timestamp >= spelling.time_seconds(fire.timestamp):
            return True
    return False


def _is_saved(fire: Fire, store: Store) -> bool:
    """Has the transcript the stamp of the session's last savepoint? `init` would add nothing."""
    last = sessions.load(store, session_key(fire.session_id)) if fire.session_id else None
    saved = last.files.get(fire.transcript) if last else None
    try:
        return saved is not None and sessions.Stamp.of(os.stat(fire.transcript)) == saved.stamp
    except OSError:
        return False


def _end_of(path: str) -> bytes:
    try:
        fd = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):  # doctor names what stands for the home
        return b""
    except MalformedError as failure:  # it is no evidence: nothing was tampered with
        hint = "move it away; the next line for it makes a new file"
        raise DiskError(failure.message, hint=hint) from failure
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        start = max(0, os.fstat(fd).st_size - limits.HOOK_LOG_BYTES)
        return read_at(fd, limits.HOOK_LOG_BYTES, start)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)
