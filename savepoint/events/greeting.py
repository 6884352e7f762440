"""What an agent is told when a session starts: facts about what is saved, and how to get at it.

Facts, not orders: text that commands may be taken for an injected prompt. And short:
it takes room in the context that a compaction has just made.
"""

from __future__ import annotations

import json

from savepoint.core import limits, spelling
from savepoint.core.errors import SavepointError
from savepoint.store import config, index, journal, registry, standing
from savepoint.store.layout import Home, session_key
from savepoint.store.session import sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.capture.request import Request
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.store.session.sessions import Session

_NEW_BYTES = 64 * limits.KIB  # of the index of a store that may have been begun by mistake
# Words of the log: what became of the push, and of the entry on the ledger.
_PUSHING = {"PUSHED_TO_GITHUB", "PUSH_REFUSED", "REMOTE_DIVERGED", "QUEUED_FOR_PUSH"}
_ANCHORING = ("BLOCKCHAIN_", "QUEUED_FOR_BLOCKCHAIN")
_FINE = {"PUSHED_TO_GITHUB", "BLOCKCHAIN_VERIFIED"}


def output(
    store: Store, request: Request, source: str, command: str, owed: str = "", learned: str = ""
) -> bytes:
    """What goes to stdout: one JSON object. command: how `savepoint` is run here; owed: what waits
    to be taken over, which comes first; learned: what is remembered, which comes last.

    Raises SavepointError.
    """
    parts = (owed, *_facts(store, request, source, command), learned)
    text = "\n".join(filter(None, parts))
    told = {"hookEventName": "SessionStart", "additionalContext": text[: limits.GREETING_CHARS]}
    return json.dumps({"hookSpecificOutput": told}).encode()


def _facts(store: Store, request: Request, source: str, command: str) -> Iterator[str]:
    last = sessions.load(store, session_key(request.session_id))
    current = config.load(store).instance
    paths = store.instance(last.instance if last else current)
    newest = index.last(paths)
    name = newest.instance if newest else paths.slug
    # Commands without it are of the current instance, which another session's may not be.
    of = "" if paths.slug == current else f" --instance {paths.slug}"
    yield (
        f"savepoint saves the state of this session outside the project (instance {name}, "
        f"key {paths.slug[-8:]}, store {store.id[:8]})."
    )
    own = newest
    if last is None or newest is None or newest.signature.hex() != last.signature:
        own = _record(paths, last.offset) if last else None
    if own is not None:
        yield f"Newest savepoint of this session: {_told(own, paths)}."
        full = " --full" if source == "compact" and _is_compacted(own, last) else ""
        yield from _ways(own, source, command, of, full)
    elif newest is not None and newest.kind == "save":
        yield f"Newest savepoint of this project: {_told(newest, paths)}."
        yield (
            f"`{command} resurrect {newest.seq}{of}` brings that session's conversation and files "
            "back; nothing of it is in this session's context."
        )
    if lost := index.lost(paths, newest):
        yield (
            f"Savepoints were rolled back or damaged here: {lost}; `{command} fsck --repair` "
            "brings back what git or the remote has."
        )
    yield from _moved(store, request, paths, command)


def _is_compacted(own: Record, last: Session | None) -> bool:
    """Has the session's savepoint the compaction in it that was just now? Then what comes back of
    it shows the summary. Only one that this event made can: what made it is imported already.
    """
    if last is None or own.body["trigger"] != "session_start":
        return False
    from savepoint.capture import progress
    from savepoint.capture.agents import claude

    return progress.ends_compacted(last, claude)


def _ways(own: Record, source: str, command: str, of: str, full: str) -> Iterator[str]:
    """How to get at what is in the session's own savepoint. of: the option that names its instance,
    where it must be named; full: the one for what was before the last compaction in it.
    """
    if source == "compact":
        yield (
            "This session's context was compacted just now. The conversation as it was before is "
            f"in that savepoint, byte for byte: `{command} show {own.seq}{of} --only conversation` "
            f"prints it, `{command} show {own.seq}{of}` lists the files and changes in it, and "
            f"`{command} resurrect {own.seq}{of}{full}` brings it back as a session of its own."
        )
    else:
        yield f"`{command} resurrect {own.seq}{of}` brings that state back as a session of its own."


def _told(one: Record, paths: InstancePaths) -> str:
    """A savepoint, and what became of it since."""
    became = standing.events(paths, one.seq)
    when = spelling.time_text(one.timestamp)
    said = f"{one.seq} ({one.body['trigger']}, {when}, {str(one.body['snapshot_hash'])[:23]})"
    whole = "" if one.body["consciousness_preserved"] else ", with omissions"
    words = [word for word in reversed(became) if word in _PUSHING][:1]
    words += [word for word in reversed(became) if word.startswith(_ANCHORING)][:1]
    return ", ".join([f"{said}{whole}", *(_with_error(word, became[word]) for word in words)])


def _with_error(word: str, error: str) -> str:
    """A word of the log; behind one that is no success, what stands in its way."""
    is_fine = word in _FINE or not error
    return word if is_fine else f"{word}: {journal.printable(error)[: limits.REMOTE_LINE_CHARS]}"


def _record(paths: InstancePaths, offset: int) -> Record | None:
    from savepoint.core import record
    from savepoint.store.lines import line_at

    try:
        return record.parse(line_at(paths, offset))
    except SavepointError:
        return None


def _moved(store: Store, request: Request, paths: InstancePaths, command: str) -> Iterator[str]:
    """Stores that may be this folder's from before it was moved (claude-code#71568). Only a new
    store is looked at: to read the configs of all takes its time.
    """
    if _size(paths) > _NEW_BYTES:
        return
    for one in registry.moved(Home(request.home), request.project):
        if one.id != store.id:
            yield (
                f"This folder was perhaps moved: `{command} init --adopt {one.id[:8]}` continues "
                "the store that it had, and brings along what was saved here since."
            )


def _size(paths: InstancePaths) -> int:
    import os

    try:
        return os.stat(paths.index_file).st_size
    except OSError:
        return 0
