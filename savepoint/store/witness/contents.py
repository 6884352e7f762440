"""What snapshots refer to, checked pack by pack: each pack is read once, and serves all of them.

Shares nothing with the code that writes packs, so that one mistake is not made twice. Memory is
bounded by two packs and their segments, whatever the number of savepoints.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from threading import Lock
from typing import TYPE_CHECKING

from savepoint.core import limits, snapshot, verify_stored
from savepoint.core.errors import MalformedError, TamperedError, UnverifiableError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Lack, passed, tampered, unchecked
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import Snapshot, StoredFile
    from savepoint.store.layout import Store

    Progress = Callable[[int, int], None]  # bytes read, bytes known to be needed

PACK_FILE_BYTES = limits.PACK_BYTES + limits.FRAME_BYTES  # the longest pack
_READERS = 2  # packs in memory at once
_SHOWN = 8  # findings of one rule that a savepoint lists; the rest are counted


class Contents(NamedTuple):
    """What one snapshot refers to, by numbers that its PackReader gave."""

    segments: array[int]
    wholes: array[int]
    faults: tuple[Finding, ...]  # of its lists and their arithmetic


class PackReader:
    """Takes the snapshots to check, then reads their packs. `progress` is called with each pack."""

    def __init__(self, store: Store, progress: Progress | None = None) -> None:
        self._store = store
        self._progress = progress
        self._segments: list[Segment] = []
        self._numbers: dict[Segment, int] = {}
        self._waiting: dict[str, list[int]] = {}  # pack → its segments that were not opened yet
        self._wholes: list[_Whole] = []
        self._whole_numbers: dict[tuple[str, tuple[Segment, ...]], int] = {}
        self._parts: dict[int, list[_Whole]] = {}  # segment → files that it is a part of
        self._packs: dict[str, Finding] = {}  # those that were read
        self._lost: set[str] = set()  # those of them that have no bytes
        self._faults: dict[int, str] = {}  # segment → what is wrong with it
        self._last: tuple[str, bytes | Lack] = ("", b"")
        self._bytes = 0
        self._lock = Lock()  # over `_bytes` and the parts of whole files

    @property
    def names(self) -> set[str]:
        """The packs that the snapshots name."""
        return {one.pack for one in self._segments}

    def add(self, found: Snapshot, where: str) -> Contents:
        """Note what a snapshot refers to. Lists kept outside it are read, with their packs, at
        once: add the newest snapshot first, since a pack serves its own savepoint and later ones.
        """
        segments, wholes, faults = set[int](), set[int](), list[Finding]()
        for listed in snapshot.spilled_lists(found.document):
            segments.update(map(self._number, listed))
        try:
            for file in snapshot.files(found.document, self._read):
                segments.update(map(self._number, file.segments))
                if fault := verify_stored.stored_file(file, where):
                    faults.append(fault)
                if verify_stored.has_hash_of_its_own(file):
                    wholes.add(self._whole(file, where))
        except MalformedError as failure:
            faults.append(tampered("VERIFY-8", f"{where}: {failure.message}"))
        except UnverifiableError as failure:
            faults.append(unchecked("VERIFY-8", f"{where}: {failure.message}"))
        return Contents(array("Q", segments), array("Q", wholes), _first(faults, where))

    def run(self) -> None:
        """Read every pack that was not read yet, two at a time; then hash what lay in no order.

        Hashing and opening frames happen without the interpreter's lock, so two are twice as fast.
        """
        from concurrent.futures import ThreadPoolExecutor

        sizes = {name: self._size(name) for name in self._waiting}
        total = self._bytes + sum(sizes.values())
        with ThreadPoolExecutor(_READERS) as pool:
            for _ in pool.map(self._check, sorted(sizes)):
                if self._progress:
                    self._progress(self._bytes, total)
        for one in self._wholes:
            self._finish(one)

    def findings(self, contents: Contents, where: str) -> list[Finding]:
        """Of VERIFY-7 and VERIFY-8, for the snapshot at `where`; after `run`."""
        names = sorted({self._segments[number].pack for number in contents.segments})
        packs = [self._packs[name] for name in names if self._packs[name].result != "pass"]
        faults = list(contents.faults)
        faults += [self._fault(one) for one in contents.segments if one in self._faults]
        faults += [one for number in contents.wholes for one in self._wholes[number].faults]
        lost = sum(self._segments[number].pack in self._lost for number in contents.segments)
        if lost:
            faults.append(unchecked("VERIFY-8", f"{lost} segments lie in packs that have no bytes"))
        count = len(contents.segments)
        return [
            *(_first(packs, where) or [passed("VERIFY-7", f"packs, whole: {len(names)}")]),
            *(_first(faults, where) or [passed("VERIFY-8", f"segments, as saved: {count}")]),
        ]

    def _number(self, segment: Segment) -> int:
        number = self._numbers.setdefault(segment, len(self._segments))
        if number == len(self._segments):
            self._segments.append(segment)
            self._waiting.setdefault(segment.pack, []).append(number)
        return number

    def _whole(self, file: StoredFile, where: str) -> int:
        key = (str(file.sha256), file.segments)
        number = self._whole_numbers.setdefault(key, len(self._wholes))
        if number == len(self._wholes):
            whole = _Whole(*key, f"{where}: {file.path!r}")
            self._wholes.append(whole)
            for one in set(file.segments):
                self._parts.setdefault(self._numbers[one], []).append(whole)
        return number

    def _read(self, segment: Segment) -> bytes:
        """The bytes of a part of a list. Raises TamperedError, UnverifiableError."""
        name = segment.pack
        if name != self._last[0]:
            self._last = ("", b"")  # before the next one is read: one pack in memory, not two
            self._last = (name, self._fetch(name))
        data, where = self._last[1], self._where(name)
        self._settle(name, data)
        if isinstance(data, Lack):
            failure = UnverifiableError if data.unreadable else TamperedError
            raise failure(f"{where} {data.reason}")
        return verify_stored.open_segment(segment, data, where)

    def _check(self, name: str) -> None:
        self._settle(name, self._fetch(name))

    def _fetch(self, name: str) -> bytes | Lack:
        """The bytes of a pack, judged when they are read for the first time."""
        data = evidence.read(self._store.pack(name), PACK_FILE_BYTES)
        if name not in self._packs:
            self._packs[name] = verify_stored.pack(name, data, self._where(name))
            with self._lock:
                self._bytes += 0 if isinstance(data, Lack) else len(data)
        if isinstance(data, Lack):
            self._lost.add(name)
        return data

    def _settle(self, name: str, data: bytes | Lack) -> None:
        """Open, in their order in the pack, all its segments that nobody opened yet."""
        numbers = self._waiting.pop(name, [])
        if isinstance(data, Lack):
            return
        where = self._where(name)
        for number in sorted(numbers, key=lambda one: self._segments[one].offset):
            try:
                self._open(number, data, where)
            except TamperedError as failure:
                self._faults[number] = failure.message

    def _open(self, number: int, data: bytes, where: str) -> None:
        """Check a segment; what files of several segments wait for is kept for their hashes."""
        segment, wholes = self._segments[number], self._parts.get(number)
        if not wholes:
            verify_stored.check_segment(segment, data, where)
            return
        raw = verify_stored.open_segment(segment, data, where)
        for whole in wholes:
            with self._lock:
                whole.take(segment, raw)

    def _finish(self, whole: _Whole) -> None:
        """Hash anew what did not come in its order; a file with a bad segment is known as bad."""
        bad = [self._numbers[one] in self._faults for one in whole.segments]
        if not any(bad) and self._lost.isdisjoint(one.pack for one in whole.segments):
            whole.finish(self._read)

    def _fault(self, number: int) -> Finding:
        return tampered("VERIFY-8", self._faults[number])

    def _where(self, name: str) -> str:
        return os.path.relpath(self._store.pack(name), self._store.path)

    def _size(self, name: str) -> int:
        try:
            return os.stat(self._store.pack(name), follow_symlinks=False).st_size
        except OSError:
            return 0  # reading it says why


class _Whole:
    """A file of several segments, hashed as they pass by; they mostly lie in their order."""

    def __init__(self, sha256: str, segments: tuple[Segment, ...], where: str) -> None:
        self.segments = segments
        self.faults: list[Finding] = []
        self._sha256 = sha256
        self._where = where
        self._hash = hashlib.sha256()
        self._next = 0

    def take(self, segment: Segment, raw: bytes) -> None:
        """Hash it if it is the next one."""
        while self._next < len(self.segments) and self.segments[self._next] == segment:
            self._hash.update(raw)
            self._next += 1

    def finish(self, read: Callable[[Segment], bytes]) -> None:
        """Hash what did not pass by in its order, and compare."""
        for one in self.segments[self._next :]:
            self._hash.update(read(one))
        fault = verify_stored.whole_file(self._sha256, self._hash.hexdigest(), self._where)
        self.faults += [fault] if fault else []


def _first(found: list[Finding], where: str) -> tuple[Finding, ...]:
    """The first of them, and how many more there are: a report stays readable."""
    more = len(found) - _SHOWN
    if more <= 0:
        return tuple(found)
    last = found[-1]._replace(detail=f"{where}: {more} more faults like these")
    return (*found[:_SHOWN], last)
