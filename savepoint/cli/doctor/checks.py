"""One finding of `doctor`, and how a check becomes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from savepoint.core.errors import SavepointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json


class Check(NamedTuple):
    """What was looked at, and what is to be done about it."""

    name: str
    result: str  # ok | warn | fail
    detail: str
    todo: str = ""

    def to_json(self) -> Json:
        """As in `doctor --json`."""
        return dict(self._asdict())


def good(name: str, detail: str) -> Check:
    """Nothing to do."""
    return Check(name, "ok", detail)


def warn(name: str, detail: str, todo: str) -> Check:
    """It works, and something should be done."""
    return Check(name, "warn", detail, todo)


def fail(name: str, detail: str, todo: str) -> Check:
    """It does not work until something is done."""
    return Check(name, "fail", detail, todo)


def tried(name: str, check: Callable[[], Check]) -> Check:
    """What the check finds, or the error that it met."""
    try:
        return check()
    except SavepointError as failure:
        return fail(name, failure.message, failure.hint)
