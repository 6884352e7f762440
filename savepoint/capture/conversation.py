"""The conversation of a session: its transcript, and the files that belong to it beside that."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from savepoint.capture import transcript
from savepoint.capture.agents import Window
from savepoint.core import limits
from savepoint.core.errors import MalformedError, TranscriptError
from savepoint.core.named import NamedTuple
from savepoint.core.segments import Segment, root_of
from savepoint.store.files import read_at
from savepoint.store.session.sessions import CachedFile, Session, Stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.capture.agents import FileNote, Span, Tokens
    from savepoint.capture.agents.adapter import Adapter, Fold
    from savepoint.capture.request import Request
    from savepoint.capture.transcript import Stored
    from savepoint.core.strict_json import Json
    from savepoint.store.packs import PackWriter


class File(NamedTuple):
    """A stored file under the name that the snapshot gives it."""

    path: str
    segments: tuple[Segment, ...]

    def to_json(self, settled: Callable[[Segment], Segment]) -> dict[str, Json]:
        """`{"path", "bytes", "root", "segments"}`."""
        whole = [settled(one) for one in self.segments]
        return {
            "path": self.path,
            "bytes": sum(one.bytes for one in whole),
            "root": root_of(whole),
            "segments": [one.to_json() for one in whole],
        }


class Conversation(NamedTuple):
    """What was read of a session's own files."""

    scan: Fold  # of all bytes read
    stored: Stored | None  # None: there is no transcript
    transcript: File | None
    companions: tuple[File, ...]
    tokens: Tokens
    todos: tuple[str, ...]
    omitted: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    cached: dict[str, CachedFile]


def read(
    request: Request, adapter: Adapter, fd: int, before: Session | None, packs: PackWriter
) -> Conversation:
    """Store the transcript open at `fd`, and its companions.

    Raises TranscriptError (it became unreadable), DiskError.
    """
    path = request.transcript
    saved, begun = _begun(adapter, before.files.get(path) if before else None)
    follower = _Follower(adapter, begun)
    stored = transcript.store_file(fd, packs, saved, follower.start, request.still)
    scan = follower.finish()
    usage = line_at(fd, scan.usage) if scan.usage else None
    todos = line_at(fd, scan.todos) if scan.todos else None
    known = adapter.companions(path, request.config_dir, request.session_id, scan)
    beside = _Companions(before, packs, request.home)
    companions = tuple(filter(None, (beside.store(label, file) for label, file in known.files)))
    cached = {path: CachedFile(stored.stamp, stored.segments, follower.cached), **beside.cached}
    return Conversation(
        scan=scan,
        stored=stored,
        transcript=File(path, stored.segments),
        companions=companions,
        tokens=adapter.tokens(scan, usage, request.window),
        todos=tuple(adapter.todos(scan, todos)),
        omitted=(*_foreign(request, stored, scan), *known.omitted, *beside.omitted),
        notes=tuple(_notes(stored, scan)),
        cached=cached,
    )


def absent(adapter: Adapter, reason: str) -> Conversation:
    """There is no transcript to read: what else there is gets saved, and this said
    (claude-code#13668: the hook got an empty path).
    """
    scan = adapter.Scan.empty()
    return Conversation(
        scan=scan,
        stored=None,
        transcript=None,
        companions=(),
        tokens=adapter.tokens(scan, None, Window()),
        todos=(),
        omitted=(("transcript", reason),),
        notes=(),
        cached={},
    )


def _unfollowed(*, stands: bool) -> Callable[[bytes], None]:  # noqa: ARG001  # StartFeed
    return lambda _: None


def line_at(fd: int, span: Span | FileNote) -> bytes:
    """A line of the transcript that the scan found."""
    return read_at(fd, min(span.length, limits.SEGMENT_HARD_BYTES), span.offset)


def _begun(adapter: Adapter, saved: CachedFile | None) -> tuple[CachedFile | None, Fold]:
    """What the last save stored, and its fold. A fold that another version cached is not
    understood: then the transcript is read as if for the first time.
    """
    if saved is not None:
        with suppress(MalformedError):
            return saved, adapter.Scan.from_json(saved.extra)
    return None, adapter.Scan.empty()


class _Follower:
    """Feeds the adapter's fold. What is cached stands before the last segment, since that one may
    be open: the next save reads it again.
    """

    def __init__(self, adapter: Adapter, begun: Fold) -> None:
        self._begun = begun
        self._scan: Fold = adapter.Scan.empty()
        self._last = b""
        self.cached: Json = None

    def start(self, *, stands: bool) -> Callable[[bytes], None]:
        """Begin from the cached fold if the saved beginning still stands."""
        if stands:
            self._scan = self._begun
        return self._feed

    def _feed(self, raw: bytes) -> None:
        self._scan.feed(self._last)
        self._last = raw

    def finish(self) -> Fold:
        """The fold of everything; `cached` is then the one to keep."""
        self.cached = self._scan.to_json()
        self._scan.feed(self._last)
        return self._scan.end()


class _Companions:
    """Stores what lies beside the transcript; a file that did not change is not read again."""

    def __init__(self, before: Session | None, packs: PackWriter, home: str) -> None:
        self._home = home
        self._before = before.files if before else {}
        self._packs = packs
        self.cached: dict[str, CachedFile] = {}
        self.omitted: list[tuple[str, str]] = []

    def store(self, label: str, path: str) -> File | None:
        """One companion, or None with the reason among `omitted`."""
        try:
            fd = transcript.open_transcript(path, self._home)
        except TranscriptError as failure:
            self.omitted.append((label, failure.message))
            return None
        try:
            self.cached[path] = self._stored(fd, self._before.get(path))
        except TranscriptError as failure:
            self.omitted.append((label, failure.message))
            return None
        finally:
            os.close(fd)
        return File(label, self.cached[path].segments)

    def _stored(self, fd: int, saved: CachedFile | None) -> CachedFile:
        if saved and saved.stamp == Stamp.of(os.fstat(fd)):
            return saved
        stored = transcript.store_file(fd, self._packs, saved, _unfollowed)
        return CachedFile(stored.stamp, stored.segments, None)


def _foreign(request: Request, stored: Stored, scan: Fold) -> list[tuple[str, str]]:
    """A file that is named after another session, or none, and holds nothing of this one: its bytes
    are kept, since an agent may change its format, but they are not what was to be saved.
    """
    own = request.session_id
    if os.path.basename(request.transcript) == f"{own}.jsonl" or own in scan.sessions:
        return []
    is_foreign = scan.sessions_more == 0 and bool(scan.sessions)
    if is_foreign or _records(scan) <= 0 < stored.stamp.size:
        return [("transcript", f"{request.transcript} holds no record of this session")]
    return []


def _records(scan: Fold) -> int:
    """Lines that are whole and a record."""
    return scan.records - scan.unparsable - (scan.torn > 0)


def _notes(stored: Stored, scan: Fold) -> list[str]:
    told = [
        (stored.rewritten, "what was saved before is no longer the beginning of the transcript"),
        (stored.unsteady, "the transcript changed while it was read"),
        (scan.torn > 0, "the last line of the transcript is not whole"),
        (scan.glued > 0, f"lines that hold more than one record: {scan.glued}"),
        (scan.unparsable > 0, f"lines that are no record: {scan.unparsable}"),
        (_records(scan) <= 0 < stored.stamp.size, "no line of it is a record: is it a session?"),
    ]
    return [text for true, text in told if true]
