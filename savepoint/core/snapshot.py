"""Snapshots: the document that everything else of a savepoint hangs on (format.md 5)."""

from __future__ import annotations

import binascii
import hashlib
from typing import TYPE_CHECKING

from savepoint.core import limits, schema, segments, spelling
from savepoint.core.errors import MalformedError, TamperedError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.segments import Segment
from savepoint.core.strict_json import Json, dump, parse_canonical, parse_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMAT = 1
TYPE = "PRECOMPACT_SAVEPOINT"
_INTEGRITY = b',"integrity":'

_digest = schema.spelled(spelling.digest)
_time = schema.spelled(spelling.time_seconds)
_nullable_text = schema.nullable(schema.text)
_nullable_count = schema.nullable(schema.count)


def _segment(value: Json, _where: str) -> None:
    Segment.from_json(value)


def _path(value: Json, where: str) -> None:
    """A path in UTF-8, or `{"b64": …}` where its bytes are none."""
    if not isinstance(value, str):
        schema.members({"b64": schema.spelled(_no_utf8)})(value, where)


def path_bytes(path: Json) -> bytes:
    """The bytes of a path that has its shape."""
    if isinstance(path, dict):
        return binascii.a2b_base64(str(path["b64"]))
    return str(path).encode("utf-8")


def _no_utf8(text: str) -> None:
    """Base64 in its one spelling (RFC 4648, section 4), of bytes that a string could not hold."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as failure:
        raise MalformedError("not base64") from failure
    if binascii.b2a_base64(data, newline=False) != text.encode():
        raise MalformedError("a second spelling of base64")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return
    raise MalformedError("a path in UTF-8 is spelled as it is, not in base64")


_spilled = schema.members({"list": schema.array(_segment), "count": schema.count})


def is_spilled(value: Json) -> bool:
    """Is this `{"list": segments, "count": n}`, in place of what was too long for the document?"""
    return isinstance(value, dict) and type(value.get("count")) is int


def _list_of(inner: schema.Check) -> schema.Check:
    """A list, or what stands for a spilled one."""

    def check(value: Json, where: str) -> None:
        (_spilled if is_spilled(value) else schema.array(inner))(value, where)

    return check


def _mapping_of(inner: schema.Check) -> schema.Check:
    """Path → entry, or what stands for a spilled one."""

    def check(value: Json, where: str) -> None:
        (_spilled if is_spilled(value) else schema.mapping(inner))(value, where)

    return check


_FILE = {
    "path": _path,
    "bytes": schema.count,
    "root": _digest,
    "segments": schema.array(_segment),
}
_file = schema.members(_FILE)
_transcript = schema.members(_FILE | {"segments": _list_of(_segment)})
_loaded_members = schema.members(
    {
        "known": schema.one_of("read", "attached", "written"),
        "sha256": schema.nullable(_digest),
        "size": _nullable_count,
        "changed": schema.nullable(schema.truth),
        "reason": _nullable_text,
        "segments": schema.nullable(schema.array(_segment)),
    }
)


def _loaded(value: Json, where: str) -> None:
    """A loaded file; what is stored is known by its size and its SHA-256."""
    _loaded_members(value, where)
    known = _members(value)
    if known["segments"] is not None and None in (known["sha256"], known["size"]):
        raise MalformedError(f"{where} is stored, but its sha256 or size is null")


_change = schema.members(
    {
        "path": _path,
        "kind": schema.one_of("staged", "working", "untracked"),
        "mode": schema.text,
        "bytes": schema.count,
        "segments": schema.array(_segment),
    }
)
_excluded = schema.members({"path": _path, "reason": schema.text})
_omitted = schema.members({"what": schema.text, "reason": schema.text})

_SHAPE = schema.members(
    {
        "format": schema.one_of(FORMAT),
        "type": schema.one_of(TYPE),
        "timestamp_iso8601": _time,
        "instance_id": schema.spelled(spelling.Instance.parse),
        "instance_number": schema.count,
        "salt": schema.hexadecimal(16),
        "session_token_budget": _nullable_count,
        "tokens_used_this_session": _nullable_count,
        "tokens_remaining": _nullable_count,
        "context_utilization_percent": _nullable_count,
        "token_source": _nullable_text,
        "conversation_history": schema.members(
            {
                "agent": schema.text,
                "client_version": _nullable_text,
                "session_id": schema.text,
                "scope": schema.one_of("main", "subagent", "unknown"),
                "message_count": schema.count,
                "records": schema.count,
                "sessions": schema.mapping(schema.count),
                "compactions": schema.count,
                "torn_tail_bytes": schema.count,
                "prefix_check": schema.one_of("full", "tail"),
                "transcript": schema.nullable(_transcript),
                "companions": _list_of(_file),
            }
        ),
        "session_state": schema.anything,
        "session_current": schema.nullable(
            schema.members(_FILE | {"numbers_as_text": schema.array(schema.text)})
        ),
        "succession_state": _file,
        "handoff_state": _file,
        "loaded_files": _mapping_of(_loaded),
        "git_state": schema.members(
            {
                "current_commit": _nullable_text,
                "branch": _nullable_text,
                "remotes": schema.mapping(schema.text),
                "status": schema.text,
                "last_push": schema.text,
                "object_format": _nullable_text,
                "operation": _nullable_text,
                "roots": schema.members({"project": _path, "worktree": schema.nullable(_path)}),
                "changes": schema.members(
                    {
                        "files": _list_of(_change),
                        "deleted": _list_of(_path),
                        "excluded": _list_of(_excluded),
                        "omitted": _nullable_text,
                    }
                ),
            }
        ),
        "guidance": schema.array(
            schema.members({"path": _path, "kind": schema.text, "sha256": _digest})
        ),
        "omitted": schema.array(_omitted),
        "notes": schema.array(schema.text),
        "checkpoint_verification": schema.members(
            {
                "modulo_zero": schema.truth,
                "bootstrap_confirmed": schema.truth,
                "contextual_priming": schema.one_of("COMPLETE", "PARTIAL", "NONE"),
                "standing_verified": schema.truth,
            }
        ),
        "integrity": schema.members(
            {"hash_sha256": _digest, "size_bytes": schema.count, "created_at": _time}
        ),
    },
    optional=frozenset({"succession_state", "handoff_state", "guidance"}),
)

# The lists that become segments of their own when a document grows past SNAPSHOT_BYTES: the
# members on the way to each, and what each holds. They are tried in this order, the longest first.
SPILLABLE: dict[tuple[str, ...], schema.Check] = {
    ("conversation_history", "companions"): schema.array(_file),
    ("loaded_files",): schema.mapping(_loaded),
    ("git_state", "changes", "files"): schema.array(_change),
    ("git_state", "changes", "deleted"): schema.array(_path),
    ("git_state", "changes", "excluded"): schema.array(_excluded),
    ("conversation_history", "transcript", "segments"): schema.array(_segment),
}

_SINGLE_FILES = (
    ("state", "session_current"),
    ("succession", "succession_state"),
    ("handoff", "handoff_state"),
)


class StoredFile(NamedTuple):
    """A file that a snapshot holds: what it is, its path, its bytes as segments in order."""

    part: str  # conversation | companion | state | files | changes | succession | handoff
    path: Json  # a string or {"b64": …}
    bytes: int
    segments: tuple[Segment, ...]
    root: str | None  # None where the snapshot names a SHA-256 of the whole instead, or nothing
    sha256: str | None


class Snapshot(NamedTuple):
    """A snapshot as stored: `data` is the file, `document` what it says."""

    data: bytes
    document: dict[str, Json]

    @property
    def hash(self) -> str:
        """SHA-256 of the whole file: what `sha256sum` prints, the index and the chain hold."""
        return hashlib.sha256(self.data).hexdigest()


def seal(document: dict[str, Json], created_at: str) -> Snapshot:
    """`document` (all members but integrity) with its integrity, as the file's bytes.

    Raises MalformedError if it is none that `parse` takes: what cannot be read back must never be
    acknowledged.
    """
    covered = dump(document) + b"\n"
    integrity: dict[str, Json] = {
        "hash_sha256": hashlib.sha256(covered).hexdigest(),
        "size_bytes": len(covered),
        "created_at": created_at,
    }
    return parse(covered[:-2] + _INTEGRITY + dump(integrity) + b"}\n")


def parse(data: bytes) -> Snapshot:
    """The snapshot of a file's bytes.

    Raises MalformedError (not one spelling of one document), TamperedError (integrity does not
    hold), UnsupportedFormatError (a format above ours).
    """
    document = parse_file(data, limits.SNAPSHOT_BYTES - 1)
    version = document.get("format")
    if type(version) is int and version > FORMAT:
        raise UnsupportedFormatError(f"snapshot of format {version}; this program knows {FORMAT}")
    _SHAPE(document, "snapshot")
    if spelling.Instance.parse(str(document["instance_id"])).number != document["instance_number"]:
        raise MalformedError("instance_number is not the number of instance_id")
    covered = data[: data.rindex(_INTEGRITY)] + b"}\n"
    integrity = document["integrity"]
    expected = {
        "hash_sha256": hashlib.sha256(covered).hexdigest(),
        "size_bytes": len(covered),
    }
    if not isinstance(integrity, dict) or expected.items() - integrity.items():
        raise TamperedError("the snapshot's integrity member does not fit its bytes")
    return Snapshot(data, document)


def spilled_lists(document: dict[str, Json]) -> Iterator[tuple[Segment, ...]]:
    """The segments of each list that did not fit into the document."""
    for path in SPILLABLE:
        value = member_at(document, path)
        if is_spilled(value):
            yield _segments(_members(value)["list"])


def files(document: dict[str, Json], read: Callable[[Segment], bytes]) -> Iterator[StoredFile]:
    """Every stored file. `read` gives a segment's raw bytes; it is called for spilled lists only.

    Raises MalformedError or TamperedError for a spilled list that is not what a snapshot holds.
    """
    transcript = member_at(document, ("conversation_history", "transcript"))
    if transcript is not None:
        listed = unspill(document, ("conversation_history", "transcript", "segments"), read)
        yield _stored("conversation", {**_members(transcript), "segments": listed})
    for one in _items(unspill(document, ("conversation_history", "companions"), read)):
        yield _stored("companion", one)
    for part, member in _SINGLE_FILES:
        if document.get(member) is not None:
            yield _stored(part, document[member])
    for path, one in _members(unspill(document, ("loaded_files",), read)).items():
        if _members(one)["segments"] is not None:
            yield _stored("files", {"path": path, **_members(one)})
    for one in _items(unspill(document, ("git_state", "changes", "files"), read)):
        yield _stored("changes", one)


def unspill(
    document: dict[str, Json], path: tuple[str, ...], read: Callable[[Segment], bytes]
) -> Json:
    """The list or mapping at `path`, one of SPILLABLE, wherever it is kept.

    Raises MalformedError, TamperedError: what is kept outside is not what the snapshot names.
    """
    value = member_at(document, path)
    if not is_spilled(value):
        return value
    named = _members(value)
    parts = _segments(named["list"])
    if sum(one.bytes for one in parts) > limits.SPILLED_LIST_BYTES:
        raise MalformedError("a list kept outside the snapshot is too long")
    whole = parse_canonical(b"".join(map(read, parts)), limits.SPILLED_LIST_BYTES)
    SPILLABLE[path](whole, path[-1])
    if not isinstance(whole, list | dict) or len(whole) != named["count"]:
        raise TamperedError("a list kept outside the snapshot is not the one it names")
    return whole


def _stored(part: str, value: Json) -> StoredFile:
    entry = _members(value)
    size = entry["size" if part == "files" else "bytes"]
    root, sha256 = entry.get("root"), entry.get("sha256")
    return StoredFile(
        part,
        entry["path"],
        int(str(size)),
        _segments(entry["segments"]),
        None if root is None else str(root),
        None if sha256 is None else str(sha256),
    )


def _segments(value: Json) -> tuple[Segment, ...]:
    return tuple(Segment.from_json(one) for one in _items(value))


def member_at(document: dict[str, Json], path: tuple[str, ...]) -> Json:
    """The member at the end of `path`, or None."""
    value: Json = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _members(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise MalformedError("a member of the snapshot is not an object")
    return value


def _items(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise MalformedError("a member of the snapshot is not a list")
    return value


def check_file(stored: StoredFile) -> str:
    """What is wrong with a stored file's arithmetic, or nothing: its size and its root."""
    if sum(one.bytes for one in stored.segments) != stored.bytes:
        return f"the size of {stored.path!r} is not that of its segments"
    if stored.root is not None and segments.root_of(stored.segments) != stored.root:
        return f"the root of {stored.path!r} does not fit its segments"
    return ""
