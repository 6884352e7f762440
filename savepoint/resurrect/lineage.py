"""The line that an instance comes of: its document holds, and the text of its ancestors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.capture import state
from savepoint.core import bootstrap_document, limits
from savepoint.core.errors import TamperedError
from savepoint.core.spelling import Instance
from savepoint.core.verdicts import REPAIR
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.core.bootstrap_document import Bootstrap
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths


def document(paths: InstancePaths) -> Bootstrap | None:
    """BOOTSTRAP_VERIFICATION.json of an instance; None: it is the first of its line,
    or has lost it. Raises MalformedError, UnsupportedFormatError, DiskError.
    """
    data = read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
    return None if data is None else bootstrap_document.parse(data)


def check_own(paths: InstancePaths) -> Bootstrap | None:
    """Modulo zero of an instance that is in the store. Raises TamperedError: it does not hold, or
    a successor has lost its document.
    """
    found = document(paths)
    birth = index.birth(paths)
    if found is None:
        if index.origin(paths) is not None:
            lost = f"{paths.slug} comes from another, and has no BOOTSTRAP_VERIFICATION.json"
            raise TamperedError(lost, hint=REPAIR)
        return None
    fault = (
        "its birth record cannot be read"
        if birth is None
        else bootstrap_document.fault(found, birth)
    )
    if fault:
        raise TamperedError(f"{paths.slug}: BOOTSTRAP_VERIFICATION.json: {fault}")
    return found


def origin(paths: InstancePaths) -> tuple[InstancePaths, Record] | None:
    """The savepoint that an instance comes from, and whose it is; None: it is the first of its
    line, or that one is not here. Raises TamperedError, MalformedError, UnsupportedFormatError,
    DiskError.
    """
    found = check_own(paths)
    if found is None:
        return None
    before = found.predecessor
    there = paths.store.instance(Instance.parse(before.instance).slug(before.key))
    saves = savepoints.records(there).saves if os.path.lexists(there.index_file) else []
    return next(((there, one) for one in saves if one.hash == found.savepoint.record), None)


def appended(paths: InstancePaths, document_: dict[str, Json], successor: str) -> str:
    """The text of a successor: that of its predecessor, and itself. What the predecessor's own
    snapshot says counts where its file is lost.
    """
    known = state.lineage(paths.lineage)
    told = document_["session_state"]
    if not known and document_["session_current"] is None and isinstance(told, dict):
        known = str(told.get("lineage", ""))
    return f"{known or document_['instance_id']} → {successor}"
