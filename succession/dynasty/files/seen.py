"""sessions.json: which sessions were counted, and how far each transcript was read.

Of the whole project: a session may go from branch to branch, and each of its calls counts once.
Derived: where it is lost or damaged it begins anew, and nothing counts that is older than that.
"""

from __future__ import annotations

from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from succession.dynasty.constants import CALLS_KEPT, SESSIONS_KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

NOT_A_SESSION = frozenset({"compact", "resume", "clear", "fork"})  # what SessionStart says of it


class Session(NamedTuple):
    """One session of the agent."""

    counts: bool = True  # False: it came from a compaction, resume, clear or fork
    counted_in: tuple[str, ...] = ()  # folders of the dynasties whose count it is in
    offset: int = 0  # bytes of its transcript that were read
    hits: dict[str, tuple[str, ...]] = {}  # noqa: RUF012  # scores.Hits; never changed in place


class Seen(NamedTuple):
    """sessions.json."""

    sessions: dict[str, Session] = {}  # noqa: RUF012  # by key, the last ones; never changed in place
    calls: tuple[str, ...] = ()  # keys of calls that were counted, newest last

    def session(self, key: str) -> Session:
        """What is known of a session; a new one counts."""
        return self.sessions.get(key, Session())

    def with_session(self, key: str, one: Session) -> Seen:
        """The same with that session as the newest."""
        others = {name: other for name, other in self.sessions.items() if name != key}
        kept = list({**others, key: one}.items())[-SESSIONS_KEPT:]
        return self._replace(sessions=dict(kept))

    def with_calls(self, keys: tuple[str, ...]) -> Seen:
        """The same with these calls counted."""
        return self._replace(calls=(*self.calls, *keys)[-CALLS_KEPT:])

    def to_bytes(self) -> bytes:
        """The file."""
        members: dict[str, Json] = {
            "v": 1,
            "sessions": {
                key: {
                    "counts": one.counts,
                    "counted_in": list(one.counted_in),
                    "offset": one.offset,
                    "hits": {entry: list(paths) for entry, paths in one.hits.items()},
                }
                for key, one in self.sessions.items()
            },
            "calls": list(self.calls),
        }
        return dump(members) + b"\n"


def load(data: bytes | None) -> Seen:
    """The Seen of a file; an empty one where there is none that can be read."""
    if data is None:
        return Seen()
    try:
        return _load(data)
    except (MalformedError, KeyError, TypeError, AttributeError):
        return Seen()


def _load(data: bytes) -> Seen:
    value = parse(data)
    if not isinstance(value, dict) or value["v"] != 1:
        raise MalformedError("not of this version")
    listed, calls = value["sessions"], value["calls"]
    if not isinstance(listed, dict) or not isinstance(calls, list):
        raise MalformedError("no sessions")
    return Seen({key: _session(one) for key, one in listed.items()}, tuple(map(str, calls)))


def _session(value: Json) -> Session:
    match value:
        case {
            "counts": bool(counts),
            "counted_in": [*folders],
            "offset": int(offset),
            "hits": dict(hits),
        }:
            paths = {one: tuple(map(str, found)) for one, found in hits.items()}  # type: ignore[arg-type]  # a list
            return Session(counts, tuple(map(str, folders)), offset, paths)
        case _:
            raise MalformedError("no session")
