"""Verification of an index, as numbered rules: bytes and values in, findings out.

VERIFY-1  Each line of the index is one whole record in its one spelling.
          Stops changed bytes, CRLF, halved and glued lines, a second spelling of the same members.
VERIFY-2  Each record has the next sequence number and names the hash of the line before it; none
          stands behind the one that retired the key.
          Stops records that were cut out, moved, doubled or put in, and those of a stolen key.
VERIFY-3  The index starts with the birth record that its folder is named after; every record has
          that record's instance and key, and its signature holds.
          Stops records made without the key, and another instance's index in the place of this one.
VERIFY-4  The index holds all that the trusted head has seen, or a signed record accepts the loss.
          Stops an older copy put back whole, which no chain can see by itself, and two histories
          of one key.

The rules of what an index names follow in verify_stored.py, those of the git and the chain witness
from VERIFY-9 on.

Missing or differing bytes are TAMPERED. What nobody could read is UNVERIFIABLE: "invalid" and
"could not check" are different results. What a newer version wrote is UNVERIFIABLE too, with exit
code 23.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Protocol

from savepoint.core import spelling
from savepoint.core.chain import Break, Chain, Gap
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import (
    REPAIR,
    Finding,
    Lack,
    Verdict,
    absent,
    passed,
    rolled_back,
    tampered,
    unchecked,
)

if TYPE_CHECKING:
    from savepoint.core.record import Record

INDEX_RULES = tuple(f"VERIFY-{number}" for number in range(1, 5))

_FORK = "two signed records of one key with one sequence"
_ALIKE = 8  # findings of one rule and verdict that are told one by one
_TORN_SEQ = re.compile(rb'\{"v":[0-9]+,"seq":([0-9]{1,19}),')


class Seen(Protocol):
    """A trusted head: what this machine has seen of one instance."""

    @property
    def seq(self) -> int:
        """Of the newest record."""

    @property
    def record(self) -> str:
        """Its hash."""

    @property
    def recreated(self) -> bool:
        """Made anew where none was found."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Sequences that were rolled back and gone on from."""


class Names(NamedTuple):
    """What the findings call things."""

    slug: str  # of the instance: name, number and key in one
    index_file: str  # path of the index, relative to the store
    trusted_file: str  # path of the trusted head, relative to its home


