"""Which session a request means, and what its savepoints so far are."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.capture import transcript
from savepoint.core import limits, record
from savepoint.core.errors import MalformedError, TranscriptError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.store import index, registry
from savepoint.store.layout import Home
from savepoint.store.lines import line_at
from savepoint.store.session import sessions
from savepoint.store.session.sessions import Session, Stamp

if TYPE_CHECKING:
    from savepoint.capture.agents.adapter import Adapter, Fold
    from savepoint.capture.request import Request
    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config
    from savepoint.store.layout import InstancePaths, Store


class History(NamedTuple):
    """What a session's next savepoint builds on."""

    paths: InstancePaths  # of the instance that it belongs to
    instance: str  # `NAME #N`
    own: Session | None  # its last savepoint
    base: Session | None  # whose bytes are not stored again: its own, or that of its file
    origin: Json  # `from` of the next record

    def known(self) -> dict[str, Segment]:
        """Segments that are stored already, by SHA-256."""
        return self.base.known_segments() if self.base else {}

    def blobs(self) -> dict[str, str]:
        """Pack → blob in our git repository, of packs that are committed already."""
        return self.base.blobs if self.base else {}


def resolve(request: Request, adapter: Adapter) -> Request:
    """The request with its transcript and session id filled in as far as they can be known.

    A transcript that is missing, or holds no record of the session, is looked for by session id
    alone: the newest file of a project may be another session's (the hook got an empty path in
    claude-code#13668). Only a person who names no session means the newest. Raises TranscriptError
    where a person's session cannot be found.
    """
    path = os.path.abspath(request.transcript) if request.transcript else ""
    by_hand = request.even_if_unchanged
    if path and by_hand:
        os.close(transcript.open_transcript(path, request.home))
    is_chosen = by_hand and path
    if request.session_id and not is_chosen and not _is_of(path, request.session_id, adapter):
        path = adapter.transcript_path(request.config_dir, request.cwd, request.session_id) or path
    if not path and not request.session_id and by_hand:
        store = registry.find(Home(request.home), request.project)
        path = newest(store, request.config_dir, (request.cwd, request.project), adapter) or ""
    if not path and by_hand:
        what = request.session_id or f"of {request.project}"
        raise TranscriptError(
            f"no session {what} is in {request.config_dir}",
            hint="name its file with --transcript FILE, or the agent's folder: CLAUDE_CONFIG_DIR",
        )
    return request._replace(
        transcript=path, session_id=request.session_id or _session_of(path, adapter)
    )


def newest(store: Store, config_dir: str, folders: tuple[str, ...], adapter: Adapter) -> str | None:
    """The transcript of the project written last, of the first of its folders that has one. A
    conversation that was only looked out of a savepoint is nobody's work until somebody goes on in
    it. Raises DiskError.
    """
    for folder in folders:
        for path in adapter.newest_first(config_dir, folder):
            if not _is_looked_out(store, path):
                return path
    return None


def _is_looked_out(store: Store, path: str) -> bool:
    """Was it put there by `resurrect --only conversation`, and not written to since? Then what is
    known of its session is what the resurrection noted, after it wrote the file.
    """
    key = os.path.basename(path).removesuffix(".jsonl")
    last = sessions.load(store, key)
    if last is None or last.transcript is not None:
        return False
    try:
        if os.stat(path).st_mtime_ns > os.stat(store.session(key)).st_mtime_ns:
            return False
        return record.parse(line_at(store.instance(last.instance), last.offset)).kind == "save"
    except (OSError, MalformedError, UnsupportedFormatError):
        return False


def _is_of(path: str, session_id: str, adapter: Adapter) -> bool:
    """Is there a file of that name with something of the session in it? Mostly its name says so."""
    if not path or os.path.basename(path) == f"{session_id}.jsonl":
        return os.path.isfile(path)
    scan = _beginning(path, adapter)
    return scan is not None and session_id in scan.sessions


def _session_of(path: str, adapter: Adapter) -> str:
    """The session of a transcript given by path alone."""
    scan = _beginning(path, adapter)
    stem = os.path.basename(path).removesuffix(".jsonl")
    found = adapter.session_id(scan, stem) if scan is not None else None
    return found or hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def _beginning(path: str, adapter: Adapter) -> Fold | None:
    """What the beginning of a transcript tells; None where it cannot be read."""
    try:
        fd = transcript.open_file(path)
    except TranscriptError:
        return None
    scan = adapter.Scan.empty()
    try:
        scan.feed(os.pread(fd, limits.SEGMENT_SOFT_BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(fd)
    return scan.end()


def history(store: Store, key: str, request: Request, chosen: Config) -> History:
    """The session's last savepoint from its cache, else from the index, else none."""
    current = store.instance(chosen.instance)
    own = sessions.load(store, key) or _rebuilt(current, key)
    paths = store.instance(own.instance) if own else current
    base = own or _sharing(store, request.transcript)
    if own and paths != current and index.is_retired(paths):  # it goes on under the next number
        return History(current, index.instance(current), None, base, _origin(paths, own))
    return History(paths, index.instance(paths), own, base, _origin(paths, own))


def _rebuilt(current: InstancePaths, key: str) -> Session | None:
    from savepoint.store.session import rebuild  # most saves have their session's cache

    return rebuild.rebuilt(current, key)


def _sharing(store: Store, path: str) -> Session | None:
    try:
        stamp = Stamp.of(os.stat(path))
    except OSError:
        return None
    return sessions.holding(store, stamp)


def _origin(paths: InstancePaths, own: Session | None) -> Json:
    if own is None:
        return None
    try:
        last: Record = record.parse(line_at(paths, own.offset))
    except (MalformedError, UnsupportedFormatError):
        return None
    if last.kind == "restore":  # the session was brought back: it goes on from that savepoint
        return last.body["from"]
    return last.origin() if last.kind == "save" else None
