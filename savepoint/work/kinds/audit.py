"""Jobs `audit`: long transcripts whose beginning the last savepoint took on trust.

Above FULL_CHECK_BYTES a save hashes only the end of what it had before (the snapshot says
`prefix_check: tail`). Here all of it is hashed again; if it differs, a savepoint corrects that.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint import save
from savepoint.core import limits, record, snapshot
from savepoint.core.errors import DeadlineError, DiskError, MalformedError, SavepointError
from savepoint.store import durable, savepoints
from savepoint.store.files import open_regular, read_at
from savepoint.store.lines import line_at
from savepoint.store.locks import Lock
from savepoint.store.session import sessions
from savepoint.store.session.pending import Note
from savepoint.work import requests
from savepoint.work.jobs import Job

if TYPE_CHECKING:
    from savepoint.core.segments import Segment
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from savepoint.store.session.sessions import Session
    from savepoint.work.jobs import Surroundings

TRIGGER = "audit"  # of a savepoint that corrects


class Audit:
    """One job a session whose last savepoint had its tail checked only."""

    name = "audit"
    seconds = limits.AUDIT_SECONDS

    def owed(self, store: Store, _around: Surroundings) -> list[Job]:
        """What is to be hashed. Raises DiskError."""
        return [
            Job(self.name, key, last.seq, last.saved_at)
            for key in sessions.unaudited(store)
            if (last := sessions.load(store, key)) is not None
        ]

    def do(self, store: Store, job: Job, around: Surroundings, deadline: float) -> None:
        """Hash it; correct what differs. Raises SavepointError."""
        with Lock(store.session_lock(job.key), deadline):
            last = sessions.load(store, job.key)
            if last is None or last.prefix_check != sessions.TAIL:
                return
            if _is_as_saved(last, deadline):
                last._replace(prefix_check=sessions.AUDITED).save(store, job.key)
                return
            request = requests.of_worker(store, around, deadline)
            note = _note(store, job.key, last, request.project)
            note.save(store, job.key)  # before the cache goes: a kill loses nothing
            durable.remove(store.session(job.key))  # nothing of it is believed any more
        save.finish(request, store, job.key)


def _is_as_saved(last: Session, deadline: float) -> bool:
    """Does the transcript still begin with what was saved? One that is gone tells nothing, and
    there is nothing to save of it. One that cannot be read now is asked again. Raises DiskError.
    """
    path = last.transcript or ""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return True
    except MalformedError as failure:  # a link, say: what it was is not known
        raise DiskError(failure.message) from failure
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    try:
        return _begins_with(fd, last.files[path].segments if path in last.files else (), deadline)
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)


def _begins_with(fd: int, segments: tuple[Segment, ...], deadline: float) -> bool:
    position = 0
    for one in segments:
        if time.monotonic() >= deadline:
            raise DeadlineError("there was no time to hash the whole transcript")
        if hashlib.sha256(read_at(fd, one.bytes, position)).hexdigest() != one.sha256:
            return False
        position += one.bytes
    return True


def _note(store: Store, key: str, last: Session, project: str) -> Note:
    """What a save is asked for: the session, as its last savepoint knew it. project: the folder of
    a savepoint that does not tell.
    """
    session_id, cwd = key, ""
    with suppress(SavepointError):  # a damaged snapshot; verify names it
        paths = store.instance(last.instance)
        one = record.parse(line_at(paths, last.offset))
        document = savepoints.open_snapshot(paths, one).document
        session_id = _text(document, ("conversation_history", "session_id")) or session_id
        project = _text(document, ("git_state", "roots", "project")) or project
        cwd = _text(document, ("git_state", "roots", "worktree"))
    return Note(
        session_id=session_id,
        transcript=last.transcript,
        project=project,
        cwd=cwd or project,
        trigger=TRIGGER,
        since=int(time.time()),
        reason="the transcript is not what was saved of it",
    )


def _text(document: dict[str, Json], path: tuple[str, ...]) -> str:
    value = snapshot.member_at(document, path)
    return value if isinstance(value, str) else ""
