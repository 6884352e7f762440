"""What fsck says of our repository: git's own check, and every savepoint of each instance."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple
from savepoint.gitlayer.witness import check
from savepoint.gitlayer.witness.witness import identities_of
from savepoint.store import trusted
from savepoint.store.files import names_in
from savepoint.store.fsck import items
from savepoint.store.layout import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.verdicts import Finding
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.fsck.items import Item
    from savepoint.store.layout import InstancePaths, Store


class Found(NamedTuple):
    """For `fsck`."""

    items: tuple[Item, ...]
    commits: int


def find(repo: Repository, store: Store, instances: Iterable[str]) -> Found:
    """Everything that is not as it must be. instances: slugs. Raises DiskError (an index cannot be
    read).
    """
    found = [items.note(f"{name}: set aside by a repair") for name in _set_aside(store)]
    every = [store.instance(slug) for slug in sorted(instances)]
    if not os.path.lexists(repo.path):
        return Found((*found, *_missing(every)), 0)
    identities = identities_of(store)
    faults = [one for one in check.own_check(repo) if one.result != "pass"]
    commits = 0
    for paths in every:
        one = check.instance(repo, paths, identities)
        commits += len(one.steps)
        faults += [fault.finding for fault in one.faults if not fault.finding.behind]
    if not identities:
        faults = [one for one in faults if not _is_of_content(one)]
        missing = "there is no age identity: what is encrypted in git was not opened"
        found.append(items.warning(missing))
    found += map(items.judged, dict.fromkeys(faults))
    return Found(tuple(found), commits)


def _is_of_content(one: Finding) -> bool:
    return one.rule == "VERIFY-12" and one.result == "skipped"


def _missing(every: list[InstancePaths]) -> list[Item]:
    """A repository that was pushed from is not there."""
    tips = [head.remote_tip for one in every if (head := trusted.load(one)) is not None]
    lost = [tip for tip in tips if tip is not None]
    return [items.damage(f"repo.git is missing; a remote had {tip} from it") for tip in lost[:1]]


def _set_aside(store: Store) -> list[str]:
    name = os.path.basename(store.repository) + SET_ASIDE
    return [one for one in names_in(store.path) if one.startswith(name)]
