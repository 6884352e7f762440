"""How a transcript line of Claude Code is told apart without parsing it.

json.loads of every line costs a second for 100 MB, more than hashing and compressing them. But in
valid JSON a quote inside a string is escaped, so `,"type":"` in the raw bytes is a real key, and
where only scalar members stand between it and an end of the line its depth is known:

    {"parentUuid":"…","cwd":"…","type":"user","message":{…            the *head*: a run of scalars
    …},"requestId":"…","type":"assistant","uuid":"…","timestamp":"…"}  the *tail*: the same, backwards

What fits neither (blanks after colons, another order) is parsed. So what is said here of a line is
exact if the line is one JSON object; of a line that is none it may say too much, never raise.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from savepoint.core import limits

LINKED = b'{"parentUuid":"'
LINK_END = len(LINKED) + 36  # where the closing quote of a parent's UUID stands


class Head(NamedTuple):
    """The scalar members that a line starts with, up to the first that opens an object or array."""

    text: bytes  # as it stands in the line, from LINK_END on where the line starts with a UUID
    kind: str | None  # the record's `type`
    subtype: str | None
    session: str | None
    opens: bytes  # key of the member that is opened next, `…":{` or `…":[` included
    whole: bool  # the record is nothing but these members


def read_head(data: bytes, start: int, stop: int, skip: int = 0) -> Head | None:
    """The head of the line data[start:stop]; its text leaves out the first `skip` bytes."""
    match = _HEAD.match(data, start, stop)
    if match is None:
        return None
    run = match[1]
    return Head(
        text=data[start + skip : match.end()],
        kind=_value(_TYPE, run),
        subtype=_value(_SUBTYPE, run),
        session=_value(_SESSION, run),
        opens=match[2] or b"",
        whole=match[2] is None and match.end() == stop - 1,
    )


def comes_again(head: Head) -> bool:
    """Will other lines start the same? Not those with a time in their head."""
    once = not head.opens or b'"timestamp"' in head.text
    return not once and len(head.text) <= limits.SCAN_STRING_CHARS


def opened_type(data: bytes, at: int, stop: int) -> str | None:
    """The `type` that the first opened member of the line at data[at] starts with."""
    match = _OPENED_TYPE.match(data, at, stop)
    return _text(match[3]) if match else None


def tail_type(
    data: bytes, start: int, stop: int, session: str | None
) -> tuple[str, str | None] | None:
    """Type and session by the scalar members at the line's end; None if no type is among them.

    The session is looked for, after the type, only if `session` is None.
    """
    match = _tail(b'"type":"', data, start, stop)
    return (_text(match[1]), session or _value(_SESSION, match[0])) if match else None


def tail_session(data: bytes, start: int, stop: int) -> str | None:
    """The `sessionId` among the scalar members at the line's end."""
    match = _tail(b'"sessionId":"', data, start, stop)
    return _text(match[1]) if match else None


def tell(line: bytes) -> tuple[str | None, str | None]:
    """Type and session of a line by its two ends; None what they do not show."""
    head = _HEAD.match(line)
    kind, session = (_value(_TYPE, head[1]), _value(_SESSION, head[1])) if head else (None, None)
    if kind is None:
        kind, session = tail_type(line, 0, len(line), session) or (None, session)
    return kind, session or tail_session(line, 0, len(line))


def ends(line: bytes) -> bytes:
    """The two ends of a line that is too long to be kept."""
    return line[: limits.SCAN_EDGE_BYTES] + line[-limits.SCAN_EDGE_BYTES :]


class Result(NamedTuple):
    """What the first `toolUseResult` of a user record's line shows of a file."""

    path: bytes  # JSON string without its quotes
    kind: str  # read, written


def read_result(data: bytes, at: int, stop: int) -> Result | None:
    """The file of the `toolUseResult` whose value starts at data[at]."""
    match = _FILE_RESULT.match(data, at, stop)
    if match is None:
        return None
    return Result(match[2], "read" if match[1] else "written")


def is_dull_result(data: bytes, at: int, stop: int) -> bool:
    """Is that value of a kind that never names a file, a todo or a task?"""
    return _DULL_RESULT.match(data, at, stop) is not None


def is_proven_result(line: bytes) -> bool:
    """Does the first `toolUseResult` of a user record's line stand at its top?

    True only if all before it has the shape that the client writes; False means: parse.
    """
    head = _HEAD.match(line)
    if head is None or head[2] != b'"message":{':
        return False
    return _TOOL_MESSAGE.match(line, head.end()) is not None


class Call(NamedTuple):
    """A `"type":"tool_use"` in a line."""

    id: str
    tool: str
    path: bytes | None  # first member of the input if it is `file_path`; without its quotes


def read_call(data: bytes, at: int, stop: int) -> Call | None:
    """The call at data[at]; None where id and name do not follow the type."""
    match = _TOOL_USE.match(data, at, stop)
    return Call(_text(match[1]), _text(match[2]), match[3]) if match else None


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
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


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


_SCALAR = rb'(?:"[^"\\]*+"|[\w.+-]++)'  # a string without escapes, a number, true, false, null
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MEMBER = rb'"\w++":' + _SCALAR

_HEAD = re.compile(rb"(\{(?:" + _MEMBER + rb'(?:,|(?=\})))*+)("\w++":[\[{])?')
_OPENED_TYPE = re.compile(_HEAD.pattern + rb'"type":"([^"\\]*+)"')
_TAIL = re.compile(rb'"\w++":"([^"\\]*+)"(?:,' + _MEMBER + rb")*+\}")
_TYPE = re.compile(rb'"type":"([^"\\]*+)"')
_SUBTYPE = re.compile(rb'"subtype":"([^"\\]*+)"')
_SESSION = re.compile(rb'"sessionId":"([^"\\]*+)"')

_TOOL_USE = re.compile(
    rb'"type":"tool_use","id":"([^"\\]*+)","name":"([^"\\]*+)"'
    rb'(?:,"input":\{"file_path":"((?:[^"\\]|\\.)*+)")?+'
)
_TOOL_MESSAGE = re.compile(
    rb'"role":"user","content":\[\{(?:"\w++":(?:' + _STRING + rb"|[\w.+-]++),?+)*+\}\]\},"
    rb"(?:" + _MEMBER + rb',)*+"toolUseResult":',
    re.DOTALL,
)
_FILE_RESULT = re.compile(
    rb'\{(?:"type":"text",("file":\{)|(?:"type":"(?:create|update)",)?+)'
    rb'"filePath":"((?:[^"\\]|\\.)*+)"'
)
_DULL_RESULT = re.compile(rb'"|\[|\{"(?:stdout|mode|filenames|durationMs|status|query|bytes)":')
_GLUE = re.compile(rb'\}\{"')
_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
