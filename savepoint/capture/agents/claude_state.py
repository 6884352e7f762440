"""The scan of a Claude Code transcript as JSON, for the session's cache."""

from __future__ import annotations

from savepoint.capture.agents import FileNote, Span
from savepoint.core import limits
from savepoint.core.errors import MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.agents.claude_scan import Scan
    from savepoint.core.strict_json import Json


def dump(scan: Scan) -> dict[str, Json]:
    """All members but those that only live while a piece is walked."""
    held = shorten(scan.held) if scan.unended > limits.SCAN_LINE_BYTES else scan.held
    value: dict[str, Json] = {member: getattr(scan, member) for member in _COUNTS + _NAMES}
    value["sessions"] = dict(scan.sessions)
    value["calls"] = dict(scan.calls)
    value["skills"] = list(scan.skills)
    value["backups"] = list(scan.backups)
    value["tasks"] = {key: list(task) for key, task in scan.tasks.items()}
    value["files"] = {path: list(note) for path, note in scan.files.items()}
    value["usage"] = list(scan.usage) if scan.usage else None
    value["todos"] = list(scan.todos) if scan.todos else None
    value["held"] = b"".join(held).hex()
    return value


def load(scan: Scan, value: Json) -> Scan:
    """Fill an empty scan with what `dump` wrote. Raises MalformedError for anything else."""
    members = _object(value)
    if set(members) != {*_COUNTS, *_NAMES, *_OTHERS}:
        raise MalformedError("scan of a transcript lacks members, or has unknown ones")
    for member in _COUNTS:
        setattr(scan, member, _count(members[member]))
    for member in _NAMES:
        setattr(scan, member, _string_or_none(members[member]))
    scan.sessions = {key: _count(n) for key, n in _object(members["sessions"]).items()}
    scan.calls = {key: _string(path) for key, path in _object(members["calls"]).items()}
    scan.skills = dict.fromkeys(map(_string, _array(members["skills"])))
    scan.backups = dict.fromkeys(map(_string, _array(members["backups"])))
    scan.tasks = {key: _task(task) for key, task in _object(members["tasks"]).items()}
    scan.files = {path: _note(note) for path, note in _object(members["files"]).items()}
    scan.usage = _span(members["usage"])
    scan.todos = _span(members["todos"])
    scan.held = _held(members["held"], scan.unended)
    return scan


def shorten(held: list[bytes]) -> list[bytes]:
    """The two ends of a line too long to be kept; the second with room for its line end."""
    line = b"".join(held)
    return [line[: limits.SCAN_EDGE_BYTES], line[-2 * limits.SCAN_EDGE_BYTES :]]


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise MalformedError("scan of a transcript: an object was expected")
    return value


def _array(value: Json, size: int | None = None) -> list[Json]:
    if not isinstance(value, list) or size not in {None, len(value)}:
        raise MalformedError("scan of a transcript: an array was expected")
    return value


def _count(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise MalformedError("scan of a transcript: a count was expected")
    return value


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise MalformedError("scan of a transcript: a string was expected")
    return value


def _string_or_none(value: Json) -> str | None:
    return None if value is None else _string(value)


def _task(value: Json) -> tuple[str, str]:
    subject, status = _array(value, 2)
    return _string(subject), _string(status)


def _note(value: Json) -> FileNote:
    kind, offset, length = _array(value, 3)
    return FileNote(_string(kind), _count(offset), _count(length))


def _span(value: Json) -> Span | None:
    return None if value is None else Span(*map(_count, _array(value, 2)))


def _held(value: Json, unended: int) -> list[bytes]:
    try:
        held = bytes.fromhex(_string(value))
    except ValueError as failure:
        raise MalformedError("scan of a transcript: hex was expected") from failure
    if len(held) > unended or (len(held) < unended <= limits.SCAN_LINE_BYTES):
        raise MalformedError("scan of a transcript: the held line has another length")
    return [held] if held else []


_COUNTS = (
    "size", "messages", "records", "sessions_more", "boundaries", "glued", "unparsable",
    "unended", "torn", "files_more", "nameless",
)  # fmt: skip
_NAMES = ("session_id", "version", "cwd", "model")
_OTHERS = (
    "sessions", "calls", "skills", "backups", "tasks", "files", "usage", "todos", "held",
)  # fmt: skip
