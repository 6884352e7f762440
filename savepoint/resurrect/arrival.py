"""What a resurrection has still to put in its place, once its successor is born.

The birth is the one step that decides: before it, nothing is there but temporary names; after it,
everything that waits gets its own, by this run or by the next.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import DiskError, MalformedError, OutputExistsError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse
from savepoint.resurrect import remember, successor
from savepoint.resurrect.apply import Apply
from savepoint.resurrect.moves import MOVE, Move
from savepoint.store import config, durable, savepoints
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store

STAYS_OUT = "stays out of the project: "  # of a file that was to go over it
_WHOLE = schema.members(
    {"v": schema.one_of(1), "sha256": schema.text, "waits": schema.mapping(schema.anything)}
)
_SHAPE = schema.members(
    {
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

    def data(self) -> bytes:
        """For its file, with a hash: half of what waited would pass for all of it. Raises
        SavepointError: so long that no run would read it.
        """
        waits: dict[str, Json] = {
            "moves": [one.to_json() for one in self.moves],
            "apply": self.apply.to_json() if self.apply else None,
            "session": self.session,
            "report": self.report,
        }
        data = dump({"v": 1, "sha256": _digest(waits), "waits": waits}) + b"\n"
        if len(data) > limits.ARRIVAL_BYTES:
            raise SavepointError(
                f"the list of what comes back has {len(data)} bytes: at most "
                f"{limits.ARRIVAL_BYTES} can be finished after a crash",
                hint="`--only` brings the parts back one by one",
            )
        return data

    @classmethod
    def parse(cls, data: bytes) -> Arrival:
        """The inverse. Raises MalformedError."""
        value = parse(data, limits.ARRIVAL_BYTES)
        _WHOLE(value, "arrival.json")
        match value:
            case {"sha256": sha256, "waits": waits} if sha256 == _digest(waits):
                _SHAPE(waits, "waits")
            case _:
                raise MalformedError("arrival.json is not as it was written")
        match waits:
            case {"moves": [*listed], "apply": over, "session": session, "report": dict(report)}:
                found = tuple(map(Move.from_json, listed))
                wanted = Apply.from_json(over) if over is not None else None
                return cls(found, wanted, str(session) if session else None, report)
            case _:
                raise MalformedError("arrival.json is not what its shape says")


def _digest(waits: Json) -> str:
    return hashlib.sha256(dump(waits)).hexdigest()


def waiting(store: Store) -> list[InstancePaths]:
    """The successors whose resurrection a run has left unfinished."""
    return [one for one in savepoints.instances(store) if os.path.lexists(one.arrival)]


def finish(paths: InstancePaths) -> Arrival:
    """Put everything in its place; what is there already stays. From then on the successor is the
    current instance. The report names the files that stayed out of the project. The caller holds
    the store lock.

    Raises MalformedError (the note is damaged), OutputExistsError (a place is taken): then it is
    given up. KeyFileError, DiskError.
    """
    try:
        found = _noted(paths)
        successor.settle(paths)
        if found.session is not None:
            remember.session(paths, savepoints.records(paths).all[-1], found.session)
        for one in found.moves:
            one.make()
    except (MalformedError, OutputExistsError):
        give_up(paths)
        raise
    chosen = config.load(paths.store)
    chosen._replace(instance=paths.slug).save(paths.store)
    try:
        put_over(found.apply, found.report)
    except DiskError as failure:  # all else is there, and who goes on is to be told
        _list(found.report, [("files", failure.message)])
    durable.remove(paths.arrival)
    return found


def put_over(over: Apply | None, report: dict[str, Json]) -> None:
    """Put files over the project; those that stay out of it are named in the report. Raises
    DiskError.
    """
    left = over.run() if over is not None else []
    _list(report, [(path, "another is there by now") for path in left])


def _list(report: dict[str, Json], left: list[tuple[str, str]]) -> None:
    told = report["left_out"]
    assert isinstance(told, list)  # noqa: S101  # steps made it; for the type checker
    told += [{"path": path, "reason": STAYS_OUT + reason} for path, reason in left]


def give_up(paths: InstancePaths) -> None:
    """What cannot be put into its place may keep no later run from its work: the successor stays as
    one that nothing came back to, and the note goes. Raises KeyFileError, DiskError.
    """
    try:
        waits = _noted(paths).moves
    except MalformedError:
        waits = ()  # what it named is swept later
    for one in waits:
        one.drop()
    try:
        successor.settle(paths)
    finally:
        durable.remove(paths.arrival)


def _noted(paths: InstancePaths) -> Arrival:
    try:
        return Arrival.parse(read_bounded(paths.arrival, limits.ARRIVAL_BYTES) or b"")
    except MalformedError as failure:
        message = f"the list of what waited for {paths.slug} is damaged: {failure.message}"
        hint = "run it again: everything comes back anew, to a successor of its own"
        raise MalformedError(message, hint=hint) from failure
