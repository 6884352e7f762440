"""Stored bytes as members of a JSON document, in pieces: text where they are text, else base64."""

from __future__ import annotations

import binascii
import codecs
import json
from typing import TYPE_CHECKING, NoReturn

from savepoint.core import limits
from savepoint.core.strict_json import dump
from savepoint.store import savepoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.core.snapshot import StoredFile
    from savepoint.store.layout import Store


def content(store: Store, file: StoredFile) -> Iterator[bytes]:
    """The member `"content":"…"`, or `"content_b64":"…"` for what is not UTF-8."""
    if _is_text(savepoints.content(store, file)):
        yield b'"content":"'
        decoder = codecs.getincrementaldecoder("utf-8")()
        for raw in savepoints.content(store, file):
            yield dump(decoder.decode(raw))[1:-1]
    else:
        yield b'"content_b64":"'
        yield from _base64(savepoints.content(store, file))
    yield b'"'


def records(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The records of a transcript as JSON values, each as its agent spelled it. A line that is no
    JSON becomes `{"raw": text}`, or `{"raw_b64": …}` where it is not UTF-8; a line that is longer
    than EXPORT_LINE_BYTES comes in several of these, all but the last with `"continued": true`.
    """
    rest = bytearray()
    for piece in pieces:
        rest += piece
        *lines, last = rest.split(b"\n")
        rest = bytearray(last)
        for line in lines:
            yield from _values(bytes(line))
        if len(rest) > limits.EXPORT_LINE_BYTES:
            yield _raw(bytes(rest), b',"continued":true}')
            rest.clear()
    yield from _values(bytes(rest))


def _values(line: bytes) -> Iterator[bytes]:
    """The values of a line; some clients glue two records on one."""
    if not line.strip():
        return
    try:
        text = line.decode("utf-8")
        ends = list(_ends(text))
    except (ValueError, RecursionError):
        yield _raw(line)
        return
    start = 0
    for end in ends:
        yield text[start:end].strip().encode("utf-8")
        start = end


def _ends(text: str) -> Iterator[int]:
    """Where each value of the line ends. Raises ValueError: it is something else as well."""
    position = 0
    while position < len(text):
        while text[position] in _BLANK:
            position += 1
        _, position = _DECODER.raw_decode(text, position)
        yield position
        position += len(text[position:]) - len(text[position:].lstrip(_BLANK))


def _raw(line: bytes, end: bytes = b"}") -> bytes:
    try:
        return b'{"raw":' + dump(line.decode("utf-8")) + end
    except UnicodeDecodeError:
        return b'{"raw_b64":"' + binascii.b2a_base64(line, newline=False) + b'"' + end


def _is_text(pieces: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for raw in pieces:
            decoder.decode(raw)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _base64(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for raw in pieces:
        whole = rest + raw
        cut = len(whole) - len(whole) % 3  # base64 takes three bytes at a time
        rest = whole[cut:]
        yield binascii.b2a_base64(whole[:cut], newline=False)
    yield binascii.b2a_base64(rest, newline=False)


def _refuse(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


_BLANK = " \t\r"
# Numbers stay text: a record is checked here, not understood, and digits may be without end.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str)
