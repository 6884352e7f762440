"""The cache of a session: what its last savepoint held, so that the next costs only what is new.

Never evidence: a cache that does not fit the index is ignored, and rebuilt from the snapshot. It is
written unsynced, so a power cut may leave it empty or old.
"""

from __future__ import annotations

import functools
import json
import os

from savepoint.core import limits, schema
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from savepoint.core.segments import Segment
from savepoint.core.strict_json import Json, dump
from savepoint.store import durable
from savepoint.store.files import names_in, open_regular, read_at, read_bounded
from savepoint.store.lines import lines_from, session_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Store

_BEGINNING_BYTES = 1024
_BEGINNING = late(
    rb'\{"v":1,"prefix_check":"[a-z]+","instance":"([a-z0-9-]+)","seq":([0-9]{1,18}),'
    rb'"record":"[0-9a-f]*","signature":"[0-9a-f]*","offset":[0-9]+,"saved_at":([0-9]{1,18}),'
)
FULL, TAIL, AUDITED = "full", "tail", "audited"  # how much of a transcript was hashed
RECENT_SESSIONS = 64  # caches looked through for one that holds the same transcript file


class Stamp(NamedTuple):
    """What `stat` says of a file: equal stamps, equal content, as far as a clock tick tells."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, seen: os.stat_result) -> Stamp:
        """From a stat result."""
        return cls(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


NOWHERE = Stamp(0, 0, 0, 0)  # of a file that has to be read again


class CachedFile(NamedTuple):
    """A file of the session as its last savepoint stored it. `extra` belongs to the reader: the
    adapter's scan of a transcript, what is known of a loaded file.
    """

    stamp: Stamp
    segments: tuple[Segment, ...]
    extra: Json

    def to_json(self) -> Json:
        """Arrays all the way: a long session has a thousand segments."""
        return [list(self.stamp), [list(one) for one in self.segments], self.extra]

    @classmethod
    def from_json(cls, value: Json) -> CachedFile:
        """Raises ValueError or TypeError for anything that `to_json` does not give."""
        match value:
            case [list(stamp), list(segments), extra]:
                listed = tuple(Segment(*one) for one in segments)  # type: ignore[misc]  # TypeError
                return cls(Stamp(*stamp), listed, extra)  # type: ignore[arg-type]  # never evidence
            case _:
                raise ValueError("not a cached file")


class Session(NamedTuple):
    """The cache: which savepoint it describes, and its files by their path on disk."""

    instance: str  # slug
    seq: int
    record: str  # hash of the savepoint's record
    signature: str  # with which that ends, hex: as sure as the hash, and costs a fire no hashlib
    offset: int  # where that record stands in the index
    saved_at: int  # Unix seconds
    transcript: str | None
    blobs: dict[str, str]  # pack → its blob in our git repository, of the packs of that savepoint
    files: dict[str, CachedFile]
    prefix_check: str = FULL  # of the transcript by that savepoint; AUDITED: TAIL, and since hashed

    def known_segments(self) -> dict[str, Segment]:
        """Everything that need not be stored again, by SHA-256."""
        return {one.sha256: one for file in self.files.values() for one in file.segments}

    def whole(self, store: Store) -> Session:
        """Without the files of which a pack went missing: they are read and stored anew, where a
        savepoint that is built on what is not there would be damaged as it is made.
        """
        packs = {one.pack for file in self.files.values() for one in file.segments}
        lost = {name for name in packs if not os.path.isfile(store.pack(name))}
        kept = {
            path: file
            for path, file in self.files.items()
            if lost.isdisjoint(one.pack for one in file.segments)
        }
        return self._replace(files=kept) if lost else self

    def save(self, store: Store, key: str) -> None:
        """Write it; a failure costs the next save time, nothing else, but is raised."""
        files: dict[str, Json] = {path: file.to_json() for path, file in self.files.items()}
        blobs: dict[str, Json] = dict(self.blobs)
        first: dict[str, Json] = {
            "v": 1,
            "prefix_check": self.prefix_check,
        }  # for is_unaudited
        value = {**first, **self._asdict(), "blobs": blobs, "files": files}
        durable.replace_cache(store.session(key), dump(value) + b"\n")


_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "prefix_check": schema.one_of(FULL, TAIL, AUDITED),
        "instance": schema.text,
        "seq": schema.count,
        "record": schema.text,
        "signature": schema.text,
        "offset": schema.count,
        "saved_at": schema.count,
        "transcript": schema.nullable(schema.text),
        "blobs": schema.mapping(schema.text),
        "files": schema.mapping(schema.array(schema.anything)),
    }
)


def load(store: Store, key: str) -> Session | None:
    """The cache of a session if there is one that its index confirms, else None. A kill between a
    record and its cache leaves that of the savepoint before, which is no longer the session's last.
    """
    session = _read(store, key)
    if session is None:
        return None
    line, later = lines_from(store.instance(session.instance), session.offset)
    if not line.endswith(f'"signature":"{session.signature}"}}'.encode()):
        return None
    return None if session_member(key) in later else session


def holding(store: Store, stamp: Stamp) -> Session | None:
    """A recent session that holds the same transcript file: two sessions can share one
    (claude-code#30802), and what they share is stored once.
    """
    try:
        entries = [one for one in os.scandir(store.sessions) if one.name.count(".") == 1]
        entries.sort(key=lambda one: -one.stat().st_mtime_ns)
    except OSError:
        return None
    for entry in entries[:RECENT_SESSIONS]:
        session = load(store, entry.name.removesuffix(".json"))
        file = session.files.get(session.transcript or "") if session else None
        if file and (file.stamp.device, file.stamp.inode) == (stamp.device, stamp.inode):
            return session
    return None


def unaudited(store: Store) -> list[str]:
    """The sessions whose last savepoint took the beginning of its transcript on trust. Raises
    DiskError.
    """
    caches = [name for name in names_in(store.sessions) if name.count(".") == 1]
    keys = [name.removesuffix(".json") for name in caches if name.endswith(".json")]
    return [key for key in keys if is_unaudited(store, key)]


def is_unaudited(store: Store, key: str) -> bool:
    """Is it one of those? Only the head of its cache is read: it can be long."""
    head = dump({"v": 1, "prefix_check": TAIL})[:-1] + b","
    return _head(store.session(key), len(head)) == head


class Head(NamedTuple):
    """What the beginning of a cache tells, without reading all of it: it can be long."""

    instance: str  # slug
    seq: int
    saved_at: int  # Unix seconds


def head(store: Store, key: str) -> Head | None:
    """Of the session's last savepoint, as its cache says; not compared with the index."""
    found = _BEGINNING.match(_head(store.session(key), _BEGINNING_BYTES))
    if found is None:
        return None
    return Head(found[1].decode("ascii"), int(found[2]), int(found[3]))


def _head(path: str, size: int) -> bytes:
    try:
        fd = open_regular(path)
    except (OSError, SavepointError):
        return b""
    try:
        return read_at(fd, size, 0)
    finally:
        os.close(fd)


def _read(store: Store, key: str) -> Session | None:
    path = store.session(key)
    try:
        return _parsed(path, Stamp.of(os.stat(path)))
    except OSError:
        return None


@functools.lru_cache(maxsize=1)  # a save asks several times, and the file mostly stays the same
def _parsed(path: str, _stamp: Stamp) -> Session | None:
    """As the standard library parses it: what stands in a cache need not have one spelling only."""
    try:
        value = json.loads(read_bounded(path, limits.SESSION_CACHE_BYTES) or b"")
        _SHAPE(value, "session cache")
        files = {name: CachedFile.from_json(file) for name, file in value.pop("files").items()}
        value.pop("v")
        return Session(files=files, **value)
    except (SavepointError, TypeError, ValueError, RecursionError):
        return None  # never evidence
