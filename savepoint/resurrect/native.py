"""The conversation as a session of Claude Code, under a new id, where the client looks for it
(measured with the real client: tests/claude).

The file is the one that was saved, byte for byte, but for what would brick it (transcript_lines)
and links that led nowhere (conversation): so what a session came from is stored once. Its records
go on naming the session that wrote them; the client takes the id from the file's name.
"""

from __future__ import annotations

import os
import uuid
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_places
from savepoint.core.errors import TamperedError
from savepoint.core.named import NamedTuple
from savepoint.resurrect import conversation, members, moves, selection
from savepoint.store import durable, savepoints
from savepoint.store.packs import read_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from savepoint.core.snapshot import StoredFile
    from savepoint.resurrect.conversation import Session
    from savepoint.resurrect.members import Member
    from savepoint.resurrect.moves import Move
    from savepoint.resurrect.selection import Part
    from savepoint.store.durable import Folder
    from savepoint.store.layout import Store

_AHEAD = 2  # segments that are opened before they are needed, and held in memory
_BACKUPS = b"file-history"
_OWN = ""  # the session's own folder
_OLD_AGENTS = b"subagents"  # where clients since 2.1.2 look for what once lay beside


class Native(NamedTuple):
    """A session that waits to be put into its place."""

    id: str  # a new UUID
    file: str  # path that it will have
    session: Session
    moves: tuple[Move, ...]  # the transcript last: with it the session is there
    bytes: int
    files: int  # beside the transcript
    first: int = 1  # number of the message that it begins with


def place(config_dir: str, target: str) -> tuple[str, ...] | None:
    """The folders below the agent's own in which the client looks for sessions of `target`; None
    where it ends a long name in a way that only itself knows, and has made no such folder yet.
    """
    found = claude_places.project_folders(config_dir, target)
    if len(found) != 1:
        return None
    return ("projects", os.path.basename(found[0]))


def stage(
    store: Store, files: list[StoredFile], where: tuple[str, tuple[str, ...]], part: Part
) -> Native | None:
    """Write the session and what belongs to it beside their places. where: the agent's folder and
    the folders in it. files: those of the snapshot that are the conversation's, transcript first.
    None: it has no message that the client knows.

    Raises SelectorError (no such thread, nothing in the span), TamperedError (a file is missing, or
    other than it was saved), DiskError.
    """
    transcript, *beside = files
    if part.thread:
        transcript, beside = selection.thread(files, part.thread), []

    def saved() -> Iterator[bytes]:
        return _ahead(store, transcript)

    if part.span is not None:
        found = selection.cut(saved(), part.span)
        sliced = partial(selection.sliced, start=found.start, end=found.end)
        made = _staged(store, lambda: sliced(saved()), beside, where, part)
        return made._replace(first=found.first) if made else None
    return _staged(store, saved, beside, where, part)


def _staged(
    store: Store,
    saved: Callable[[], Iterator[bytes]],
    beside: list[StoredFile],
    where: tuple[str, tuple[str, ...]],
    part: Part,
) -> Native | None:
    """saved: reads the bytes that come back, once for each call."""
    config_dir, below = where
    durable.make_directories(config_dir)
    root, identity = os.path.realpath(config_dir), str(uuid.uuid4())
    transcript = moves.beside(root, below, f"{identity}.jsonl", folder=False)
    waiting: list[tuple[Move, list[Member]]] = []
    for under, found in _placed(beside).items():
        at = below if under == _OWN else (under,)
        waiting.append((moves.beside(root, at, identity, folder=True), found))
    every = (*(move for move, _ in waiting), transcript)
    try:
        session, size = _write(transcript, saved, part)
        if not session.messages:
            transcript.drop()
            return None
        size += sum(_fill(move, store, found) for move, found in waiting)
    except BaseException:
        for move in every:
            move.drop()
        raise
    return Native(identity, transcript.path, session, every, size, len(beside))


def _write(
    transcript: Move, saved: Callable[[], Iterator[bytes]], part: Part
) -> tuple[Session, int]:
    """The transcript under its temporary name, and its bytes. It is read as it is written: only one
    in which something is put right, or that is cut, is written a second time.
    """
    name = os.fsencode(transcript.temporary)
    reader = conversation.Reader(full=part.full, thread=bool(part.thread))
    with transcript.place() as folder:
        size = folder.new(name, reader.passing(saved()))
        session = reader.session()
        if session.messages and not reader.is_as_saved(session):
            transcript.drop()
            size = folder.new(name, session.pieces(saved()))
    return session, size or 0


def _ahead(store: Store, file: StoredFile) -> Iterator[bytes]:
    """As savepoints.content: while one segment is looked at, the next is opened and hashed, which
    happens without the interpreter's lock.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        opening: deque[Future[bytes]] = deque()
        for segment in file.segments:
            opening.append(pool.submit(read_segment, store, segment))
            if len(opening) > _AHEAD:
                yield opening.popleft().result()
        while opening:
            yield opening.popleft().result()


def _placed(beside: list[StoredFile]) -> dict[str, list[Member]]:
    """What lies beside a transcript, by the folder that it goes into: the session's own, or that of
    the copies for going back.
    """
    found: dict[str, list[Member]] = {}
    for one in members.companions(beside).files:
        first, *rest = one.parts
        if first == _BACKUPS and rest:
            found.setdefault(os.fsdecode(first), []).append(one._replace(parts=tuple(rest)))
        elif not rest and first.startswith(b"agent-"):
            parts = (_OLD_AGENTS, first)
            found.setdefault(_OWN, []).append(one._replace(parts=parts))
        else:
            found.setdefault(_OWN, []).append(one)
    return found


def _fill(move: Move, store: Store, found: list[Member]) -> int:
    """The files in their folder; their bytes."""
    with move.place() as at, at.folder(os.fsencode(move.temporary)) as folder:
        return sum(write_member(store, folder, one) for one in found)


def write_member(store: Store, folder: Folder, one: Member) -> int:
    """A file of the savepoint below a folder that is being filled; its bytes.

    Raises TamperedError (not as it was saved, or its name is taken), DiskError.
    """
    size = moves.write(folder, one.parts, _content(store, one.stored), one.mode)
    if size is None:
        raise TamperedError(f"two files of the savepoint have one name here: {one.name}")
    return size


def _content(store: Store, file: StoredFile) -> Iterator[bytes]:
    yield from savepoints.content(store, file)