class Index:
    """Rules 1 to 4 over one index.

    A fault counts for the savepoints at or after its line, since `prev` leads only backwards; a
    rollback (VERIFY-4) counts for all, since an index without its end cannot say what is newest.

    `data`: the file's bytes. `seen`: the trusted head, None where there is none.
    """

    def __init__(self, data: bytes | Lack, seen: Seen | Lack | None, names: Names) -> None:
        self.names = names
        lines = data if isinstance(data, bytes) else b""
        self.chain = Chain(lines)
        self._lines = lines.split(b"\n")
        self._seen = seen
        self._faults: list[tuple[int, Finding]] = []  # (first line that it counts for, fault)
        self._alike: dict[tuple[str, Verdict], int] = {}
        self._broken: set[int] = set()  # lines that were not what they must be
        unread = [one for one in self.chain.breaks if one.rule == "VERIFY-1"]
        self._unread = {one.line for one in unread}
        self._damaged = {one.line for one in unread if not one.unsupported}
        self.records = self._numbered()
        self._by_line = {line: one for one, line in self.records}
        self._by_seq: dict[int, list[tuple[Record, int]]] = {}
        for one, line in self.records:
            self._by_seq.setdefault(one.seq, []).append((one, line))
        if isinstance(data, Lack):
            self._add(0, absent("VERIFY-1", names.index_file, data))
            for rule in INDEX_RULES[1:]:
                self._add(0, unchecked(rule, f"{names.index_file} has no bytes to check"))
            return
        for fault in self.chain.breaks:
            self._add_break(fault)
        self._check_tail()
        self._check_birth()
        self._check_seen()
        self._check_gaps()
        self._count_alike()

    @property
    def saves(self) -> list[tuple[Record, int]]:
        """The savepoints that can be read, with their lines."""
        return [(one, line) for one, line in self.records if one.kind == "save"]

    def findings(self, line: int | None = None) -> tuple[Finding, ...]:
        """Of each rule what counts for a savepoint at `line`, or for the whole index."""
        last = len(self._lines) if line is None else line
        found = [fault for start, fault in self._faults if start <= last]
        failed = {fault.rule for fault in found}
        held = [passed(rule, self._held(rule, last)) for rule in INDEX_RULES if rule not in failed]
        return tuple(sorted(found + held, key=lambda one: INDEX_RULES.index(one.rule)))

    def unaccepted_gaps(self) -> list[Gap]:
        """Records that are missing, and that no accept record names."""
        accepted = self._accepted()
        return [gap for gap in self.chain.gaps if gap not in accepted]

    @property
    def leftover(self) -> str:
        """What a crash left behind the last LF, if it is harmless; the next save settles it."""
        line, end = len(self._lines), self._lines[-1]
        if not end or line in self._unread:
            return ""
        if line in self._by_line:
            return "a last record that lacks its LF"
        return f"{len(end)} bytes at its end, of a record that was never acknowledged"

    @property
    def is_unbroken(self) -> bool:
        """Is there nothing but whole, signed records in their order, gaps aside?"""
        return bool(self.records) and not self._broken and not self._unread

    def forked(self) -> bool:
        """Does the index hold another record under the trusted head's sequence number?"""
        seen = self._seen
        if seen is None or isinstance(seen, Lack):
            return False
        hashes = [one.hash for one in self._sound() if one.seq == seen.seq]
        return bool(hashes) and seen.record not in hashes

    # VERIFY-1, VERIFY-2, VERIFY-3: what the chain says of its lines

    def _add_break(self, one: Break) -> None:
        detail = f"{self.names.index_file} line {one.line}: {one.reason}"
        if one.rule == "VERIFY-2" and self._follows_unread(one.line):
            return
        self._broken.add(one.line)
        if one.unsupported:
            self._add(one.line, unchecked(one.rule, detail, unsupported=True))
        elif one.rule == "VERIFY-2" and (seq := self._doubled(one.line)):
            self._add(0, rolled_back("VERIFY-4", f"{self.names.index_file}: {_FORK}: {seq}"))
        else:
            self._add(one.line, tampered(one.rule, detail))

    def _follows_unread(self, line: int) -> bool:
        """VERIFY-2: a record that names the hash of a damaged line follows it all the same; the
        fault is that line's alone.
        """
        if line - 1 not in self._damaged:
            return False
        return self._by_line[line].prev == hashlib.sha256(self._lines[line - 2]).hexdigest()

    def _doubled(self, line: int) -> int:
        """VERIFY-4: the sequence of a line that the key signed twice, with two contents: a fork
        (two machines, one key), not tampering. The same line twice is tampering.
        """
        one = self._by_line[line]
        twins = [other for other, number in self._by_seq[one.seq] if number < line]
        forked = twins and all(other.line != one.line for other in twins)
        signed = forked and all(
            other.signer == one.signer and other.signature_holds() for other in [one, *twins]
        )
        return one.seq if signed else 0

    def _check_tail(self) -> None:
        """VERIFY-1: a tail without its LF is torn (an append that was cut short and never
        acknowledged) only if the trusted head does not know its sequence.
        """
        torn, seen = self.chain.torn, self._seen
        line = len(self._lines)
        if not torn or line in self._by_line or seen is None or isinstance(seen, Lack):
            return
        named = _TORN_SEQ.match(torn)
        seq = int(named[1]) if named else self._reach() + 1
        if seq <= seen.seq:
            self._unread.add(line)
            where = f"{self.names.index_file} line {line}"
            self._add(line, tampered("VERIFY-1", f"{where}: its end is missing or changed"))

    def _check_birth(self) -> None:
        """VERIFY-3: name and key of the birth record give the folder's name, so that an index with
        good signatures of another key is not taken for this one's.
        """
        birth = self._by_line.get(1)
        if birth is None or birth.kind != "birth":
            return
        slug = spelling.Instance.parse(birth.instance).slug(birth.signer)
        if slug != self.names.slug:
            self._add(1, tampered("VERIFY-3", f"{self.names.index_file} is the index of {slug}"))

    # VERIFY-4: freshness

    def _check_seen(self) -> None:
        """VERIFY-4: an older copy of the index is a whole good chain; only what was seen tells."""
        seen, where = self._seen, self.names.trusted_file
        if isinstance(seen, Lack):
            detail, newer = f"{where} {seen.reason}", seen.unsupported
            self._add(0, unchecked("VERIFY-4", detail, unsupported=newer))
            return
        if seen is None or seen.recreated:
            state = "is missing" if seen is None else "was made anew where there was none"
            detail = f"{where} {state}: whether a newer index existed cannot be told"
            self._add(0, unchecked("VERIFY-4", detail, hint=REPAIR))
        if seen is None:
            return
        reach = self._reach()
        if reach < seen.seq:
            detail = f"{self.names.index_file} ends at record {reach}; record {seen.seq} was seen"
            self._add(0, rolled_back("VERIFY-4", detail))
        elif self.forked():
            detail = f"{self.names.index_file}: {_FORK}: {seen.seq} is not the one that was seen"
            self._add(0, rolled_back("VERIFY-4", detail))

    def _check_gaps(self) -> None:
        """VERIFY-4: a gap that the trusted head knows was gone on from after a rollback. VERIFY-2:
        one that it does not know was cut out.
        """
        for gap in self.unaccepted_gaps():
            line = next(line for one, line in self.records if one.seq > gap.last)
            detail = f"{self.names.index_file} lacks the records {gap.first} to {gap.last}"
            if isinstance(self._seen, Lack):
                self._add(line, unchecked("VERIFY-2", detail))
            elif self._was_seen(gap, self._by_line[line]):
                self._add(0, rolled_back("VERIFY-4", f"{detail}, which were seen"))
            else:
                self._add(line, tampered("VERIFY-2", f"{detail} before line {line}"))

    def _was_seen(self, gap: Gap, following: Record) -> bool:
        """Listed; or gone on from just now, by a save that ended before it raised the head."""
        seen = self._seen
        if seen is None or isinstance(seen, Lack):
            return False
        return gap in seen.gaps or (gap.last, following.prev) == (seen.seq, seen.record)

    def _accepted(self) -> set[Gap]:
        """The gaps that sound records accept."""
        accepts = [one.body for one in self._sound() if one.kind == "accept"]
        gaps = [(one["first"], one["last"]) for one in accepts if one["reason"] == "gap"]
        return {Gap(*gap) for gap in gaps}  # type: ignore[arg-type]  # numbers: record.parse saw to it

    def _sound(self) -> list[Record]:
        return [one for one, line in self.records if line not in self._broken]

    # the bookkeeping

    def _numbered(self) -> list[tuple[Record, int]]:
        """Each record with its line. A whole good record behind the last LF is the last line."""
        numbers = [n for n in range(1, len(self._lines) + 1) if n not in self._unread]
        return list(zip(self.chain.records, numbers, strict=False))

    def _reach(self) -> int:
        """The highest sequence that any line, readable or not, may have had."""
        if not self.records:
            return len(self._unread)
        one, line = max(self.records, key=lambda pair: pair[0].seq)
        return one.seq + sum(1 for number in self._unread if number > line)

    def _add(self, line: int, fault: Finding) -> None:
        alike = (fault.rule, fault.verdict)
        self._alike[alike] = self._alike.get(alike, 0) + 1
        if self._alike[alike] <= _ALIKE:
            self._faults.append((line, fault))

    def _count_alike(self) -> None:
        """An index of a million bad lines gives no report of a million findings."""
        for (rule, verdict), count in self._alike.items():
            if count > _ALIKE:
                detail = f"{self.names.index_file}: {count - _ALIKE} more faults like these"
                more = Finding(rule, "fail", detail, verdict)
                self._faults.append((len(self._lines), more))

    def _held(self, rule: str, last: int) -> str:
        lines = f"{self.names.index_file}, lines 1 to {last}"
        if rule == "VERIFY-4":
            return f"{self.names.trusted_file}: what was seen is in the index, or accepted as lost"
        return {
            "VERIFY-1": f"{lines}: whole records",
            "VERIFY-2": f"{lines}: each names the one before it",
            "VERIFY-3": f"{lines}: signed by the key of the birth record",
        }[rule]
