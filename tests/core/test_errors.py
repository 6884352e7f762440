"""Errors: one class, one exit code, one hint; the table in the module is what the classes say."""

from __future__ import annotations

import errno
import re

import pytest

from savepoint.core import errors
from savepoint.core.errors import DiskError, SavepointError


def _classes(root: type[SavepointError] = SavepointError) -> list[type[SavepointError]]:
    return [root, *(found for one in root.__subclasses__() for found in _classes(one))]


def test_the_table_is_what_the_classes_say() -> None:
    told = re.findall(r"(?m)^[ │├└─]*(\w+Error) +(\d+)", errors.__doc__ or "")
    here = [one for one in _classes() if one.__module__ == errors.__name__]
    assert {name: int(code) for name, code in told} == {one.__name__: one.exit_code for one in here}


@pytest.mark.parametrize(
    "one",
    [one for one in _classes()[1:] if one.__module__ == errors.__name__],
    ids=lambda one: one.__name__,
)
def test_every_error_has_a_name_and_says_what_was_given(one: type[SavepointError]) -> None:
    made = one("what happened", hint="what to do")
    assert (made.message, made.hint, str(made)) == ("what happened", "what to do", "what happened")
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", made.name)
    assert one("x").hint == one.default_hint
    assert made.exit_code != 0


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "no space"), (errno.EROFS, "read-only"), (errno.ENXIO, "No such device")],
)
def test_what_the_kernel_said_is_told_with_the_path(number: int, words: str) -> None:
    failure = OSError(number, "No such device or address", "/a/file")
    assert DiskError.of(failure).message.startswith("/a/file: ")
    assert words in DiskError.of(failure).message
    assert DiskError.of(failure, "/other").message.startswith("/other: ")
    assert "permissions" in DiskError.of(PermissionError(errno.EACCES, "x")).hint
    assert "free space" in DiskError.of(OSError(errno.ENOSPC, "x")).hint
    assert "writable" in DiskError.of(OSError(errno.EROFS, "x")).hint
    assert "space" not in DiskError.of(OSError(errno.EIO, "x")).hint
    assert DiskError.of(OSError(errno.ELOOP, "x", "/l")).message.startswith("/l: is a link")
    assert DiskError.of(OSError("odd")).message
