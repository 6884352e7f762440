"""Strict JSON: one value, one spelling, within limits.

The standard library keeps the last of two equal keys, takes NaN, lone surrogates, floats, endless
digits and any depth. A second spelling of a signed value is a hole (age tests it as malleability),
so `parse` refuses all of these, and `parse_canonical` also demands that the bytes be exactly those
that `dump` would write.
"""

from __future__ import annotations

import json
import re

from savepoint.core import limits
from savepoint.core.errors import MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"


def dump(value: Json) -> bytes:
    """The one spelling of `value`: compact UTF-8, members in the order given, no LF at the end.

    Raises MalformedError for a lone surrogate, which UTF-8 cannot spell.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as failure:
        raise MalformedError("JSON has a lone surrogate") from failure


def parse(data: bytes, limit: int = limits.SMALL_DOCUMENT_BYTES) -> Json:
    """The value of a JSON document of at most `limit` bytes.

    Raises MalformedError: larger, not UTF-8, deeper than JSON_DEPTH, a key twice in an object, a
    number that is not an integer of 64 bits, NaN, a lone surrogate, anything before or after the
    value.
    """
    if len(data) > limit:
        raise MalformedError(f"JSON of {len(data)} bytes where at most {limit} are allowed")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise MalformedError(f"JSON is not UTF-8 at byte {failure.start}") from failure
    check_depth(data)
    try:
        value: Json = _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError) as failure:
        raise MalformedError(f"not JSON: {failure}") from failure
    if "\\u" in text:  # only an escape can make a surrogate: the bytes were valid UTF-8
        dump(value)
    return value


def parse_canonical(data: bytes, limit: int = limits.SMALL_DOCUMENT_BYTES) -> Json:
    """`parse`, and the bytes are the ones that `dump` writes: no second spelling is accepted."""
    value = parse(data, limit)
    if dump(value) != data:
        raise MalformedError("JSON is not in its one spelling (blanks, escapes or digits differ)")
    return value


def parse_file(data: bytes, limit: int = limits.SMALL_DOCUMENT_BYTES) -> dict[str, Json]:
    """The members of a file that is one object in its one spelling of at most `limit` bytes, then
    an LF. Raises MalformedError.
    """
    if not data.endswith(b"}\n"):
        raise MalformedError("not one JSON object and an LF")
    value = parse_canonical(data[:-1], limit)
    assert isinstance(value, dict)  # noqa: S101  # its last byte says so; for the type checker
    return value


def check_depth(data: bytes) -> None:
    """Refuse deep nesting before the recursive parser sees it: what is left without strings and
    without all that is no bracket is walked (a fault of deep input is a crash in other parsers).

    A string without an end takes all the rest, where the parser stops as well. Were it no match,
    the search would begin again at every later quote: 160 KB of quotes and backslashes took 71 s.
    """
    if data.count(b"[") + data.count(b"{") <= limits.JSON_DEPTH:
        return
    depth = 0
    for byte in _STRING.sub(b"", data).translate(None, _NO_BRACKET):
        depth += 1 if byte in b"[{" else -1
        if depth > limits.JSON_DEPTH:
            raise MalformedError(f"JSON nested deeper than {limits.JSON_DEPTH}")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise MalformedError("JSON has a key twice in one object")
    return value


def _integer(digits: str) -> int:
    # The length first: int() of a million digits takes seconds.
    if len(digits) > len(str(limits.JSON_INTEGER_LEAST)) or digits == "-0":
        raise MalformedError("JSON has an integer that is too long, or -0")
    value = int(digits)
    if not limits.JSON_INTEGER_LEAST <= value <= limits.JSON_INTEGER_MOST:
        raise MalformedError("JSON has an integer that does not fit 64 bits")
    return value


def _refuse_number(spelling: str) -> NoReturn:
    raise MalformedError(f"JSON has a number that is not an integer: {spelling[:20]}")


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_refuse_number,
    parse_constant=_refuse_number,
)


def objects(value: Json) -> list[dict[str, Json]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
