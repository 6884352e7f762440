"""The snapshot document of a capture: every member, in the order of docs/format.md."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.capture import loaded, state
from savepoint.core import limits, snapshot, spelling
from savepoint.core.strict_json import Json, dump

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.capture.agents import Tokens
    from savepoint.capture.capture import Capture
    from savepoint.capture.request import Request
    from savepoint.core.segments import Segment
    from savepoint.core.spelling import Instance
    from savepoint.store.packs import PackWriter

_INTEGRITY_BYTES = 1024  # room for the last member, which is added when the document is sealed


def build(
    capture: Capture,
    request: Request,
    packs: PackWriter,
    instance: Instance,
    guidance: list[Json] | None,
    ancestors: str = "",
) -> dict[str, Json]:
    """All members but `checkpoint_verification` and `integrity`, small enough to be sealed.

    `packs` is finished: every segment has the name of its pack. A list that is too long for the
    document goes into a pack of its own. ancestors: the file with the lineage, if there is one.
    """
    tokens = capture.conversation.tokens
    document: dict[str, Json] = {
        "format": snapshot.FORMAT,
        "type": snapshot.TYPE,
        "timestamp_iso8601": spelling.time_text(request.now),
        "instance_id": str(instance),
        "instance_number": instance.number,
        "salt": os.urandom(16).hex(),
        "session_token_budget": tokens.budget,
        "tokens_used_this_session": tokens.used,
        "tokens_remaining": tokens.remaining,
        **_utilization(tokens, request.utilization),
        "conversation_history": _history(capture, request, packs.settled),
        **_state(capture, packs.settled, instance, ancestors),
        **_memories(capture, packs.settled),
        "loaded_files": {
            path: file.to_json(packs.settled) for path, file in capture.loaded.items()
        },
        "git_state": _git(capture, packs.settled),
        **({} if guidance is None else {"guidance": guidance}),
        "omitted": [{"what": what, "reason": reason} for what, reason in capture.omitted],
        "notes": [*request.notes, *capture.conversation.notes],
    }
    _spill(document, packs)
    return document


def renamed(document: dict[str, Json], instance: Instance) -> dict[str, Json]:
    """The document of a draft, as of another instance of the same store."""
    old, new = document["instance_id"], str(instance)
    known = document["session_state"]
    if document["session_current"] is None and isinstance(known, dict):  # as `_state` made it
        lineage = new if known["lineage"] == old else known["lineage"]
        known = {**known, "identity": new, "lineage": lineage}
    named: dict[str, Json] = {"instance_id": new, "instance_number": instance.number}
    return {**document, **named, "session_state": known}


def _utilization(tokens: Tokens, told: int | None) -> dict[str, Json]:
    """From the transcript where that tells it, else as the caller says."""
    if tokens.percent is not None or told is None:
        return {"context_utilization_percent": tokens.percent, "token_source": tokens.source}
    source = f"{tokens.source}; utilization as told by the caller"
    return {"context_utilization_percent": told, "token_source": source}


def _history(
    capture: Capture, request: Request, settled: Callable[[Segment], Segment]
) -> dict[str, Json]:
    told = capture.conversation
    scan = told.scan
    return {
        "agent": capture.agent,
        "client_version": scan.version,
        "session_id": request.session_id,
        "scope": request.scope,
        "message_count": scan.messages,
        "records": scan.records,
        "sessions": dict(scan.sessions),
        "compactions": scan.boundaries,
        "torn_tail_bytes": scan.torn,
        "prefix_check": told.stored.prefix_check if told.stored else "full",
        "transcript": told.transcript.to_json(settled) if told.transcript else None,
        "companions": [file.to_json(settled) for file in told.companions],
    }


def _state(
    capture: Capture, settled: Callable[[Segment], Segment], instance: Instance, ancestors: str
) -> dict[str, Json]:
    held, file = capture.state, capture.state_file
    if held is not None and file is not None:
        current: Json = {**file.to_json(settled), "numbers_as_text": list(held.numbers_as_text)}
        if held.value is not None:
            return {"session_state": held.value, "session_current": current}
    else:
        current = None
    todos = list(capture.conversation.todos)
    known = state.of_instance(str(instance), state.lineage(ancestors), todos, confirmed=True)
    return {"session_state": known, "session_current": current}


def _memories(capture: Capture, settled: Callable[[Segment], Segment]) -> dict[str, Json]:
    held = {"succession_state": capture.succession, "handoff_state": capture.handoff}
    return {name: one.to_json(settled) for name, one in held.items() if one is not None}


def _git(capture: Capture, settled: Callable[[Segment], Segment]) -> dict[str, Json]:
    files: list[Json] = []
    for change, segments in zip(capture.git.changes, capture.changes, strict=True):
        listed = [settled(one).to_json() for one in segments]
        files.append({**change.to_json(), "segments": listed})
    changes: dict[str, Json] = {
        "files": files,
        "deleted": list(capture.git.deleted),
        "excluded": [{"path": path, "reason": reason} for path, reason in capture.git.excluded],
        "omitted": capture.git.omitted,
    }
    return {**capture.git.state, "changes": changes}


def _spill(document: dict[str, Json], packs: PackWriter) -> None:
    for path in snapshot.SPILLABLE:
        if len(dump(document)) + _INTEGRITY_BYTES <= limits.SNAPSHOT_BYTES:
            return
        holder = snapshot.member_at(document, path[:-1])
        value = snapshot.member_at(document, path)
        if not isinstance(holder, dict) or not isinstance(value, list | dict):
            continue
        segments = loaded.store_bytes(dump(value), packs)
        packs.finish()
        listed = [packs.settled(one).to_json() for one in segments]
        holder[path[-1]] = {"list": listed, "count": len(value)}
