"""Whether a fire finds anything new. Most do not, so little is imported to answer."""

from __future__ import annotations

import os

from savepoint.core.errors import MalformedError
from savepoint.store.session import sessions
from savepoint.store.session.sessions import Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.agents.adapter import Adapter
    from savepoint.capture.request import Request
    from savepoint.store.layout import Store
    from savepoint.store.session.sessions import CachedFile, Session


def is_unchanged(store: Store, key: str, request: Request, adapter: Adapter) -> bool:
    """Have all files of the session the stamps of its last savepoint? Then a fire adds nothing."""
    if request.even_if_unchanged or not request.transcript:
        return False
    last = sessions.load(store, key)
    saved = last.files.get(request.transcript) if last else None
    if last is None or saved is None or _stamp(request.transcript) != saved.stamp:
        return False
    paths = _companions(request, adapter, saved)
    return paths is not None and all(_stands(last, path) for path in paths)


def _companions(request: Request, adapter: Adapter, saved: CachedFile) -> list[str] | None:
    """Paths of the files beside the transcript as it was saved, or None if that is not known."""
    try:
        scan = adapter.Scan.from_json(saved.extra)
    except MalformedError:
        return None
    transcript, session_id = request.transcript, request.session_id
    found = adapter.companions(transcript, request.config_dir, session_id, scan)
    return [path for _, path in found.files]


def _stands(last: Session, path: str) -> bool:
    return path in last.files and last.files[path].stamp == _stamp(path)


def _stamp(path: str) -> Stamp | None:
    try:
        return Stamp.of(os.stat(path))
    except OSError:
        return None
