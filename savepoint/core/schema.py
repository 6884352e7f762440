"""Exact shapes of JSON documents: which members, in which order, of which type."""

from __future__ import annotations

from savepoint.core import spelling
from savepoint.core.errors import MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from savepoint.core.strict_json import Json

Check: TypeAlias = "Callable[[Json, str], None]"  # (value, where) → None, or MalformedError


def anything(value: Json, where: str) -> None:
    """Any value: the shape is somebody else's."""


def text(value: Json, where: str) -> None:
    """A string."""
    if not isinstance(value, str):
        raise MalformedError(f"{where} is not a string")


def truth(value: Json, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise MalformedError(f"{where} is not true or false")


def count(value: Json, where: str) -> None:
    """A whole number from 0; a bool is none."""
    if type(value) is not int or value < 0:
        raise MalformedError(f"{where} is not a whole number")


def positive(value: Json, where: str) -> None:
    """A whole number from 1."""
    count(value, where)
    if value == 0:
        raise MalformedError(f"{where} is 0")


def spelled(parse: Callable[[str], object]) -> Check:
    """A string that `parse` accepts."""

    def check(value: Json, where: str) -> None:
        if not isinstance(value, str):
            raise MalformedError(f"{where} is not a string")
        try:
            parse(value)
        except MalformedError as failure:
            raise MalformedError(f"{where}: {failure.message}") from failure

    return check


def hexadecimal(size: int) -> Check:
    """Hex of exactly so many bytes."""
    return spelled(lambda text: spelling.hex_bytes(text, size))


def one_of(*values: Json) -> Check:
    """One of the values listed."""

    def check(value: Json, where: str) -> None:
        if not any(value == known and type(value) is type(known) for known in values):
            raise MalformedError(f"{where} is none of {values}")

    return check


def nullable(inner: Check) -> Check:
    """null, or what `inner` accepts."""

    def check(value: Json, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def array(inner: Check) -> Check:
    """A list whose items `inner` accepts."""

    def check(value: Json, where: str) -> None:
        if not isinstance(value, list):
            raise MalformedError(f"{where} is not a list")
        for number, item in enumerate(value):
            inner(item, f"{where}[{number}]")

    return check


def mapping(inner: Check) -> Check:
    """An object with any keys whose values `inner` accepts."""

    def check(value: Json, where: str) -> None:
        if not isinstance(value, dict):
            raise MalformedError(f"{where} is not an object")
        for key, item in value.items():
            inner(item, f"{where}.{key}")

    return check


def members(known: Mapping[str, Check], optional: frozenset[str] = frozenset()) -> Check:
    """An object with exactly these members in exactly this order; `optional` ones may be absent."""

    def check(value: Json, where: str) -> None:
        if not isinstance(value, dict):
            raise MalformedError(f"{where} is not an object")
        expected = [name for name in known if name in value or name not in optional]
        if list(value) != expected:
            raise MalformedError(f"{where} has other members, or another order, than {expected}")
        for name, item in value.items():
            known[name](item, f"{where}.{name}")

    return check
