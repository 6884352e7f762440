"""The lines of a saved transcript, and what each needs so that it cannot brick a new session.

Claude Code reads its own file with a strict parser, line by line. What such a parser, or the API
behind it, refuses is put right here, in the copy that is brought back and nowhere else; every other
byte stays as it was saved.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import TYPE_CHECKING, NoReturn

from pydantic_core import from_json

from savepoint.capture.agents import claude_lines
from savepoint.core import limits
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.capture.agents.claude_facts import Record

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_VALUE = re.compile(rb"\s*+:\s*+(\"(?:[^\"\\]|\\.)*+\"|[a-z]++)")
_CALL = re.compile(rb'"tool_use_id":"([^"\\]++)"')


class Line(NamedTuple):
    """A line of the file. Of one above RESTORE_LINE_BYTES only its two ends are held."""

    offset: int  # in the file, bytes
    length: int  # without its LF
    data: bytes
    ended: bool  # by an LF

    @property
    def is_long(self) -> bool:
        """Are only its ends here?"""
        return self.length > limits.RESTORE_LINE_BYTES


class Edit(NamedTuple):
    """Bytes of the file that the restored copy has otherwise."""

    offset: int
    length: int
    data: bytes


class Told(NamedTuple):
    """What a line holds, and what is put right in it."""

    records: list[Record]
    edits: list[Edit]
    repair: str  # what kind of repair that is; empty: none


class Cutter:
    """Takes a file in pieces and gives its lines, in bounded memory."""

    def __init__(self) -> None:
        self._held = bytearray()  # of the line that has not ended; of a long one, its two ends
        self._length = 0  # of that line
        self._offset = 0  # where it begins

    def cut(self, piece: bytes) -> Iterator[Line]:
        """The lines that end in the next piece."""
        *ended, rest = piece.split(b"\n")
        offset = self._offset
        for data in ended:
            length = self._length + len(data)
            if self._length or length > limits.RESTORE_LINE_BYTES:
                data = self._whole(data, length)  # noqa: PLW2901  # with what was held of it
            yield Line(offset, length, data, True)  # noqa: FBT003  # each line of 100 MB
            offset += length + 1
        self._offset = offset
        self._hold(rest)
        self._length += len(rest)

    def rest(self) -> Iterator[Line]:
        """The line that has no end, if there is one."""
        if self._length:
            length = self._length
            yield Line(self._offset, length, self._whole(b"", length), ended=False)

    def _hold(self, more: bytes) -> None:
        self._held += more
        if len(self._held) > 2 * limits.RESTORE_LINE_BYTES:
            self._held[:] = claude_lines.ends(bytes(self._held))

    def _whole(self, more: bytes, length: int) -> bytes:
        self._hold(more)
        data = bytes(self._held)
        self._held.clear()
        self._length = 0
        return data if length <= limits.RESTORE_LINE_BYTES else claude_lines.ends(data)


def lines(pieces: Iterable[bytes]) -> Iterator[Line]:
    """The lines of a file that comes in pieces."""
    cutter = Cutter()
    for piece in pieces:
        yield from cutter.cut(piece)
    yield from cutter.rest()


def tell(line: Line) -> Told:
    """Read a line as the client would, else as it was meant."""
    if line.is_long:
        return _long(line)
    record = plain(line.data)
    if record is not None:
        return Told([record], [], "")
    blank = not line.data.strip(b" \t\r")
    if blank:
        return Told([], [], "")
    try:
        value = _STRICT.decode(line.data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _loose(line)
    if not isinstance(value, dict):
        return _dropped(line)
    edits = _surrogates(line)
    return Told([value], edits, "lone surrogates" if edits else "")


def plain(data: bytes) -> Record | None:
    """The record of a line that needs nothing, as most are; None: to be looked at again.

    jiter takes less than the strict parser of `tell` (no lone surrogate, no byte that is not UTF-8)
    and nothing more, in under half its time.
    """
    try:
        value = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _loose(line: Line) -> Told:
    """Several records on a line, or control characters in its strings: each gets a line that a
    strict parser takes. What is no record goes.
    """
    found, whole = claude_lines.objects(line.data)
    if not whole:
        return _dropped(line)
    try:
        spelled = [json.dumps(one, allow_nan=False).encode() for one in found]
    except (ValueError, RecursionError):
        return _dropped(line)
    clean = b"\n".join(_without_surrogates(one) for one in spelled)
    return Told(found, [Edit(line.offset, line.length, clean)], "records spelled anew")


def _dropped(line: Line) -> Told:
    """No client reads it, and an older one stops there."""
    length = line.length + line.ended
    return Told([], [Edit(line.offset, length, b"")], "lines that are no records")


def _long(line: Line) -> Told:
    """A record that is longer than any request may be: in its place one that says so, under its id,
    so that the conversation still hangs together.
    """
    kind, session = claude_lines.tell(line.data)
    known = {name: claude_lines.member(line.data, name) for name in ("uuid", "parentUuid")}
    if kind not in ("user", "assistant") or known["uuid"] is None:
        return _dropped(line)._replace(repair="oversized records")
    text = f"[a record of {line.length} bytes is left out here; the savepoint has it whole]"
    record: Record = {
        "parentUuid": known["parentUuid"],
        "isSidechain": b'"isSidechain":true' in line.data,
        "sessionId": session,
        "type": kind,
        "message": {"role": kind, "content": _content(line, text)},
        "uuid": known["uuid"],
        "timestamp": claude_lines.member(line.data, "timestamp"),
    }
    edit = Edit(line.offset, line.length, json.dumps(record).encode())
    return Told([record], [edit], "oversized records")


def _content(line: Line, text: str) -> object:
    """The result of a tool stays one: without it, the API refuses the call that it answers."""
    call = _CALL.search(line.data)
    if call is None:
        return [{"type": "text", "text": text}]
    answered = call[1].decode("utf-8", "replace")
    return [{"type": "tool_result", "tool_use_id": answered, "content": text}]


def _surrogates(line: Line) -> list[Edit]:
    """Halves of a character that stand alone: the API refuses the whole conversation for one."""
    if b"\\u" not in line.data or not _SURROGATE.search(line.data):
        return []
    return [Edit(line.offset + at, 6, rb"\ufffd") for at in _lone(line.data)]


def _without_surrogates(data: bytes) -> bytes:
    clean = bytearray(data)
    for at in _lone(data):
        clean[at : at + 6] = rb"\ufffd"
    return bytes(clean)


def _lone(data: bytes) -> Iterator[int]:
    """Where an escaped surrogate stands that has no other half."""
    high = -1  # where the last one began that may still be completed
    for found in _ESCAPE.finditer(data):
        code = int(found[1], 16) if found[1] else 0
        is_low = 0xDC00 <= code <= 0xDFFF
        if is_low and high >= 0 and found.start() == high + 6:
            high = -1
            continue
        if high >= 0:
            yield high
        high = found.start() if 0xD800 <= code <= 0xDBFF else -1
        if is_low:
            yield found.start()
    if high >= 0:
        yield high


def member_span(data: bytes, name: str) -> tuple[int, int] | None:
    """Where the value of a member at the top of a line's object begins and ends, if that is a
    string or a word.
    """
    depth, wanted = 0, b'"%b"' % name.encode()
    for token in _TOKEN.finditer(data):
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and text == wanted:
            value = _VALUE.match(data, token.end())
            if value is not None:
                return value.span(1)
    return None


def edited(pieces: Iterable[bytes], edits: Iterable[Edit], size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file with these edits, which are in order and apart."""
    waiting, position, skipped = deque(edits), 0, 0
    for piece in _first(pieces, size):
        end, at = position + len(piece), max(position, skipped)
        while waiting and waiting[0].offset < end:
            one = waiting.popleft()
            yield piece[at - position : one.offset - position]
            yield one.data
            skipped = one.offset + one.length  # perhaps in a later piece
            at = skipped
        yield piece[at - position :]
        position = end


def _first(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        if size <= 0:
            return
        yield piece[:size]
        size -= len(piece)


def _refuse(_: str) -> NoReturn:
    raise ValueError("no JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
