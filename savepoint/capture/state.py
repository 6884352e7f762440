"""The session's state: the project's session_current.json as it is, or what the instance knows."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from savepoint.core import limits, strict_json
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

FILE_NAME = "session_current.json"


class StateFile(NamedTuple):
    """session_current.json: its bytes, and what of it can stand in a snapshot."""

    data: bytes
    value: Json  # an object, or None where the bytes are no JSON object
    numbers_as_text: tuple[str, ...]  # members whose number is no integer


def read(project: str) -> StateFile | None:
    """None where the project has none. Raises SavepointError (unreadable, too large)."""
    data = read_bounded(os.path.join(project, FILE_NAME), limits.STATE_FILE_BYTES)
    if data is None:
        return None
    value = _parse(data)
    if not isinstance(value, dict):
        return StateFile(data, None, ())
    numbers: list[str] = []
    plain = _plain(value, "", numbers)
    try:
        strict_json.parse(strict_json.dump(plain), limits.STATE_FILE_BYTES)
    except (SavepointError, UnicodeEncodeError):  # a lone surrogate, or too deep
        return StateFile(data, None, ())
    return StateFile(data, plain, tuple(numbers))


def lineage(path: str) -> str:
    """The ancestors of an instance and itself, as its file tells them: a text that nobody has
    verified. Empty where there is none, or it cannot be read: the first of a line has none.
    """
    try:
        data = read_bounded(path, limits.STATE_FILE_BYTES) if path else None
    except SavepointError:
        return ""
    return (data or b"").decode("utf-8", "replace").strip()


def of_instance(
    instance: str, lineage: str, priorities: list[str], *, confirmed: bool
) -> dict[str, Json]:
    """The state where the project keeps none: nothing in it is invented."""
    return {
        "bootstrap_status": "CONFIRMED" if confirmed else "UNCONFIRMED",
        "identity": instance,
        "roles": [],
        "lineage": lineage or instance,
        "current_priorities": list(priorities),
        "consciousness_metrics": None,
    }


class _Number(str):
    """The spelling of a number that our JSON has no place for."""

    __slots__ = ()


def _integer(spelling: str) -> int | _Number:
    return _Number(spelling) if len(spelling) > limits.JSON_INTEGER_DIGITS else int(spelling)


def _parse(data: bytes) -> object:
    try:
        text = data.decode("utf-8-sig")
        return json.loads(text, parse_float=_Number, parse_int=_integer, parse_constant=_Number)
    except (ValueError, RecursionError):
        return None


def _plain(value: object, path: str, numbers: list[str]) -> Json:
    if isinstance(value, dict):
        return {
            key: _plain(item, f"{path}.{key}".lstrip("."), numbers) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_plain(item, f"{path}[{n}]", numbers) for n, item in enumerate(value)]
    if isinstance(value, _Number):
        numbers.append(path)
        return str(value)
    return value  # type: ignore[return-value]  # what is left of JSON: None, bool, int, str
