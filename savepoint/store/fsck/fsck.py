"""fsck: recompute everything of a store, and name everything that is not as it must be.

It is the oracle of the fault tests, so it shares no code with what writes a store: only the rules
of core, the layout, and bounded reading. A test holds it to that.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from savepoint.core import spelling, verdicts, verify_index, verify_stored
from savepoint.core.errors import DiskError
from savepoint.core.named import NamedTuple
from savepoint.store.fsck import upkeep
from savepoint.store.fsck.items import Item, judged, note, warning
from savepoint.store.fsck.survey import survey
from savepoint.store.layout import SNAPSHOT_FOLDER
from savepoint.store.witness import evidence
from savepoint.store.witness.contents import PACK_FILE_BYTES, PackReader
from savepoint.store.witness.examine import Examination, relative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import CheckedSavepoint, Finding, Lack, Report
    from savepoint.core.verify_index import Seen
    from savepoint.store.fsck.survey import Survey
    from savepoint.store.layout import Store
    from savepoint.store.witness.contents import Progress

_WORST_FIRST = (20, 22, 21, 23, 40)  # exit codes


class Checked(NamedTuple):
    """What fsck found in one store."""

    store: Store
    instances: dict[str, Report]  # slug → what the rules say of all its savepoints
    items: tuple[Item, ...]  # everything that is not as it must be, and what crashes left
    counts: dict[str, int]  # instances, records, savepoints, packs, temporaries

    @property
    def exit_code(self) -> int:
        """0, or the worst of 20, 22, 21, 23, 40. Warnings and notes do not count."""
        found = {one.exit_code for one in self.items}
        return next((code for code in _WORST_FIRST if code in found), 0)

    @property
    def hint(self) -> str:
        """What to do next; empty where nothing is wrong."""
        if self.exit_code == DiskError.exit_code:
            return DiskError.default_hint
        reports = self.instances.values()
        return next((one.hint for one in reports if one.exit_code == self.exit_code), "")

    def to_json(self) -> dict[str, Json]:
        """The document of `fsck --json`."""
        return {
            "store": self.store.id,
            "exit_code": self.exit_code,
            "findings": [one.to_json() for one in self.items],
            "counts": dict(self.counts),
        }


def fsck(store: Store, now: float, progress: Progress | None = None) -> Checked:
    """Check the whole store. now: Unix seconds. Never raises for what is found on disk.

    `progress` is called with the bytes of packs read, and the bytes known to be needed.
    """
    seen = survey(store)  # first: what is written meanwhile must not look like an orphan
    packs = PackReader(store, progress)
    heads = {slug: upkeep.trusted_head(store.instance(slug)) for slug in seen.instances}
    every = {slug: Examination(store.instance(slug), heads[slug], packs) for slug in seen.instances}
    packs.run()
    begun = {slug: one for slug, one in every.items() if _has_begun(one, heads[slug], seen)}
    reports = {slug: one.report() for slug, one in begun.items()}
    indexes = {slug: one.index for slug, one in begun.items()}
    items = [item for slug, report in reports.items() for item in _judged(slug, report)]
    items += [note(f"instances/{slug} was being made") for slug in every if slug not in begun]
    items += _orphans(store, seen, begun, packs)
    items += upkeep.items(store, seen, indexes, now)
    counts = {
        "instances": len(begun),
        "records": sum(len(one.index.records) for one in begun.values()),
        "savepoints": sum(len(one.savepoints) for one in reports.values()),
        "packs": sum(path.endswith(".pack") for path in seen.files),
        "temporaries": len(seen.temporaries),
    }
    return Checked(store, reports, tuple(items), counts)


def _has_begun(one: Examination, head: Seen | Lack | None, seen: Survey) -> bool:
    """Not if its creation was cut short: then nothing of it was ever acknowledged."""
    folder = f"instances/{one.index.names.slug}/{SNAPSHOT_FOLDER}/"
    saved = any(path.startswith(folder) for path in seen.files)
    return bool(one.index.records) or head is not None or saved


def _judged(slug: str, report: Report) -> list[Item]:
    """Each fault once, however many savepoints it touches. What lies behind the border of a history
    that was fetched was never here to be damaged.
    """
    found = [one for one in report.chain.findings if one.result != "pass"]
    behind = [one for one in report.savepoints if _is_behind(one)]
    for savepoint in report.savepoints:
        local = savepoint.witnesses["local"].findings
        own = [one for one in local if one.rule not in verify_index.INDEX_RULES]
        worst = verdicts.worst(one.verdict for one in own)  # what follows from it is no news
        faults = [one for one in own if one.result != "pass" and one.verdict is worst]
        found += _causes([one for one in faults if not one.behind])
    items = [_counted(judged(one), times) for one, times in Counter(found).items()]
    return [*items, note(_told(slug, behind))] if behind else items


def _causes(faults: list[Finding]) -> list[Finding]:
    """Without what follows from a pack that is not whole: its frames, and what lies in them."""
    packs = {one.detail.partition(" ")[0] for one in faults if one.rule == "VERIFY-7"}
    return [
        one
        for one in faults
        if one.rule != "VERIFY-8" or not packs or _names_another(one.detail, packs)
    ]


def _names_another(detail: str, packs: set[str]) -> bool:
    """Is it of a frame in none of these packs?"""
    return detail.startswith("objects/") and detail.partition(",")[0] not in packs


def _counted(item: Item, savepoints: int) -> Item:
    """A pack with how many savepoints need it."""
    if item.rule != "VERIFY-7":
        return item
    count = spelling.counted(savepoints, "savepoint")
    return item._replace(detail=f"{item.detail}; needed by {count}")


def _is_behind(one: CheckedSavepoint) -> bool:
    return any(finding.behind for finding in one.witnesses["local"].findings)


def _told(slug: str, behind: list[CheckedSavepoint]) -> str:
    count = spelling.counted(len(behind), "savepoint")
    return (
        f"instances/{slug}: at the remote alone, before the border of the history that was "
        f"fetched: {count}; `savepoint resurrect {behind[-1].seq} --instance {slug}` fetches one"
    )


def _orphans(
    store: Store, seen: Survey, begun: Mapping[str, Examination], packs: PackReader
) -> Iterator[Item]:
    """A crash between snapshot and record leaves a snapshot and packs that nothing names. A pack
    may still be built on by the next save, so it must be whole.
    """
    named = {
        relative(store.instance(slug), os.path.join(store.instance(slug).path, one.snapshot_file))
        for slug, examination in begun.items()
        for one, _ in examination.index.saves
    }
    packed = packs.names
    for path in seen.files:
        if f"/{SNAPSHOT_FOLDER}/" in path and path not in named:
            yield note(f"{path}: no record that can be read names this snapshot")
        name = os.path.basename(path).removesuffix(".pack")
        if path.startswith("objects/") and name not in packed:
            data = evidence.read(store.pack(name), PACK_FILE_BYTES)
            fault = verify_stored.pack(name, data, path)
            yield note(f"{path}: no snapshot that can be read names this pack")
            if fault.result != "pass":
                yield warning(fault.detail)
