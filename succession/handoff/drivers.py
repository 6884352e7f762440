"""Bindings: what names a thread elsewhere, set and read back. What the read-back does not show did
not move.

registry   a file with a row a line: key, TAB, value
schedule   a cron-like file: five times (or @daily, …), value, ` # ` key
upstream   a branch of the project's repository, and what it tracks
command    a pair of commands from the owner's own config
none       cannot be bound, for a reason
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Protocol

from savepoint.core import limits
from savepoint.core.errors import HandoffError, MalformedError, SavepointError
from savepoint.store import durable
from savepoint.store.files import read_bounded
from succession.handoff import texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from succession.handoff.ledger import Binding, Thread

_PLACE = "name a text file of the project: --place FILE"
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_TIMES = r"(?:@[a-z]+|(?:[^\s#]+[ \t]+){4}[^\s#]+)"


class Driver(Protocol):
    """Sets and reads one kind of binding. Both raise SavepointError, also when time is up."""

    def read(self, place: str, key: str) -> str | None:
        """What stands there now; None where there is no such row."""

    def write(self, place: str, key: str, value: str) -> None:
        """Put `value` there."""


class _File:
    """A row of a text file of the project. All else in it keeps its bytes, and it its mode."""

    def __init__(self, project: str, pattern: str) -> None:
        self._project = os.path.realpath(project)
        self._pattern = pattern  # what stands before the value, the value, what stands behind it

    def read(self, place: str, key: str) -> str | None:
        found = self._found(self._text(self._path(place)), key)
        return found[2] if found else None

    def write(self, place: str, key: str, value: str) -> None:
        path = self._path(place)
        text = self._text(path)
        found = self._found(text, key)
        if found is None:
            raise HandoffError(f"{path} has no row {key}")
        data = text[: found.start(2)] + value + text[found.end(2) :]
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if not mode & _WRITABLE:  # a rename asks only its folder, and root is asked nothing
            raise HandoffError(f"{path} is read-only")
        durable.replace(path, data.encode("utf-8", "surrogateescape"), mode=mode)

    def _path(self, place: str) -> str:
        """Its real one. Raises HandoffError where that is not in the project."""
        path = os.path.realpath(os.path.join(self._project, place))
        if os.path.commonpath((path, self._project)) != self._project:
            raise HandoffError(f"{path} is outside the project", hint=_PLACE)
        return path

    def _text(self, path: str) -> str:
        try:
            data = read_bounded(path, limits.HANDOFF_BOUND_BYTES)
        except MalformedError as failure:  # it is the owner's, and none of ours that is damaged
            raise HandoffError(failure.message, hint=_PLACE) from None
        if data is None:
            raise HandoffError(f"{path} is not there", hint=_PLACE)
        return data.decode("utf-8", "surrogateescape")

    def _found(self, text: str, key: str) -> re.Match[str] | None:
        """The one row with that key. Raises HandoffError where there are several."""
        found = list(re.finditer(self._pattern.replace("KEY", re.escape(key)), text, re.MULTILINE))
        if len(found) > 1:
            raise HandoffError(f"{len(found)} rows have the key {key}")
        return found[0] if found else None


class _Unbindable:
    """For what nothing can be done about; its reason was told when it was written down."""

    def read(self, place: str, key: str) -> str | None:
        raise HandoffError(f"{place}{key} cannot be bound")

    def write(self, place: str, key: str, value: str) -> None:
        raise HandoffError(f"{place}{key} cannot be bound to {value}")


def all_of(project: str, upstream: Driver, command: Driver) -> dict[str, Driver]:
    """By name. upstream, command: of the caller, who may run git and commands."""
    return {
        "registry": _File(project, r"^(KEY\t)([^\r\n]*)"),
        "schedule": _File(project, rf"^([ \t]*{_TIMES}[ \t]+)(\S[^\r\n]*?)([ \t]+# KEY)[ \t]*\r?$"),
        "upstream": upstream,
        "command": command,
        "none": _Unbindable(),
    }


def move(
    drivers: Mapping[str, Driver], binding: Binding, held: Collection[str], value: str
) -> tuple[str | None, str]:
    """Re-point a binding: what was read back, or None and the reason why it did not move.

    held: what its last holder may have put there. Anything else is somebody's, and is left; but the
    new value may stand there already, set by a run that died.
    """
    if binding.driver == "none":
        return None, binding.reason
    try:
        return _re_pointed(drivers[binding.driver], binding, held, value), ""
    except SavepointError as failure:
        return None, failure.message


def _re_pointed(driver: Driver, binding: Binding, held: Collection[str], value: str) -> str:
    if texts.size(value) > limits.HANDOFF_TEXT_BYTES:
        most = limits.HANDOFF_TEXT_BYTES
        raise HandoffError(f"its value for the successor has more than {most} bytes")
    before = driver.read(binding.place, binding.key)
    if before == value:
        return value
    if before not in held:
        wanted = " or ".join(map(repr, held))
        raise HandoffError(f"it was changed meanwhile: it says {_shown(before)}, not {wanted}")
    try:
        driver.write(binding.place, binding.key, value)
        found = driver.read(binding.place, binding.key)
    except SavepointError as failure:
        raise HandoffError(f"it may have moved, or not: {failure.message}") from None
    if found != value:
        raise HandoffError(f"the read-back says {_shown(found)}, not {value!r}")
    return value


def refuse_unlike(drivers: Mapping[str, Driver], binding: Binding, thread: Thread) -> None:
    """A binding is written down as it is. Raises HandoffError where it names something else, and
    what reading it raises.
    """
    if "\n" in binding.value or "\r" in binding.value:
        raise HandoffError("a value has one line")
    expected = binding.value_for(thread)
    if texts.size(expected) > limits.HANDOFF_TEXT_BYTES:
        raise HandoffError(f"its value has more than {limits.HANDOFF_TEXT_BYTES} bytes")
    found = drivers[binding.driver].read(binding.place, binding.key)
    if found != expected:
        raise HandoffError(
            f"{binding.place} says {_shown(found)}, not {expected!r}",
            hint="give its value as it is; what cannot be bound has --unbindable REASON",
        )


def _shown(found: str | None) -> str:
    return "nothing" if found is None else repr(found[: limits.LISTED * 4])
