"""Capture: all that a savepoint holds, read once, with what is new put into packs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from savepoint.capture import conversation, loaded, repository, state, transcript
from savepoint.capture.agents import Adapter, FileNote, Fold, ReadNote
from savepoint.capture.conversation import Conversation, File
from savepoint.capture.exclusion import Exclusion
from savepoint.capture.loaded import LoadedFile, Loader, Roots
from savepoint.capture.repository import Repository
from savepoint.capture.request import Request
from savepoint.capture.state import StateFile
from savepoint.core.errors import SavepointError, TranscriptError
from savepoint.core.segments import Segment
from savepoint.store.packs import PackWriter
from savepoint.store.sessions import CachedFile, Session


class Capture(NamedTuple):
    """What was read. Segments have stand-ins for packs until the save settles them."""

    conversation: Conversation
    loaded: dict[str, LoadedFile]
    state: StateFile | None
    state_file: File | None
    git: Repository
    changes: tuple[tuple[Segment, ...], ...]  # of git.changes, in their order
    omitted: tuple[tuple[str, str], ...]  # what could not be taken, and why
    cached: dict[str, CachedFile]


def capture(
    request: Request,
    adapter: Adapter,
    git: repository.Pending,
    exclusion: Exclusion,
    before: Session | None,
    packs: PackWriter,
) -> Capture:
    """Read everything. `git` was started by the caller, so that it works beside our imports.

    Raises DiskError: our own disk failed. What of the agent's or the project's files cannot be
    read is told in `omitted`.
    """
    fd, reason = _open(request.transcript)
    try:
        told = _read(request, adapter, fd, reason, before, packs)
        files, cached = _load(request, adapter, fd, told.scan, exclusion, before, packs)
    finally:
        if fd is not None:
            os.close(fd)
    held, held_file, omitted = _state(request, packs)
    found = git.collect(request.deadline)
    return Capture(
        conversation=told,
        loaded=files,
        state=held,
        state_file=held_file,
        git=found,
        changes=tuple(loaded.store_bytes(one.data, packs) for one in found.changes),
        omitted=(*told.omitted, *omitted, *((("changes", found.omitted),) if found.omitted else ())),
        cached={**told.cached, **cached},
    )


def _open(path: str) -> tuple[int | None, str]:
    if not path:
        return None, "the agent named none, and its session has none"
    try:
        return transcript.open_file(path), ""
    except TranscriptError as failure:
        return None, failure.message


def _read(
    request: Request,
    adapter: Adapter,
    fd: int | None,
    reason: str,
    before: Session | None,
    packs: PackWriter,
) -> Conversation:
    if fd is None:
        return conversation.absent(adapter, reason)
    try:
        return conversation.read(request, adapter, request.transcript, fd, before, packs)
    except TranscriptError as failure:
        return conversation.absent(adapter, failure.message)


def _load(
    request: Request,
    adapter: Adapter,
    fd: int | None,
    scan: Fold,
    exclusion: Exclusion,
    before: Session | None,
    packs: PackWriter,
) -> tuple[dict[str, LoadedFile], dict[str, CachedFile]]:
    def note_of(note: FileNote, path: str) -> ReadNote | None:
        return None if fd is None else adapter.read_note(conversation.line_at(fd, note), path)

    roots = Roots(os.path.realpath(request.project), adapter.own_folders(request.config_dir))
    loader = Loader(roots, exclusion, packs, before.files if before else {}, note_of)
    inside = [path for path in scan.files if loaded.is_below(os.path.realpath(path), roots.project)]
    ignored = repository.ignored(request, inside)
    files = {}
    for path, note in scan.files.items():
        files[roots.name(path)] = loader.load(path, note, ignored)
    return files, loader.cached


def _state(
    request: Request, packs: PackWriter
) -> tuple[StateFile | None, File | None, tuple[tuple[str, str], ...]]:
    try:
        held = state.read(request.project)
    except SavepointError as failure:
        return None, None, ((state.FILE_NAME, failure.message),)
    if held is None:
        return None, None, ()
    file = File(state.FILE_NAME, loaded.store_bytes(held.data, packs))
    lost = () if held.value is not None else ((state.FILE_NAME, "no JSON object; kept as bytes"),)
    return held, file, lost
