"""What fsck says of a store's embedded ledger: every savepoint of each instance against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchor_service import witness
from anchor_service.witness import Sought
from savepoint.core.verdicts import CheckedSavepoint, Report, Verdict, Witness
from savepoint.store import savepoints
from savepoint.store.fsck import items

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.ledger import Ledger
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.fsck.items import Item
    from savepoint.store.layout import Store

_FAULTS = (Verdict.TAMPERED, Verdict.ROLLED_BACK, Verdict.UNVERIFIABLE)


def find(
    ledger: Ledger, program: bytes, repo: Repository, store: Store, instances: Iterable[str]
) -> tuple[Item, ...]:
    """Everything that is not as it must be. instances: slugs. Raises DiskError (an index cannot be
    read).
    """
    found = []
    for slug in sorted(instances):
        paths = store.instance(slug)
        unseen = Witness((), off="not asked")
        report = Report(
            unseen,
            tuple(
                CheckedSavepoint(one.seq, str(one.body["snapshot_hash"]), {"chain": unseen})
                for one in savepoints.records(paths).saves
            ),
        )
        report = witness.verify(ledger, Sought(program), repo, paths, report)
        for checked in report.savepoints:
            chain = checked.witnesses["chain"]  # what follows from its worst is no news
            found += [one for one in chain.findings if one.verdict is chain.verdict]
    faults = [one for one in dict.fromkeys(found) if one.verdict in _FAULTS and not one.behind]
    return tuple(map(items.judged, faults))
