"""The I/O around the rules of the local witness: from an instance's folder to a report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, verify_index, verify_stored
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import (
    CheckedSavepoint,
    Finding,
    Lack,
    Report,
    Witness,
    behind,
    chain_members,
    unchecked,
)
from savepoint.core.verify_index import Index, Names
from savepoint.store import border
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from savepoint.core.record import Record
    from savepoint.core.verify_index import Seen
    from savepoint.store.layout import InstancePaths
    from savepoint.store.witness.contents import Contents, PackReader

    Select = Callable[[list[Record]], Sequence[Record]]  # from all savepoints, oldest first

_NOT_CONFIGURED = "not configured"
_GIT = Witness((), off=_NOT_CONFIGURED)
_CHAIN = Witness((), off=_NOT_CONFIGURED, members=chain_members(None))


class _Examined(NamedTuple):
    """A savepoint whose own file was checked, and whose packs are yet to be."""

    record: Record
    where: str  # its snapshot, relative to the store
    findings: tuple[Finding, ...]  # of rules 1 to 6
    contents: Contents | None  # None where the snapshot cannot be followed


class Examination:
    """One instance: its index and the savepoints that `select` takes of it (None: all).

    `seen` was read before this is made: the trusted head lags behind the index, so an index that is
    read later than the head never looks older than it. `packs` may serve several instances; run it
    before `report`.
    """

    def __init__(
        self,
        paths: InstancePaths,
        seen: Seen | Lack | None,
        packs: PackReader,
        select: Select | None = None,
    ) -> None:
        self._paths = paths
        self._packs = packs
        self._border = border.load(paths)
        data = evidence.read(paths.index_file, limits.INDEX_BYTES)
        self.index = Index(data, seen, names(paths))
        saves = self.index.saves
        chosen = saves
        if select is not None:
            lines = {one.line for one in select([one for one, _ in saves])}
            chosen = [(one, line) for one, line in saves if one.line in lines]
        self._examined = [self._examine(one, line) for one, line in reversed(chosen)]

    def report(self) -> Report:
        """What the rules say; the savepoints oldest first."""
        checked = [self._conclude(one) for one in reversed(self._examined)]
        return Report(Witness(self.index.findings()), tuple(checked))

    def _examine(self, one: Record, line: int) -> _Examined:
        path = os.path.join(self._paths.path, one.snapshot_file)
        where = relative(self._paths, path)
        data = evidence.read(path, limits.SNAPSHOT_BYTES)
        found = [*self.index.findings(line), self._file(one, data, where)]
        if isinstance(data, Lack) or found[-1].result != "pass":
            return _Examined(one, where, tuple(found), None)
        document, finding = verify_stored.snapshot_document(one, data, where)
        contents = self._packs.add(document, where) if document else None
        return _Examined(one, where, (*found, finding), contents)

    def _file(self, one: Record, data: bytes | Lack, where: str) -> Finding:
        """VERIFY-5. What lies behind the border of a fetched history was never here."""
        if data == Lack(evidence.MISSING) and one.seq < self._border:
            detail = f"{where} was not fetched: it lies behind the border of the history here"
            hint = f"`savepoint resurrect {one.seq} --instance {self._paths.slug}` fetches it"
            return behind("VERIFY-5", detail, hint=hint)
        return verify_stored.snapshot_file(one, data, where)

    def _conclude(self, one: _Examined) -> CheckedSavepoint:
        found = list(one.findings)
        if one.contents is not None:
            found += self._packs.findings(one.contents, one.where)
        done = {finding.rule for finding in found}
        changed = any(finding.result == "fail" for finding in found)
        skip = behind if any(finding.behind for finding in found) else unchecked
        why = "is not what was signed" if changed else "was not looked at"
        found += [
            skip(rule, f"{one.where} {why}, so it is not followed")
            for rule in (*verify_index.INDEX_RULES, *verify_stored.STORED_RULES)
            if rule not in done
        ]
        witnesses = {"local": Witness(tuple(found)), "git": _GIT, "chain": _CHAIN}
        return CheckedSavepoint(one.record.seq, str(one.record.body["snapshot_hash"]), witnesses)


def relative(paths: InstancePaths, path: str) -> str:
    """How findings name a file of the store."""
    return os.path.relpath(path, paths.store.path)


def names(paths: InstancePaths) -> Names:
    """How findings name an instance's own files."""
    trusted = os.path.relpath(paths.trusted, paths.store.home)
    return Names(paths.slug, relative(paths, paths.index_file), trusted)
