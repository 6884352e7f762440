"""Edits of a JSON text that is not ours: what is not meant keeps its bytes, order and layout.

An added member is laid out as those beside it; a removed one takes along the comma and the blanks
that came with it. Member names that occur twice mean the last, as parsers take them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

Path = tuple[str | int, ...]  # names of members and places in arrays


class Value(NamedTuple):
    """A value and where it stands in the text."""

    start: int  # characters
    end: int
    members: tuple[Member, ...] = ()  # of an object or array
    kind: str = ""  # { or [, empty for what has no members


class Member(NamedTuple):
    """A member of an object, or an item of an array."""

    name: str | int
    start: int  # of the name, or of the item
    value: Value


def read(text: str) -> Value:
    """The one value that the text is. Raises MalformedError."""
    value = _value(text, _blank(text, 0), 0)
    if _blank(text, value.end) != len(text):
        _wrong(value.end)
    return value


def find(text: str, path: Path) -> Value | None:
    """The value at a path; None where there is none. Raises MalformedError."""
    value: Value | None = read(text)
    for name in path:
        value = value and _named(value, name)
    return value


def put(text: str, path: Path, value: Json) -> str:
    """The text with `value` at the path, in the place of what is there, or as a new last member,
    with the objects around it that are missing. Raises MalformedError, also where something else
    than an object is in the way.
    """
    holder = read(text)
    for depth, name in enumerate(path):
        if holder.kind != "{":
            _wrong(holder.start)
        found = _named(holder, name)
        if found is None:
            for outer in reversed(path[depth + 1 :]):
                value = {str(outer): value}
            return _insert(text, holder, json.dumps(name, ensure_ascii=False) + ": ", value)
        holder = found
    told = _rendered(value, _Style.of(text), _indent_at(text, holder.start))
    return text[: holder.start] + told + text[holder.end :]


def append(text: str, path: Path, item: Json) -> str:
    """The text with `item` at the end of the array at the path, which is made if it is missing.

    Raises MalformedError.
    """
    holder = find(text, path)
    if holder is None:
        return put(text, path, [item])
    if holder.kind != "[":
        _wrong(holder.start)
    return _insert(text, holder, "", item)


def remove(text: str, path: Path) -> str:
    """The text without what is at the path, which must be there. Raises MalformedError."""
    holder = find(text, path[:-1])
    gone = holder and _place(holder, path[-1])
    if holder is None or gone is None:
        raise MalformedError(f"there is nothing at {path}")
    members = holder.members
    if len(members) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if gone > 0:
        return text[: members[gone - 1].value.end] + text[members[gone].value.end :]
    return text[: members[0].start] + text[members[1].start :]


class _Style(NamedTuple):
    """How a text is laid out."""

    unit: str  # of indentation; empty: all on one line
    newline: str

    @classmethod
    def of(cls, text: str) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        found = re.search(r'\n([ \t]+)["\[{]', text)
        if found:
            return cls(found[1], newline)
        has_lines = "\n" in text.strip() or text.strip() == "{}"
        return cls("  " if has_lines else "", newline)


def _insert(text: str, holder: Value, before: str, value: Json) -> str:
    """A new last member, after `before`, which is its name or nothing."""
    style = _Style.of(text)
    if not holder.members:
        outer = _indent_at(text, holder.start)
        start, stop = (style.newline + outer, style.newline + outer) if style.unit else ("", "")
        told = before + _rendered(value, style, outer + style.unit)
        inside = f"{start}{style.unit}{told}{stop}"
        return text[: holder.start + 1] + inside + text[holder.end - 1 :]
    last = holder.members[-1]
    blank = text[: last.start]
    blank = blank[len(blank.rstrip(" \t\r\n")) :]
    if len(holder.members) == 1 and not blank:
        blank = " "
    indent = blank.rpartition("\n")[2] if "\n" in blank else None
    told = before + _rendered(value, style if indent is not None else _ONE_LINE, indent or "")
    return text[: last.value.end] + "," + blank + told + text[last.value.end :]


def _rendered(value: Json, style: _Style, indent: str) -> str:
    """`value` as it would stand on a line with that indentation."""
    if not style.unit:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=style.unit)
    return lines.replace("\n", style.newline + indent)


def _indent_at(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _named(holder: Value, name: str | int) -> Value | None:
    place = _place(holder, name)
    return None if place is None else holder.members[place].value


def _place(holder: Value, name: str | int) -> int | None:
    names = [one.name for one in holder.members]
    return len(names) - 1 - names[::-1].index(name) if name in names else None


def _value(text: str, at: int, depth: int) -> Value:
    if depth > limits.JSON_DEPTH:
        raise MalformedError("is nested too deeply")
    kind = text[at : at + 1]
    if kind in {"{", "["}:
        return _holder(text, at, kind, depth)
    try:
        _, end = _SCALARS.raw_decode(text, at)
    except ValueError:
        _wrong(at)
    return Value(at, end)


def _holder(text: str, start: int, kind: str, depth: int) -> Value:
    members: list[Member] = []
    stop = "}" if kind == "{" else "]"
    at = _blank(text, start + 1)
    while text[at : at + 1] != stop or members:
        name: str | int = len(members)
        begin = at
        if kind == "{":
            key = _value(text, at, depth) if text[at : at + 1] == '"' else _wrong(at)
            name = json.loads(text[at : key.end])
            at = _blank(text, _expect(text, _blank(text, key.end), ":"))
        value = _value(text, at, depth + 1)
        members.append(Member(name, begin, value))
        at = _blank(text, value.end)
        if text[at : at + 1] == stop:
            break
        at = _blank(text, _expect(text, at, ","))
    return Value(start, at + 1, tuple(members), kind)


def _expect(text: str, at: int, mark: str) -> int:
    return at + 1 if text[at : at + 1] == mark else _wrong(at)


def _blank(text: str, at: int) -> int:
    while text[at : at + 1] in {" ", "\t", "\r", "\n"}:
        at += 1
    return at


def _wrong(at: int) -> NoReturn:
    raise MalformedError(f"is not the JSON that is needed at character {at + 1}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_SCALARS = json.JSONDecoder(parse_constant=_refuse)  # NaN and Infinity are no JSON
_ONE_LINE = _Style("", "\n")
