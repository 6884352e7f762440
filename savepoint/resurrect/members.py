"""What of a savepoint is a file, under a name that one can have here; and what is left out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import member_names, snapshot
from savepoint.core.errors import MalformedError, TamperedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json

_MODES = {"100644": 0o600, "100755": 0o700, "120000": 0o600}  # of git; a link's target is text
OUTSIDE = b"outside"  # folder for what did not lie below the project


class Member(NamedTuple):
    """A file to be brought back."""

    parts: tuple[bytes, ...]  # of its path below the folder of its kind
    stored: StoredFile
    mode: int = 0o600

    @property
    def name(self) -> str:
        """For people."""
        return b"/".join(self.parts).decode("utf-8", "backslashreplace")


class Members(NamedTuple):
    """Those of one kind, and those that are not brought back, with the reason."""

    files: list[Member]
    left_out: list[tuple[str, str]]


def loaded(files: Iterable[StoredFile]) -> Members:
    """The loaded files: by their path below the project, or in OUTSIDE.

    Raises TamperedError for a name that no save of ours gives a file of the project.
    """
    found = dict[tuple[bytes, ...], Member]()
    for one in files:
        name = snapshot.path_bytes(one.path)
        parts = _parts(name) if not name.startswith(b"/") else _outside(name)
        while parts in found and parts[0] == OUTSIDE:  # two spellings of one path
            parts = (*parts[:-1], parts[-1] + b"~")
        found[parts] = Member(parts, one)
    return _sorted(found.values())


def changed(files: Iterable[StoredFile], entries: Iterable[dict[str, Json]]) -> Members:
    """The changes: below `staged`, `working` or `untracked`. Raises TamperedError."""
    found = []
    for one, entry in zip(files, entries, strict=True):
        mode = _MODES.get(str(entry["mode"]))
        if mode is None:
            raise TamperedError(f"a change of mode {entry['mode']} is no file: {one.path!r}")
        kind = str(entry["kind"]).encode()
        found.append(Member((kind, *_parts(snapshot.path_bytes(one.path))), one, mode))
    return _sorted(found)


def companions(files: Iterable[StoredFile]) -> Members:
    """What lies beside a transcript, by its label. Raises TamperedError."""
    return _sorted(Member(_parts(snapshot.path_bytes(one.path)), one) for one in files)


def _sorted(members: Iterable[Member]) -> Members:
    """Raises TamperedError where two of them cannot both be there."""
    found, left_out = list[Member](), list[tuple[str, str]]()
    for one in members:
        reason = member_names.hazard(one.parts)
        if reason:
            left_out.append((one.name, reason))
        else:
            found.append(one)
    _check_apart(found)
    return Members(found, left_out)


def _check_apart(found: list[Member]) -> None:
    names = {one.parts for one in found}
    folders = {one.parts[:end] for one in found for end in range(1, len(one.parts))}
    both = next(iter(names & folders), None)
    if both is not None or len(names) != len(found):
        twice = both or next(one.parts for one in found if _count(found, one.parts) > 1)
        raise TamperedError(f"two files of the savepoint have one name: {b'/'.join(twice)!r}")


def _count(found: list[Member], parts: tuple[bytes, ...]) -> int:
    return sum(one.parts == parts for one in found)


def _parts(name: bytes) -> tuple[bytes, ...]:
    return member_names.parts(name, windows=os.name == "nt")


def _outside(name: bytes) -> tuple[bytes, ...]:
    """An absolute name is the agent's own spelling: `..` in it is taken for what it means."""
    plain = os.path.normpath(name).lstrip(b"/")
    return (OUTSIDE, *_parts(plain or b"_"))


def as_object(value: Json) -> dict[str, Json]:
    """A member of a snapshot that is an object. Raises MalformedError."""
    if not isinstance(value, dict):
        raise MalformedError("a member of the snapshot is not an object")
    return value


def as_list(value: Json) -> list[Json]:
    """A member of a snapshot that is a list. Raises MalformedError."""
    if not isinstance(value, list):
        raise MalformedError("a member of the snapshot is not a list")
    return value
