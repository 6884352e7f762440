"""Capture: all that a savepoint holds, read once, with what is new put into packs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.capture import conversation, loaded, state, transcript
from savepoint.capture.conversation import Conversation, File
from savepoint.capture.loaded import LoadedFile, Loader, Roots
from savepoint.capture.payload import is_plain
from savepoint.capture.realpaths import RealPaths
from savepoint.core import limits
from savepoint.core.errors import SavepointError, TranscriptError
from savepoint.core.named import NamedTuple
from savepoint.store.layout import DYNASTY, THREADS, Store
from savepoint.store.session.sessions import NOWHERE, CachedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.capture.agents import FileNote, ReadNote
    from savepoint.capture.agents.adapter import Adapter, Fold
    from savepoint.capture.exclusion import Exclusion
    from savepoint.capture.git import repository
    from savepoint.capture.git.ignored import Ignored
    from savepoint.capture.git.repository import Repository
    from savepoint.capture.request import Request
    from savepoint.capture.state import StateFile
    from savepoint.core.segments import Segment
    from savepoint.store.packs import PackWriter
    from savepoint.store.session.sessions import Session


class Capture(NamedTuple):
    """What was read. Segments have stand-ins for packs until the save settles them."""

    agent: str
    conversation: Conversation
    loaded: dict[str, LoadedFile]
    state: StateFile | None
    state_file: File | None
    succession: File | None
    handoff: File | None
    git: Repository
    changes: tuple[tuple[Segment, ...], ...]  # of git.changes, in their order
    omitted: tuple[tuple[str, str], ...]  # what could not be taken, and why
    cached: dict[str, CachedFile]


class Work(NamedTuple):
    """One save at work."""

    request: Request
    adapter: Adapter
    git: repository.Pending  # started by the caller, so that it works beside our imports
    exclusion: Exclusion
    before: Session | None  # whose bytes need not be stored again
    packs: PackWriter
    store: str  # its path


def capture(work: Work) -> Capture:
    """Read everything.

    Raises DiskError: our own disk failed. What of the agent's or the project's files cannot be
    read is told in `omitted`.
    """
    fd, reason = _open(work.request)
    try:
        told = _converse(work, fd, reason)
        named = {path: note for path, note in told.scan.files.items() if is_plain(path)}
        real_paths = RealPaths()
        ignored = work.git.ignored(named, real_paths)  # git thinks while we do the rest
        held, held_file, omitted = _state(work)
        dynasty, unread = _memory(work, DYNASTY)
        threads, unread_too = _memory(work, THREADS)
        found = work.git.collect(work.request.deadline, work.exclusion)
        changes = tuple(loaded.store_bytes(one.data, work.packs) for one in found.changes)
        files, cached = _load(work, fd, named, ignored, real_paths)
    finally:
        if fd is not None:
            os.close(fd)
    cut_short = (("changes", found.omitted),) if found.omitted else ()
    unlisted = tuple(_unlisted(told.scan))
    return Capture(
        agent=work.adapter.NAME,
        conversation=told,
        loaded=files,
        state=held,
        state_file=held_file,
        succession=dynasty,
        handoff=threads,
        git=found,
        changes=changes,
        omitted=(*told.omitted, *unlisted, *omitted, *unread, *unread_too, *cut_short),
        cached={
            **told.cached,
            **cached,
            _NO_PATH: _stored(work, told, (held_file, dynasty, threads), changes),
        },
    )


_NO_PATH = ""  # name in the cache of what has no stamp of its own


def _stored(
    work: Work,
    told: Conversation,
    states: Iterable[File | None],
    changes: Iterable[tuple[Segment, ...]],
) -> CachedFile:
    """What is read anew at each save and must not be stored anew: state, memories, changes, and,
    where it cannot be read this time, what is stored of the conversation.
    """
    known = work.before.known_segments().values() if work.before and not told.transcript else ()
    held = (one for file in states if file for one in file.segments)
    found = (*known, *held, *(one for segments in changes for one in segments))
    return CachedFile(NOWHERE, tuple(dict.fromkeys(found)), None)


def _open(request: Request) -> tuple[int | None, str]:
    if not request.transcript:
        return None, "the agent named none, and its session has none"
    try:
        return transcript.open_transcript(request.transcript, request.home), ""
    except TranscriptError as failure:
        return None, failure.message


def _converse(work: Work, fd: int | None, reason: str) -> Conversation:
    if fd is None:
        return conversation.absent(work.adapter, reason)
    try:
        return conversation.read(work.request, work.adapter, fd, work.before, work.packs)
    except TranscriptError as failure:
        return conversation.absent(work.adapter, failure.message)


def _load(
    work: Work,
    fd: int | None,
    named: dict[str, FileNote],
    ignored: Ignored,
    real_paths: RealPaths,
) -> tuple[dict[str, LoadedFile], dict[str, CachedFile]]:
    def note_of(note: FileNote, path: str) -> ReadNote | None:
        if fd is None:
            return None
        return work.adapter.read_note(conversation.line_at(fd, note), path)

    request = work.request
    own = work.adapter.own_folders(request.config_dir, request.transcript)
    roots = Roots.of(request.project, own)
    before = work.before.files if work.before else {}
    loader = Loader(roots, work.exclusion, work.packs, before, note_of)
    excluded = ignored.answer(request.deadline)
    files = {}
    for path, note in named.items():
        real = real_paths.of(path)
        files[roots.name(path, real)] = loader.load(path, real, note, excluded)
    return files, loader.cached


def _unlisted(scan: Fold) -> Iterator[tuple[str, str]]:
    """What the session shows of files, and `loaded_files` does not list."""
    nameless = scan.nameless + sum(not is_plain(path) for path in scan.files)
    if nameless:
        yield "loaded_files", f"{nameless} shown under names that no file can have"
    if scan.files_more:
        yield "loaded_files", f"{scan.files_more} more than {limits.LOADED_FILES}, the oldest"


def _memory(work: Work, name: str) -> tuple[File | None, tuple[tuple[str, str], ...]]:
    """What outlives a session; most stores have none, and pay for nothing."""
    home = os.path.dirname(os.path.dirname(work.store))
    store = Store(home, os.path.basename(work.store))
    head = store.instance(name).trusted  # where only that is left, the rest was lost
    if not os.path.isdir(os.path.join(work.store, name)) and not os.path.lexists(head):
        return None, ()
    from savepoint.capture import memory

    try:
        held = memory.read(work.store, work.request.deadline, name)
        wrong = _of_threads(store) if name == THREADS else ""
    except SavepointError as failure:
        return None, ((name, failure.message),)
    lost = tuple((name, one) for one in (wrong, held.left_out) if one)
    if held.data is None:
        return None, lost
    return File(name + memory.ENDING, loaded.store_bytes(held.data, work.packs)), lost


def _of_threads(store: Store) -> str:
    """What is wrong with their log."""
    from savepoint.capture import threads

    return threads.damage(store)


def _state(work: Work) -> tuple[StateFile | None, File | None, tuple[tuple[str, str], ...]]:
    try:
        held = state.read(work.request.project)
    except SavepointError as failure:
        return None, None, ((state.FILE_NAME, failure.message),)
    if held is None:
        return None, None, ()
    file = File(state.FILE_NAME, loaded.store_bytes(held.data, work.packs))
    lost = () if held.value is not None else ((state.FILE_NAME, "no JSON object; kept as bytes"),)
    return held, file, lost
