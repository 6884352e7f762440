"""The chain: what an index's bytes say, line by line, and where they stop saying it."""

from __future__ import annotations

from savepoint.core import limits, record, spelling
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.record import Record


class Break(NamedTuple):
    """Where the chain does not hold. `rule`: that of core/verify_index.py which says so."""

    rule: str
    line: int  # from 1
    reason: str
    unsupported: bool = False  # written by a newer version, not damaged


class Gap(NamedTuple):
    """Sequence numbers that no line of the index holds."""

    first: int
    last: int


class Chain:
    """An index read whole: `records` in file order, `breaks`, `gaps`, and the `torn` tail.

    A tail without its LF is no break: an append that was cut short was never acknowledged. Where
    it is a whole good record it counts as one and is not torn; the next save puts the LF behind it.
    """

    def __init__(self, data: bytes) -> None:
        *lines, self.torn = data.split(b"\n")
        self.records: list[Record] = []
        self.breaks: list[Break] = []
        self.gaps: list[Gap] = []
        self._is_newer = False  # has a newer version written a line?
        for number, line in enumerate(lines, 1):
            self._read(number, line)
        last = self.records[-1] if self.records else None
        if not self._is_newer and continuation(self.torn, last) is not None:
            self._read(len(lines) + 1, self.torn)  # a gap before it is noted as before any other
            self.torn = b""

    @property
    def saves(self) -> list[Record]:
        """The savepoints among the records, in order."""
        return [one for one in self.records if one.kind == "save"]

    def _read(self, number: int, line: bytes) -> None:
        try:
            one = record.parse(line)
        except SavepointError as failure:
            newer = failure.exit_code == 23
            self._is_newer = self._is_newer or newer
            self.breaks.append(Break("VERIFY-1", number, failure.message, newer))
            return
        link = self._link_fault(one)
        if link:
            self.breaks.append(Break("VERIFY-2", number, link))
        birth = self.records[0] if self.records else one
        if (one.signer, one.instance, birth.kind) != (
            birth.signer,
            birth.instance,
            "birth",
        ):
            reason = "not of the instance whose birth starts the index"
            self.breaks.append(Break("VERIFY-3", number, reason))
        elif not one.signature_holds():
            reason = f"the signature of record {one.seq} does not hold"
            self.breaks.append(Break("VERIFY-3", number, reason))
        self.records.append(one)

    def _link_fault(self, one: Record) -> str:
        """Why `one` cannot follow the last record, or nothing. A forward jump is noted as a gap:
        whether a rolled-back index was gone on from, or a line cut out, the trusted head knows.
        """
        seq, prev = 1, spelling.ZERO_DIGEST
        if self._is_newer:
            return f"record {one.seq} is of version 1 and stands behind one of a newer version"
        if self.records:
            seq, prev = self.records[-1].seq + 1, self.records[-1].hash
            if self.records[-1].kind == "retire":
                return f"record {one.seq} stands behind the record that retired its key"
        if one.seq > seq and not self.breaks:
            self.gaps.append(Gap(seq, one.seq - 1))
            return ""
        if one.seq != seq:
            return f"record {one.seq} stands where {seq} belongs"
        if one.prev != prev:
            return f"record {one.seq} does not name the hash of the record before it"
        return ""


def continuation(line: bytes, previous: Record | None) -> Record | None:
    """The record of `line`, if it is a whole good one that follows `previous` (None: a birth)."""
    try:
        one = record.parse(line)
    except SavepointError:
        return None
    return one if _follows(one, previous) and one.signature_holds() else None


def _follows(one: Record, previous: Record | None) -> bool:
    if previous is None:
        return one.kind == "birth"
    if previous.kind == "retire":  # the last record of a key
        return False
    linked = one.prev == previous.hash or one.seq > previous.seq + 1
    same = (one.signer, one.instance) == (previous.signer, previous.instance)
    return one.seq > previous.seq and linked and same


def last_line(tail: bytes) -> tuple[bytes, bytes]:
    """From the end of an index: its last whole line (without LF), and the torn bytes behind it.

    `tail` is the whole file, or so much of its end that `is_enough` holds.
    """
    end = tail.rfind(b"\n")
    if end < 0:
        return b"", tail
    start = tail.rfind(b"\n", 0, end) + 1
    return tail[start:end], tail[end + 1 :]


def is_enough(tail: bytes) -> bool:
    """Does the last whole line surely begin within this end of an index? A torn tail may be longer
    than any record: a power cut can leave a file that grew, with nothing written to it.
    """
    end = tail.rfind(b"\n")
    return end >= 0 and tail.rfind(b"\n", 0, end) >= 0


TAIL_BYTES = 2 * (limits.RECORD_BYTES + 1)  # holds the last whole line and a torn record
