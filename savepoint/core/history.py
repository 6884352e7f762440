"""What an index leads back to: the records behind one that a ledger names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.chain import Gap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.record import Record


class History:
    """The records of one index, in file order. Nothing of them is verified here but their links."""

    def __init__(self, records: Iterable[Record], newer: Iterable[int] = ()) -> None:
        """newer: the numbers of records that a newer version of this program wrote."""
        self.records = list(records)
        self.newer = frozenset(newer)
        self._by_hash = {one.hash: number for number, one in enumerate(self.records)}
        accepts = [one.body for one in self.records if one.kind == "accept"]
        self._gaps = {Gap(one["first"], one["last"]) for one in accepts if one["reason"] == "gap"}  # type: ignore[arg-type]  # numbers: record.parse saw to it
        self._ranges = [
            range(one["first"], one["last"] + 1)  # type: ignore[arg-type,operator]  # as above
            for one in accepts
            if one["first"] is not None
        ]

    @property
    def last_seq(self) -> int:
        """The highest sequence number; 0 where there is none."""
        return max((one.seq for one in self.records), default=0)

    def find(self, record_hash: str) -> Record | None:
        """The record of that hash."""
        number = self._by_hash.get(record_hash)
        return None if number is None else self.records[number]

    def at(self, seq: int) -> Record | None:
        """A record with that number."""
        return next((one for one in reversed(self.records) if one.seq == seq), None)

    def is_given_up(self, seq: int) -> bool:
        """Does a signed record accept that another record of that number is lost or set aside?"""
        return any(seq in one for one in self._ranges)

    def last_save(self, before: Record) -> Record | None:
        """The last savepoint that stands before a record."""
        earlier = self.records[: self._by_hash[before.hash]]
        return next((one for one in reversed(earlier) if one.kind == "save"), None)

    def behind(self, last: Record) -> set[str]:
        """Hashes of `last` and of all records that `prev` leads back to from there; a loss that an
        accept record names exactly is stepped over, as everywhere (docs/format.md, section 9).
        """
        number = self._by_hash[last.hash]
        found = {last.hash}
        for later, one in zip(
            self.records[number:0:-1], self.records[number - 1 :: -1], strict=False
        ):
            lost = Gap(one.seq + 1, later.seq - 1)
            if later.prev != one.hash and lost not in self._gaps:
                break
            found.add(one.hash)
        return found
