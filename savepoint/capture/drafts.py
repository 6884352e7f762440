"""Whose savepoint a draft becomes, when a key can sign it at last."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.capture import document
from savepoint.core import limits, snapshot
from savepoint.core.errors import MalformedError
from savepoint.core.spelling import Instance
from savepoint.store import index
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.acknowledge import Draft
    from savepoint.store.layout import InstancePaths


def owned(current: InstancePaths, draft: Draft) -> tuple[InstancePaths, Draft] | None:
    """The instance that signs it, and the draft as of that instance, behind the session's newest
    savepoint; None where it is signed already, and only its file was left.

    Where the key was retired meanwhile, that is the store's `current` instance, as for a session
    that goes on. Raises MalformedError, DiskError, UnsupportedFormatError.
    """
    paths = own = current.store.instance(draft.instance)
    if own != current and index.is_retired(own):
        paths = current
        name = Instance.parse(index.instance(current))
        named = document.renamed(draft.document, name)
        draft = draft._replace(instance=current.slug, document=named)
    for one in dict.fromkeys((paths, own)):
        before = index.last_of_session(one, draft.session_id)
        if before is not None:
            if _is_of(one, before[0], draft):
                return None
            return paths, draft._replace(origin=before[0].origin())
    return paths, draft


def _is_of(paths: InstancePaths, one: Record, draft: Draft) -> bool:
    """Is the savepoint made of that draft? Its salt is of no other."""
    path = os.path.join(paths.path, one.snapshot_file)
    try:
        saved = snapshot.parse(read_bounded(path, limits.SNAPSHOT_BYTES) or b"")
    except MalformedError:
        return False
    return saved.document["salt"] == draft.document["salt"]
