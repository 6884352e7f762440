"""The local witness: what this machine's disk says of an instance's savepoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import DiskError, UnsupportedFormatError
from savepoint.core.verdicts import Lack
from savepoint.store import trusted
from savepoint.store.witness.contents import PackReader
from savepoint.store.witness.examine import Examination

if TYPE_CHECKING:
    from savepoint.core.verdicts import Report
    from savepoint.core.verify_index import Seen
    from savepoint.store.layout import InstancePaths
    from savepoint.store.witness.contents import Progress
    from savepoint.store.witness.examine import Select


def verify_local(
    paths: InstancePaths, select: Select | None = None, progress: Progress | None = None
) -> Report:
    """Check the savepoints that `select` takes from the list of all (None: all of them).

    `progress` is called with the bytes of packs read, and the bytes known to be needed. Never
    raises for what is found on disk: that is the report. What `select` raises passes through.
    """
    packs = PackReader(paths.store, progress)
    examination = Examination(paths, _seen(paths), packs, select)
    packs.run()
    return examination.report()


def _seen(paths: InstancePaths) -> Seen | Lack | None:
    try:
        return trusted.load(paths)
    except UnsupportedFormatError as failure:
        reason = failure.message.removeprefix(f"{paths.trusted} ")
        return Lack(reason, unreadable=True, unsupported=True)
    except DiskError as failure:
        return Lack(f"cannot be read: {failure.message.rpartition(': ')[2]}", unreadable=True)
