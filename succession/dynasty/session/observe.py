"""What is drawn from a savepoint: changed files for Dawn, and observations for Day.

Nothing here is guessed: commits that were made, files that the session wrote, each with a pointer
to the savepoint and the place in its conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import snapshot
from savepoint.core.named import NamedTuple
from savepoint.store import savepoints
from savepoint.store.layout import session_key
from succession.dynasty.constants import COMMITS_SHOWN, PATHS_SHOWN, TITLE_CHARS
from succession.dynasty.files.entry import OBSERVATION, Entry
from succession.dynasty.session.commits import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store
    from succession.dynasty.files.meta import Meta


class Covering(NamedTuple):
    """A savepoint that holds what was before a succession."""

    seq: int
    snapshot_hash: str  # bare hex
    document: dict[str, Json]

    @classmethod
    def of(cls, paths: InstancePaths, one: Record) -> Covering:
        """That savepoint. Raises TamperedError, MalformedError, DiskError."""
        document = savepoints.open_snapshot(paths, one).document
        return cls(one.seq, one.snapshot_hash, document)

    @property
    def pointer(self) -> str:
        """Where it all stands, in one line."""
        size = snapshot.member_at(self.document, ("conversation_history", "transcript", "bytes"))
        place = "no conversation" if size is None else f"conversation to byte {size}"
        return f"Savepoint {self.seq}, snapshot {self.snapshot_hash}, {place}."


def observations(
    store: Store, covering: Covering, commits: Sequence[tuple[str, str]], meta: Meta
) -> list[Entry]:
    """What happened since `meta.commit`: an entry a commit, and one for the session's files."""
    found = [
        Entry(OBSERVATION, f"Commit {commit[:7]}: {subject}"[:TITLE_CHARS], "", covering.pointer)
        for commit, subject in reversed(_fresh(commits, meta.commit))
    ]
    written = _written(store, covering.document)
    if written:
        session = snapshot.member_at(covering.document, ("conversation_history", "session_id"))
        key = session_key(str(session))
        title = f"Files changed in session {key[:8]} under {meta.title()}"
        more = len(written) - PATHS_SHOWN
        listed = "\n".join([*written[:PATHS_SHOWN], *([f"and {more} more"] if more > 0 else [])])
        found.append(Entry(OBSERVATION, title, "", f"{listed}\n{covering.pointer}"))
    return found


def _fresh(commits: Sequence[tuple[str, str]], known: str | None) -> list[tuple[str, str]]:
    """Those that are newer than the last look. Where a rebase took that commit away, the newest;
    before the first look nothing was done here.
    """
    ids = [commit for commit, _ in commits]
    if known is None:
        return []
    return list(commits[: ids.index(known)] if known in ids else commits[:COMMITS_SHOWN])


def changes(store: Store, document: dict[str, Json]) -> tuple[str, ...]:
    """The paths that were not committed, as the savepoint has them; clean text."""
    files = savepoints.listed(store, document, ("git_state", "changes", "files"))
    deleted = savepoints.listed(store, document, ("git_state", "changes", "deleted"))
    paths = (
        [one["path"] for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    )
    paths += deleted if isinstance(deleted, list) else []
    return tuple(sorted({clean(one) for one in paths if isinstance(one, str)}))


def _written(store: Store, document: dict[str, Json]) -> list[str]:
    files = savepoints.listed(store, document, ("loaded_files",))
    if not isinstance(files, dict):
        return []
    return sorted(
        clean(path)
        for path, one in files.items()
        if isinstance(one, dict) and one.get("known") == "written"
    )
