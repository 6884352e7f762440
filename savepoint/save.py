"""save_consciousness_state: the main path, for hook and command line alike.

    session lock → saving lock, shared → read, packs → store lock → snapshot → record → trusted head
    → acknowledged

What each step makes durable, and what is lost if we die there: docs/life-of-a-savepoint.md.
"""

from __future__ import annotations

import os
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

from savepoint.capture import document, session, unchanged, window
from savepoint.capture.agents import claude
from savepoint.capture.capture import Capture, Work, capture
from savepoint.capture.exclusion import Exclusion
from savepoint.capture.git import repository
from savepoint.core import limits, snapshot, spelling
from savepoint.core.errors import (
    BusyError,
    DiskError,
    KeyFileError,
    MalformedError,
    NoStoreError,
    SavepointError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.store import config, durable, journal, layout, registry
from savepoint.store.acknowledge import Draft, acknowledge
from savepoint.store.files import read_bounded
from savepoint.store.keys import keyring
from savepoint.store.layout import Home, InstancePaths, Store
from savepoint.store.locks import Lock
from savepoint.store.packs import PackWriter, read_segment
from savepoint.store.session import guidance, pending
from savepoint.store.session.pending import Note
from savepoint.store.session.sessions import FULL, CachedFile, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from savepoint.capture.request import Request
    from savepoint.capture.session import History
    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import Snapshot
    from savepoint.store.config import Config

_MUCH = "git lacked too much to take it at once: the worker goes on, `savepoint sync` waits for it"


class Saved(NamedTuple):
    """An acknowledged savepoint: durable whatever happens next."""

    record: Record
    paths: InstancePaths
    commit: str | None  # in our git repository; None: it is queued
    warnings: tuple[str, ...]  # what failed after the acknowledgement; nothing is lost by it
    conversation_bytes: int | None = None  # None: there was no transcript
    notes: tuple[str, ...] = ()  # what is odd about the conversation, as its snapshot says


def save_consciousness_state(request: Request) -> Saved | None:
    """Save the state of a session; None if nothing is new since its last savepoint.

    Raises SavepointError. What it could not finish stays pending, and the next save finishes it.
    """
    store = registry.find(Home(request.home), request.project)
    chosen = config.load(store)
    request = session.resolve(request, claude)
    key = layout.session_key(request.session_id)
    if unchanged.is_unchanged(store, key, request, claude):
        return None
    request = window.known(store, key, request, claude)
    with (
        repository.begin(request, store.scratch) as git,  # git reads while we do
        Lock(store.session_lock(key), request.deadline),
        Lock(store.saving, request.deadline, shared=True),
    ):
        if unchanged.is_unchanged(store, key, request, claude):  # a twin of this fire was first
            return None
        _note(request, "started").save(store, key)
        _sign_drafts(store, key, request, chosen)
        saved = _save(request, store, key, chosen, git)
        if saved is None:
            pending.clear(store, key)
        return saved


def finish_pending(request: Request) -> list[Saved]:
    """Serve the other sessions that an earlier fire left unfinished, while the deadline allows.

    Raises SavepointError of the first that fails; it and the rest stay pending.
    """
    store = registry.find(Home(request.home), request.project)
    left = (key for key in pending.keys(store) if time.monotonic() < request.deadline)
    return [saved for key in left if (saved := finish(request, store, key))]


def finish(request: Request, store: Store, key: str) -> Saved | None:
    """Serve what an earlier fire of that session left unfinished; None where nothing is new, or it
    is being served right now. `request` says how, the session's note what. Raises SavepointError.
    """
    note = pending.load(store, key)
    if note is None or is_at_work(store, key):
        return None
    saved = save_consciousness_state(_resumed(request, store, note))
    if saved is None:
        pending.clear(store, key)
    return saved


def is_at_work(store: Store, key: str) -> bool:
    """Is the session's fire being served right now? Then its note is no leftover."""
    try:
        with Lock(store.session_lock(key), 0.0):
            return False
    except BusyError:
        return True


def _resumed(request: Request, store: Store, note: Note) -> Request:
    """What the fire asked for; in the caller's folder where its own is gone, as worktrees go."""
    home = Home(request.home)
    try:
        known = registry.find(home, note.project).id == store.id
    except NoStoreError:
        known = False
    since = spelling.time_text(min(note.since, spelling.LAST_TIME))
    return request._replace(
        session_id=note.session_id,
        transcript=note.transcript or "",
        project=note.project if known else request.project,
        cwd=note.cwd,
        trigger=note.trigger,
        even_if_unchanged=False,
        notes=(f"asked for at {since}; not finished then: {note.reason}",),
    )


def _save(
    request: Request, store: Store, key: str, chosen: Config, git: repository.Pending
) -> Saved | None:
    history = session.history(store, key, request, chosen)
    exclusion = Exclusion(os.path.realpath(request.project), chosen.exclude, request.home)
    base = history.base.whole(store) if history.base else None
    with PackWriter(store, {**history.known(), **_drafted(store, key)}) as packs:
        found = capture(Work(request, claude, git, exclusion, base, packs, store.path))
        packs.finish()
        draft = _draft(request, key, found, history, packs)
        cached = {path: _settled(file, packs) for path, file in found.cached.items()}
    has_stamps = found.conversation.stored is not None or request.even_if_unchanged
    if not has_stamps and _is_repeated(history, draft):
        return None
    git_step = _GitStep(history.paths, request, packs.written, history.blobs())
    try:
        seed = keyring.authority(history.paths)
        done = acknowledge(history.paths, seed, draft, request.deadline, git_step)
    except KeyFileError as failure:  # missing, unsafe, or retired
        if not _is_drafted(store, key, draft):
            pending.stage(store, key, request.now, draft.to_bytes())
        _note(request, failure.message).save(store, key)
        raise
    last = Session(
        instance=history.paths.slug,
        seq=done.record.seq,
        record=done.record.hash,
        signature=done.record.signature.hex(),
        offset=done.offset,
        saved_at=request.now,
        transcript=request.transcript,
        blobs=git_step.blobs,
        files=cached,
        prefix_check=_prefix_check(found),
    )
    warnings = (*git_step.problems, *_afterwards(store, key, last, history.paths, done.record))
    told = found.conversation
    size = told.stored.stamp.size if told.stored else None
    return Saved(done.record, history.paths, git_step.commit, warnings, size, told.notes)


def _is_repeated(history: History, draft: Draft) -> bool:
    """Without a transcript, whose stamps would have told: is this the state saved last?"""
    from savepoint.capture import repeated

    own = history.own
    return own is not None and repeated.is_repeated(history.paths, own, draft.document)


def _is_drafted(store: Store, key: str, draft: Draft) -> bool:
    """Does the session's newest draft hold that state? Each fire without a key would add one."""
    from savepoint.capture import repeated

    for path in pending.drafts(store, key)[-1:]:
        try:
            last = Draft.parse(read_bounded(path, 2 * limits.SNAPSHOT_BYTES) or b"")
        except SavepointError:
            return False
        return repeated.is_same(last.document, draft.document)
    return False


def _prefix_check(found: Capture) -> str:
    stored = found.conversation.stored
    return stored.prefix_check if stored is not None else FULL


def _draft(
    request: Request, key: str, found: Capture, history: History, packs: PackWriter
) -> Draft:
    instance = Instance.parse(history.instance)
    started_with = guidance.load(history.paths.store, key)
    ancestors = history.paths.lineage
    built = document.build(found, request, packs, instance, started_with, ancestors)
    return Draft(history.paths.slug, key, request.trigger, history.origin, built)


def _drafted(store: Store, key: str) -> dict[str, Segment]:
    """By SHA-256 what waits with a draft: it is stored already, however long the key is missing."""
    found: dict[str, Segment] = {}
    for path in pending.drafts(store, key):
        try:
            draft = Draft.parse(read_bounded(path, 2 * limits.SNAPSHOT_BYTES) or b"")
            for file in snapshot.files(draft.document, lambda one: read_segment(store, one)):
                found.update((one.sha256, one) for one in file.segments)
        except SavepointError:
            continue
    return found


def _sign_drafts(store: Store, key: str, request: Request, chosen: Config) -> None:
    """Sign what earlier fires of the session read and could not sign, if there is a key by now.
    What is no draft is left where it is: fsck names it.
    """
    for path in pending.drafts(store, key):
        from savepoint.capture import drafts

        try:
            draft = Draft.parse(read_bounded(path, 2 * limits.SNAPSHOT_BYTES) or b"")
            owned = drafts.owned(store.instance(chosen.instance), draft)
            if owned is not None:
                paths, draft = owned
                seed = keyring.authority(paths)
                acknowledge(paths, seed, draft, request.deadline, _GitStep(paths, request))
        except (KeyFileError, MalformedError):
            continue
        durable.remove(path)
        durable.remove(store.session(key))  # it knows an older savepoint; the index knows this one


class _GitStep:
    """The commit of a save: between record and trusted head, and never a reason to fail."""

    def __init__(
        self,
        paths: InstancePaths,
        request: Request,
        written: frozenset[str] = frozenset(),
        blobs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._paths = paths
        self._request = request
        self._written = written
        self.blobs = dict(blobs)
        self.commit: str | None = None
        self.problems: tuple[str, ...] = ()

    def __call__(self, record: Record, snapshot: Snapshot) -> None:
        """Commit what the index has and git has not; a failure leaves it queued, and is told."""
        from savepoint.gitlayer.commits import commit
        from savepoint.gitlayer.commits.plan import New

        deadline = self._request.deadline - limits.GIT_RESERVE_SECONDS
        new = New(record, snapshot, self._written, self.blobs)
        try:
            done = commit.commit(self._paths, self._request.environment, deadline, new)
        except SavepointError as failure:
            self.problems = (failure.message,)
            return
        if done is not None:
            self.blobs = done.blobs
            self.commit = done.cursor.commit if done.cursor.seq == record.seq else None
            self.problems = done.warnings
            if done.left:  # saves that were killed left much: `create` said no word of it
                self.problems += (_MUCH,)


def _settled(file: CachedFile, packs: PackWriter) -> CachedFile:
    return file._replace(segments=tuple(packs.settled(one) for one in file.segments))


def _afterwards(
    store: Store, key: str, last: Session, paths: InstancePaths, one: Record
) -> tuple[str, ...]:
    """Cache, log and note: the savepoint stands without them, so a failure is a warning. Each by
    itself: a note that stayed because the cache could not be written would save all again.
    """
    failed = []
    steps: tuple[Callable[[], None], ...] = (
        lambda: last.save(store, key),
        lambda: pending.clear(store, key),
        lambda: journal.saved(paths, last.saved_at, one),
    )
    for step in steps:
        try:
            step()
        except DiskError as failure:
            failed.append(failure.message)
    return tuple(failed)


def _note(request: Request, reason: str) -> Note:
    return Note(
        session_id=request.session_id,
        transcript=request.transcript,
        project=request.project,
        cwd=request.cwd,
        trigger=request.trigger,
        since=request.now,
        reason=reason,
    )
