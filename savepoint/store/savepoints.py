"""Reading savepoints back: which record a selector names, its snapshot, the bytes of its files."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from savepoint.core import limits, record, snapshot
from savepoint.core.errors import (
    MalformedError,
    SavepointError,
    SelectorError,
    TamperedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.store import index
from savepoint.store.files import names_in, read_bounded
from savepoint.store.packs import read_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from savepoint.core.record import Record
    from savepoint.core.snapshot import Snapshot, StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store

_SLUG_KEY_BYTES = 4  # of an instance's key, at the end of its slug in hex
HASH_DIGITS = 8  # of a snapshot hash, at least: shorter ones meet by chance
_PREFIX = re.compile(rf"[0-9a-f]{{{HASH_DIGITS},64}}")
_MORE = "give more digits"
_FORMS = "latest, a sequence number, 8 or more digits of a snapshot hash, or @TIME"


class Records(NamedTuple):
    """What an index says, as far as it can be read; nothing of it is verified here."""

    all: list[Record]  # in file order
    unreadable: int  # whole lines that are no record of ours
    newer: frozenset[int]  # the numbers that those of them have which a newer version wrote

    @property
    def saves(self) -> list[Record]:
        """The savepoints, oldest first."""
        return [one for one in self.all if one.kind == "save"]


def records(paths: InstancePaths) -> Records:
    """All records of an instance. Raises DiskError."""
    *lines, torn = index.read(paths).split(b"\n")
    found: list[Record] = []
    newer, unreadable, seq = set[int](), 0, 0
    for line in lines:
        try:
            found.append(record.parse(line))
            seq = found[-1].seq
        except SavepointError as failure:
            seq, unreadable = seq + 1, unreadable + 1
            if isinstance(failure, UnsupportedFormatError):
                newer.add(seq)
    last = _parse(torn) if torn else None  # an append that lacks only its LF; else it never was
    return Records([*found, last] if last else found, unreadable, frozenset(newer))


def find(paths: InstancePaths, selector: str) -> Record:
    """The savepoint that `latest`, a sequence number, a hash prefix or `@TIME` names.

    Raises UsageError (no selector), SelectorError (names none, or more than one), DiskError.
    """
    wanted = criterion(selector)
    lines = reversed(index.read(paths).split(b"\n"))
    likely = (_parse(line) for line in lines if line and wanted.needle in line)
    found = wanted.choose(one for one in likely if one is not None and one.kind == "save")
    if found is None:
        raise nothing(paths, selector)
    return found


def find_elsewhere(paths: InstancePaths, selector: str) -> tuple[InstancePaths, Record] | None:
    """The savepoint that a hash names in the other instances of the store, and whose it is; None:
    the selector is no hash, or none has it. Raises as `find`, also where several have one.
    """
    if not criterion(selector).unique:
        return None
    found = []
    for one in instances(paths.store):
        try:
            found += [(one, find(one, selector))] if one != paths else []
        except SelectorError:
            continue
    if len({one.snapshot_hash for _, one in found}) > 1:
        raise SelectorError(f"{selector} names savepoints of several instances", hint=_MORE)
    return found[0] if found else None


def nothing(paths: InstancePaths, selector: str) -> SelectorError:
    """What to say where a selector names no savepoint."""
    there = told(others(paths))
    if selector == "latest":
        hint = f"in this store there are {there}" if there else "`savepoint create` makes one"
        return SelectorError(f"{paths.slug} has no savepoint yet", hint=hint)
    hint = f"`savepoint list` shows what there is; there are also {there}" if there else ""
    if selector.isdigit() and len(selector) >= HASH_DIGITS:
        hint = "if these are digits of a hash, write sha256: before them"
    return SelectorError(f"no savepoint of {paths.slug} answers to {selector}", hint=hint)


def open_snapshot(paths: InstancePaths, one: Record) -> Snapshot:
    """The snapshot of a savepoint, as it was signed. Raises TamperedError, MalformedError,
    UnsupportedFormatError, DiskError.
    """
    if not one.signature_holds():
        raise TamperedError(f"the signature of record {one.seq} does not hold")
    path = os.path.join(paths.path, one.snapshot_file)
    data = read_bounded(path, limits.SNAPSHOT_BYTES)
    if data is None:
        raise TamperedError(f"snapshot {path} is missing")
    if hashlib.sha256(data).hexdigest() != one.snapshot_hash:
        raise TamperedError(f"snapshot {path} has another SHA-256 than was signed")
    return snapshot.parse(data)


def files(store: Store, document: dict[str, Json]) -> list[StoredFile]:
    """Every file that a snapshot holds. Raises TamperedError, MalformedError, DiskError."""
    return list(snapshot.files(document, lambda one: read_segment(store, one)))


def listed(store: Store, document: dict[str, Json], path: tuple[str, ...]) -> Json:
    """The list or mapping at `path`, one of snapshot.SPILLABLE, wherever it is kept."""
    return snapshot.unspill(document, path, lambda one: read_segment(store, one))


def content(store: Store, file: StoredFile) -> Iterator[bytes]:
    """The bytes of a stored file, each segment checked before it is given out.

    Raises TamperedError, DiskError.
    """
    for segment in file.segments:
        yield read_segment(store, segment)


def instances(store: Store) -> list[InstancePaths]:
    """All instances of a store, by slug. Raises DiskError."""
    listed = names_in(store.instances)
    found = [store.instance(name) for name in listed if not name.startswith(".")]
    return [one for one in found if os.path.isfile(one.index_file)]


def instance_named(store: Store, name: str) -> InstancePaths:
    """The instance of that slug, or of that id (`Gabriel #215`). Where no record tells the id, as
    the slug tells it: an instance whose index is damaged must be found to be called so. Raises
    SelectorError.
    """
    known = {one: name_of(one) for one in instances(store)}
    found = [one for one, own in known.items() if name in (one.slug, own)]
    found = found or [one for one, own in known.items() if not own and is_named(one.slug, name)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{own} ({one.slug})" if own else one.slug for one, own in known.items())
    count = "no instance" if not found else "more than one instance"
    away = [one for one in absent(store) if not found and is_named(one, name)]
    if away:
        hint = f"its key is here: `savepoint resurrect --instance {away[0]}` asks the remote for it"
        raise SelectorError(f"this store has no instance {name!r} yet", hint=hint)
    raise SelectorError(f"this store has {count} {name!r}", hint=f"it has: {there or 'none'}")


def absent(store: Store) -> list[str]:
    """The slugs of instances whose keys are here, and whose records are not: `bootstrap` leaves
    them at the remote. Raises KeyFileError, DiskError.
    """
    from savepoint.store.keys import keyring

    here = {one.slug for one in instances(store)}
    return sorted(keyring.slugs(store) - here) if here else []


def is_named(slug: str, name: str) -> bool:
    """Is that its slug, or can an instance of that name have it, whatever its key is?"""
    if slug == name:
        return True
    try:
        wanted = Instance.parse(name).slug(bytes(_SLUG_KEY_BYTES))
    except MalformedError:
        return False
    digits = 2 * _SLUG_KEY_BYTES
    return slug[:-digits] == wanted[:-digits]


def others(paths: InstancePaths) -> dict[InstancePaths, int]:
    """The other instances of the store that have savepoints, and how many. An index that cannot be
    read has none that can be named. Raises DiskError.
    """
    found = {}
    for one in instances(paths.store):
        count = len(records(one).saves) if one != paths else 0
        if count:
            found[one] = count
    return found


def told(counts: dict[InstancePaths, int]) -> str:
    """`3 of Gabriel #215 (--instance gabriel-215-198c90e9), …`; empty where there are none."""
    return ", ".join(
        f"{count} of {name_of(one) or one.slug} (--instance {one.slug})"
        for one, count in counts.items()
    )


def name_of(paths: InstancePaths) -> str:
    """`NAME #N` of an instance; empty where its index does not tell."""
    try:
        return index.instance(paths)
    except SavepointError:
        return ""


class Criterion(NamedTuple):
    """What a selector asks for."""

    selector: str
    needle: bytes  # stands in the line of every record that fits: most lines need no parsing
    fits: Callable[[Record], bool]
    unique: bool  # a second record that fits makes it ambiguous

    def choose(self, newest_first: Iterable[Record]) -> Record | None:
        """The one that is meant, or None. Raises SelectorError if it could be several."""
        fitting = (one for one in newest_first if self.fits(one))
        found = next(fitting, None)
        if found is None or not self.unique:
            return found
        if any(other.snapshot_hash != found.snapshot_hash for other in fitting):
            raise SelectorError(f"{self.selector} names more than one savepoint", hint=_MORE)
        return found


def criterion(selector: str) -> Criterion:
    """Raises UsageError for what is no selector."""
    if selector == "latest":
        return Criterion(selector, b"", lambda _: True, unique=False)
    if selector.isascii() and selector.isdigit():
        number = selector.lstrip("0")
        needle = f'"seq":{number},'.encode()
        return Criterion(selector, needle, lambda one: str(one.seq) == number, unique=False)
    if selector.startswith("@"):
        at = moment(selector[1:], "@")
        return Criterion(selector, b"", lambda one: one.timestamp <= at, unique=False)
    prefix = selector.removeprefix("sha256:")
    if not _PREFIX.fullmatch(prefix):
        is_upper = _PREFIX.fullmatch(prefix.lower())
        forms = "hashes are spelled in lower case" if is_upper else f"a selector is {_FORMS}"
        raise UsageError(f"{selector!r} is no selector", hint=forms)
    return Criterion(
        selector,
        prefix.encode(),
        lambda one: one.snapshot_hash.startswith(prefix),
        unique=True,
    )


def moment(text: str, mark: str = "") -> float:
    """Unix seconds of an ISO 8601 time with its zone: without one nobody knows what is meant.
    mark: stands before it where it was given.

    Raises UsageError.
    """
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        hint = f"like {mark}2026-11-30T13:26:49Z or {mark}2026-11-30T14:26+01:00"
        raise UsageError(f"{mark}{text} is no time with a zone", hint=hint)
    return found.timestamp()


def _parse(line: bytes) -> Record | None:
    try:
        return record.parse(line)
    except SavepointError:
        return None
