"""How a transcript line of Claude Code is told apart without parsing it.

To parse every line of 100 MB costs 330 ms, six times hashing them, and to look into it as much
again. But in valid JSON a quote inside a string is escaped, so `"type":"` in the raw bytes is a
real key; and where no bracket at all stands between it and an end of the line, its depth is one:

    {"parentUuid":"…","cwd":"…","type":"user","message":{…            up to a bracket: the *head*
    …},"requestId":"…","type":"assistant","uuid":"…","timestamp":"…"}  after the last: the *tail*

What fits neither (blanks after colons, another order) is parsed. So what is said here of a line is
exact if the line is one JSON object; of a line that is none it may say too much, never raise.
"""

from __future__ import annotations

import json
import re

from savepoint.core import limits
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late

LINKED = b'{"parentUuid":"'
LINK_END = len(LINKED) + 36  # where the closing quote of a parent's UUID stands

Key = tuple[str | None, str | None]  # a record's `type` and `sessionId`


class Head(NamedTuple):
    """What a line starts with, up to its second bracket."""

    text: bytes  # as it stands in the line, from LINK_END on where the line starts with a UUID
    key: Key
    subtype: str | None
    opens: bytes  # key of the member that is opened next, as `"…":`; empty if none is
    half: bool  # type or session may come later


def read_head(data: bytes, start: int, stop: int, skip: int = 0) -> Head | None:
    """The head of the line data[start:stop]; its text leaves out the first `skip` bytes."""
    match = _HEAD.match(data, start, stop)
    if match is None:
        return None
    run = match[1]
    kind, session = _value(_TYPE, run), _value(_SESSION, run)
    whole = match.end() == stop
    opens = _OPENS.search(run) if match[2] == b"{" else None
    return Head(
        text=data[start + skip : match.end()],
        key=(kind, session),
        subtype=_value(_SUBTYPE, run),
        opens=opens[1] if opens else b"",
        half=(kind is None and not (whole and b'"type"' not in run))
        or (session is None and not (whole and b'"sessionId"' not in run)),
    )


def comes_again(head: Head) -> bool:
    """Will other lines start the same? Not those with a time in their head."""
    once = not head.opens or b'"timestamp"' in head.text
    return not once and len(head.text) <= limits.SCAN_STRING_CHARS


def opened_type(data: bytes, at: int, stop: int) -> str | None:
    """The `type` with which the object starts that is opened after the head at data[at]."""
    match = _OPENED_TYPE.match(data, at, stop)
    return _text(match[1]) if match else None


def read_tail(data: bytes, start: int, stop: int, key: Key) -> Key | None:
    """The key, completed by the members at the line's end; None if those do not complete it."""
    kind, session = key
    if kind is None:
        match = _tail(b'"type":"', data, start, stop)
        if match is None:
            return None
        kind = _text(match[1])
        session = session or _value(_SESSION, match[0])
    if session is None:
        match = _tail(b'"sessionId":"', data, start, stop)
        if match is None:
            return None if data.find(b'"sessionId"', start, stop) >= 0 else (kind, None)
        session = _text(match[1])
    return kind, session


def member(line: bytes, key: str) -> str | None:
    """The string at the line's top under `key`, if its head or tail has it."""
    named = re.escape(b'"%s":"' % key.encode()) + rb'((?:[^"\\]|\\.)*+)"'
    head = _HEAD.match(line)
    found = re.compile(named).search(head[1]) if head else None
    if found is None:
        at = line.rfind(b'"%s":"' % key.encode(), -limits.SCAN_TAIL_BYTES)
        found = re.compile(named + _NO_BRACKETS + rb"\}").fullmatch(line, at) if at >= 0 else None
    return string(found[1]) if found else None


def tell(line: bytes) -> Key:
    """Type and session of a line by its two ends; None what they do not show."""
    head = read_head(line, 0, len(line))
    if head is None or not head.half:
        return head.key if head else (None, None)
    return read_tail(line, 0, len(line), head.key) or head.key


def ends(line: bytes) -> bytes:
    """The two ends of a line that is too long to be kept."""
    return line[: limits.SCAN_EDGE_BYTES] + line[-limits.SCAN_EDGE_BYTES :]


def follows_message(data: bytes, start: int, at: int) -> bool:
    """Does data[at], a member of a user record's line, come after the message?

    True if only scalar members stand between it and what looks like a message's end. That decides
    it for all that the client writes: no message holds a record.
    """
    close = data.rfind(_MESSAGE_END, max(start, at - limits.SCAN_TAIL_BYTES), at)
    return close >= 0 and _BETWEEN.fullmatch(data, close + 2, at) is not None


