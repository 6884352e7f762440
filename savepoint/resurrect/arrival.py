"""What a resurrection has still to put in its place, once its successor is born.

The birth is the one step that decides: before it, nothing is there but temporary names; after it,
everything that waits gets its own, by this run or by the next.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError, OutputExistsError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, parse
from savepoint.resurrect import remember, successor
from savepoint.resurrect.apply import Apply
from savepoint.resurrect.moves import MOVE, Move
from savepoint.store import config, durable, savepoints
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store

_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "moves": schema.array(MOVE),
        "apply": schema.nullable(schema.mapping(schema.anything)),
        "session": schema.nullable(schema.text),
        "report": schema.mapping(schema.anything),
    }
)


class Arrival(NamedTuple):
    """What waits, and what to say when it is done."""

    moves: tuple[Move, ...]  # in this order
    apply: Apply | None  # files that go over the project
    session: str | None  # id of the session that comes back
    report: dict[str, Json]  # as `resurrect --json`

    def to_json(self) -> Json:
        """For its file."""
        return {
            "v": 1,
            "moves": [one.to_json() for one in self.moves],
            "apply": self.apply.to_json() if self.apply else None,
            "session": self.session,
            "report": self.report,
        }

    @classmethod
    def from_json(cls, value: Json) -> Arrival:
        """The inverse. Raises MalformedError."""
        _SHAPE(value, "arrival.json")
        match value:
            case {"moves": [*listed], "apply": over, "session": session, "report": dict(report)}:
                found = tuple(map(Move.from_json, listed))
                wanted = Apply.from_json(over) if over is not None else None
                return cls(found, wanted, str(session) if session else None, report)
            case _:
                raise MalformedError("arrival.json is not what its shape says")


def waiting(store: Store) -> list[InstancePaths]:
    """The successors whose resurrection a run has left unfinished."""
    return [one for one in savepoints.instances(store) if os.path.lexists(one.arrival)]


def finish(paths: InstancePaths) -> Arrival:
    """Put everything in its place; what is there already stays. From then on the successor is the
    current instance. The caller holds the store lock.

    Raises MalformedError (the note is damaged: it is given up), OutputExistsError, KeyFileError,
    DiskError.
    """
    found = _noted(paths)
    successor.settle(paths)
    if found.session is not None:
        remember.session(paths, savepoints.records(paths).all[-1], found.session)
    for one in found.moves:
        one.make()
    chosen = config.load(paths.store)
    chosen._replace(instance=paths.slug).save(paths.store)
    try:
        if found.apply is not None:
            found.apply.run()
    except OutputExistsError:  # a file was changed meanwhile: that is for its owner, not for us
        durable.remove(paths.arrival)
        raise
    durable.remove(paths.arrival)
    return found


def _noted(paths: InstancePaths) -> Arrival:
    """What waits. Where the note is damaged nobody knows what did, and that may keep no later run
    from its work: the successor stays as one that nothing came back to, and the note goes.
    """
    try:
        data = read_bounded(paths.arrival, limits.SMALL_DOCUMENT_BYTES) or b""
        return Arrival.from_json(parse(data))
    except MalformedError as failure:
        successor.settle(paths)
        durable.remove(paths.arrival)
        message = f"the list of what waited for {paths.slug} is damaged: {failure.message}"
        hint = "run it again: everything comes back anew, to a successor of its own"
        raise MalformedError(message, hint=hint) from failure
