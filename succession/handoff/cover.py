"""Does a savepoint have the session as it is now? What came later would be handed to nobody."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_facts
from savepoint.capture.exclusion import Exclusion
from savepoint.capture.git import repository
from savepoint.core import segments
from savepoint.core.errors import DiskError
from savepoint.store import savepoints
from savepoint.store.files import read_at
from succession.handoff import boundary, gather, shell, turn
from succession.handoff.turn import Reason, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.capture.request import Request
    from savepoint.core.segments import Segment
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store

_ANEW = "take a new savepoint: leave --savepoint away"


def reasons(store: Store, document: dict[str, Json], transcript: str | None) -> list[Reason]:
    """What a session has that its savepoint has not, but for what our own commands added.

    document: of the savepoint; transcript: of the session, as it is now; None: there is none.
    Raises TamperedError, MalformedError, DiskError.
    """
    stored = [one for one in savepoints.files(store, document) if one.part == "conversation"]
    if transcript is None:
        return []
    covered = _covered(transcript, [piece for one in stored for piece in one.segments])
    if covered is None:
        return [Reason("not covered", f"the transcript is another than the savepoint's: {_ANEW}")]
    data, base = boundary.end_of(transcript)
    more = base + len(data) - covered
    if covered < base:
        return [Reason("not covered", f"{more} bytes came after the savepoint: {_ANEW}")]
    start = data.rfind(b"\n", 0, covered - base) + 1  # of the line that was not whole
    return list(_later(data, base, start))


def changed(
    store: Store, document: dict[str, Json], request: Request, exclude: Sequence[str]
) -> list[Reason]:
    """What the project's repository has in no commit now that the savepoint has otherwise.

    request: of a save, exclude: its globs. Raises TamperedError, MalformedError, DiskError.
    """
    with repository.begin(request, store.scratch) as git:
        exclusion = Exclusion(os.path.realpath(request.project), exclude, request.home)
        found = git.collect(request.deadline, exclusion)
    files: list[Json] = [
        {**one.to_json(), "segments": [{"sha256": digest} for digest in _digests(one.data)]}
        for one in found.changes
    ]
    listed: Json = {"files": files, "deleted": list(found.deleted)}
    known = {one.key for one in gather.changes(store, document)}
    return [
        Reason("not covered", f"{one.text} was changed after the savepoint: {_ANEW}")
        for one in gather.changes(store, {"git_state": {**found.state, "changes": listed}})
        if one.key not in known
    ]


def _digests(data: bytes) -> Iterator[str]:
    """Of the segments that it is stored in."""
    start = 0
    while (stop := segments.cut(data, start, final=True)) is not None:
        yield hashlib.sha256(data[start:stop]).hexdigest()
        start = stop


def _covered(path: str, stored: list[Segment]) -> int | None:
    """The bytes that a savepoint has of that file; None where they are others."""
    fd = boundary.opened(path)
    try:
        at = 0
        for one in stored:
            if hashlib.sha256(read_at(fd, one.bytes, at)).hexdigest() != one.sha256:
                return None
            at += one.bytes
    except OSError as failure:
        raise DiskError.of(failure, path) from failure
    finally:
        os.close(fd)
    return at


def _later(data: bytes, base: int, start: int) -> Iterator[Reason]:
    """start: in data, of the first line that the savepoint has not."""
    told = Turn()
    for offset, record in turn.lines(data, base):
        if offset >= base + start and turn.is_spoken(record):
            for what in _said(record, told):
                yield Reason("not covered", f"{what} came after the savepoint: {_ANEW}", offset)
        told.take(offset, record)
    for one in gather.of_conversation(data[start:]):
        if one.what in {"question", "offer", "pull_request"}:
            why = f"{one.what} {turn.shown(one.text)} came after the savepoint: {_ANEW}"
            at = None if one.offset is None else base + start + one.offset
            yield Reason("not covered", why, at)


def _said(record: Record, before: Turn) -> Iterator[str]:
    """Whatever a message has that our own commands did not add."""
    found = turn.blocks(record)
    if claude_facts.kind_of(record) == "assistant":
        for identity, name, command in found.calls:
            if not _is_ours(command):
                yield f"the call {identity} of {name}"
        return
    for identity in found.results:
        if not _is_ours(before.calls.get(identity, ("", "", 0))[1]):
            yield f"the result of {identity}"
    text = "\n".join(found.texts).strip()
    if text and not text.startswith(turn.NOT_ASKED):
        yield f"the user's message {turn.shown(text)}"


def _is_ours(command: str) -> bool:
    return bool(shell.subcommands(command))