def is_dull_result(data: bytes, at: int, stop: int) -> bool:
    """Is that value of a kind that never names a file, a todo or a task?"""
    return _DULL_RESULT.match(data, at, stop) is not None


def ends_without_todos(data: bytes, start: int, stop: int) -> bool:
    """Does the line's end show that the record's list of todos is empty?"""
    found = data.rfind(b'"todos":[]', max(start, stop - limits.SCAN_TAIL_BYTES), stop)
    return found >= 0 and _EMPTY_TODOS.fullmatch(data, found, stop) is not None


def backup_names(data: bytes, at: int, stop: int) -> list[str] | None:
    """Names of copies in the file-history record data[at:stop]; None: parse."""
    if data.find(b"\\", at, stop) >= 0:
        return None
    names = map(_text, _BACKUP_NAME.findall(data, at, stop))
    return [name for name in names if 0 < len(name) <= limits.SCAN_STRING_CHARS]


def glued(data: bytes, start: int) -> int:
    """Where the next `}{"` stands: two objects on one line, unless a string ends in `}{`."""
    match = _GLUE.search(data, start)
    return match.start() if match else len(data)


def objects(line: bytes) -> tuple[list[dict[str, object]], bool]:
    """The JSON objects of a line in order, and whether it holds nothing else.

    Tolerant as the client is not: raw control characters, bytes that are not UTF-8 (replaced), a
    byte order mark, several objects on a line. Never raises on content.
    """
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    found: list[dict[str, object]] = []
    at = _skip_blanks(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, False
        if not isinstance(value, dict):
            return found, False
        found.append(value)
        at = _skip_blanks(text, at)
    return found, bool(found)


def string(raw: bytes) -> str | None:
    """The value of a JSON string given without its quotes, clean; None if it is none."""
    if b"\\" not in raw:
        return _text(raw)
    found, whole = objects(b'{"":"' + raw + b'"}')
    return clean(found[0].get("")) if whole else None


def clean(value: object) -> str | None:
    """A string that can be written as UTF-8: a lone surrogate becomes U+FFFD; None if no string."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
    return value


def _tail(key: bytes, data: bytes, start: int, stop: int) -> re.Match[bytes] | None:
    found = data.rfind(key, max(start, stop - limits.SCAN_TAIL_BYTES), stop)
    return _TAIL.fullmatch(data, found, stop) if found >= 0 else None


def _value(key: re.Pattern[bytes], run: bytes) -> str | None:
    match = key.search(run)
    return _text(match[1]) if match else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


_NO_BRACKETS = rb"[^\[\]{}]*+"

_HEAD = late(rb"\{(" + _NO_BRACKETS + rb")([\[\]{}])")
_OPENS = late(rb'[,{]("\w++":)\Z')
_OPENED_TYPE = late(rb"\{" + _NO_BRACKETS + rb'\{"type":"([^"\\]*+)"')
_TAIL = late(rb'"\w++":"([^"\\]*+)"' + _NO_BRACKETS + rb"\}")
_TYPE = late(rb'"type":"([^"\\]*+)"')
_SUBTYPE = late(rb'"subtype":"([^"\\]*+)"')
_SESSION = late(rb'"sessionId":"([^"\\]*+)"')

_EMPTY_TODOS = late(rb'"todos":\[\](?:[^\[\]{}]++|\[[\d,]*+\])*+\}')
_MESSAGE_END = b']},"uuid":"'
_BETWEEN = late(_NO_BRACKETS)
_DULL_RESULT = late(rb'"|\[|\{"(?:stdout|mode|filenames|durationMs|status|query|bytes)":')
_BACKUP_NAME = late(rb'"backupFileName":"([^"\\]*+)"')
_GLUE = late(rb'\}\{"')
_BLANKS = late(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)

# a tool's call: id, name, and the path if that is the first of its input
TOOL_USE = late(
    rb'"type":"tool_use","id":"([^"\\]*+)","name":"([^"\\]*+)"'
    rb'(?:,"input":\{"file_path":"((?:[^"\\]|\\.)*+)")?+'
)
# the value of a `toolUseResult` that names a file: `file` if it was read, the path without quotes
FILE_RESULT = late(
    rb'\{(?:"type":"text",("file":\{)|(?:"type":"(?:create|update)",)?+)'
    rb'"filePath":"((?:[^"\\]|\\.)*+)"'
)
