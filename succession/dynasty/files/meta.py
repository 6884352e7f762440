"""dynasty.json: who rules, since when, and what is known of each entry beside its text.

A file that is not as it must be is refused, with the way back: to begin again at ruler 1 would
forget everything without a word (peers.md 3.3, defect 5).
"""

from __future__ import annotations

from savepoint.core import schema, spelling
from savepoint.core.errors import DynastyError, MalformedError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from succession.dynasty.constants import FILE_BYTES, RULER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


class Life(NamedTuple):
    """What is known of an entry; kept by its id, so that it stays when the text is compressed."""

    born: int  # Unix seconds
    ruler: int  # in whose Day
    session: int  # how many sessions had been counted by then
    origin: str  # key of the session that recorded it; empty for a person
    shown: tuple[str, ...]  # digests of What or body as we wrote them: others are people's edits
    paths: tuple[str, ...] = ()  # that its full text names: a compressed one may not
    referenced: tuple[str, ...] = ()  # keys of other sessions that scored for it
    reigns: int = 0  # in which it had a score
    layer3_since: int | None = None  # the ruler in whose Dusk it came to Layer 3
    vaulted: bool = False  # once; never a second time by itself
    drawn: bool = False  # from git or a savepoint: nobody said it, so that it contradicts nothing


class Suggestion(NamedTuple):
    """A succession that is suggested, and whether a session was told so."""

    reason: str
    triggers: tuple[str, ...]
    session: str  # key of the session that it was noted in
    surfaced: str | None = None  # key of the session that was told


class Meta(NamedTuple):
    """dynasty.json. Times in Unix seconds."""

    branch: str
    born: int  # of the present Day
    name: str = RULER
    current: int = 1
    last_succession: int | None = None
    sessions_since_succession: int = 0
    sessions: int = 0  # counted, ever
    epithets: dict[str, str] = {}  # noqa: RUF012  # `Claude 1` → the Builder; never changed in place
    commit: str | None = None  # up to which commits are in observations
    reason: str | None = None  # of the last succession
    suggestion: Suggestion | None = None
    declined: tuple[str, ...] = ()  # triggers
    lives: dict[str, Life] = {}  # noqa: RUF012  # by id of the entry; never changed in place

    def title(self, number: int | None = None) -> str:
        """`Claude 3`: the present ruler, or another."""
        return f"{self.name} {self.current if number is None else number}"

    def full_title(self, number: int) -> str:
        """`Claude 3 "the Builder"`, as far as an epithet was earned."""
        title = self.title(number)
        return f'{title} "{self.epithets[title]}"' if title in self.epithets else title

    def to_bytes(self) -> bytes:
        """The file."""
        members: dict[str, Json] = {
            "v": 1,
            "name": self.name,
            "branch": self.branch,
            "current": self.current,
            "born": spelling.time_text(self.born),
            "last_succession": _time(self.last_succession),
            "sessions_since_succession": self.sessions_since_succession,
            "sessions": self.sessions,
            "epithets": dict(self.epithets),
            "commit": self.commit,
            "reason": self.reason,
            "suggestion": _suggestion(self.suggestion),
            "declined": list(self.declined),
            "entries": {one: _life(life) for one, life in self.lives.items()},
        }
        return dump(members) + b"\n"


def load(data: bytes, path: str) -> Meta:
    """The Meta of a file. Raises DynastyError, UnsupportedFormatError."""
    try:
        return _load(data)
    except UnsupportedFormatError:
        raise
    except MalformedError as failure:
        raise DynastyError(f"{path}: {failure.message}") from None


def _load(data: bytes) -> Meta:
    value = parse(data, FILE_BYTES)
    if not isinstance(value, dict):
        raise MalformedError("not an object")
    if type(version := value.get("v")) is int and version > 1:
        raise UnsupportedFormatError(f"dynasty.json of version {version}")
    _check(value)
    asked = value["suggestion"]
    return Meta(
        branch=str(value["branch"]),
        born=spelling.time_seconds(str(value["born"])),
        name=str(value["name"]),
        current=_int(value["current"]),
        last_succession=_seconds(value["last_succession"]),
        sessions_since_succession=_int(value["sessions_since_succession"]),
        sessions=_int(value["sessions"]),
        epithets={name: str(text) for name, text in _members(value["epithets"]).items()},
        commit=_text(value["commit"]),
        reason=_text(value["reason"]),
        suggestion=None if asked is None else _suggested(_members(asked)),
        declined=tuple(map(str, _items(value["declined"]))),
        lives={one: _lived(_members(life)) for one, life in _members(value["entries"]).items()},
    )


def _check(value: dict[str, Json]) -> None:
    """Every member is there and of its type; in any order, since people may have edited it."""
    missing = [name for name in _SHAPE if name not in value]
    if missing:
        raise MalformedError(f"lacks {', '.join(missing)}")
    for name, check in _SHAPE.items():
        check(value[name], name)


def _life(one: Life) -> Json:
    return {
        "born": spelling.time_text(one.born),
        "ruler": one.ruler,
        "session": one.session,
        "origin": one.origin,
        "shown": list(one.shown),
        "paths": list(one.paths),
        "referenced": list(one.referenced),
        "reigns": one.reigns,
        "layer3_since": one.layer3_since,
        "vaulted": one.vaulted,
        "drawn": one.drawn,
    }


def _lived(value: dict[str, Json]) -> Life:
    since = value["layer3_since"]
    return Life(
        spelling.time_seconds(str(value["born"])),
        _int(value["ruler"]),
        _int(value["session"]),
        str(value["origin"]),
        tuple(map(str, _items(value["shown"]))),
        tuple(map(str, _items(value["paths"]))),
        tuple(map(str, _items(value["referenced"]))),
        _int(value["reigns"]),
        None if since is None else _int(since),
        value["vaulted"] is True,
        value["drawn"] is True,
    )


def _suggestion(one: Suggestion | None) -> Json:
    if one is None:
        return None
    return {
        "reason": one.reason,
        "triggers": list(one.triggers),
        "session": one.session,
        "surfaced": one.surfaced,
    }


def _suggested(value: dict[str, Json]) -> Suggestion:
    triggers = tuple(map(str, _items(value["triggers"])))
    return Suggestion(
        str(value["reason"]), triggers, str(value["session"]), _text(value["surfaced"])
    )


def _time(seconds: int | None) -> Json:
    return None if seconds is None else spelling.time_text(seconds)


def _seconds(value: Json) -> int | None:
    return None if value is None else spelling.time_seconds(str(value))


def _text(value: Json) -> str | None:
    return None if value is None else str(value)


def _int(value: Json) -> int:
    if type(value) is not int:
        raise MalformedError("a number is none")
    return value


def _members(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise MalformedError("an object is none")
    return value


def _items(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise MalformedError("a list is none")
    return value


_moment = schema.spelled(spelling.time_seconds)
_texts = schema.array(schema.text)
_SHAPE: dict[str, schema.Check] = {
    "v": schema.one_of(1),
    "name": schema.text,
    "branch": schema.text,
    "current": schema.positive,
    "born": _moment,
    "last_succession": schema.nullable(_moment),
    "sessions_since_succession": schema.count,
    "sessions": schema.count,
    "epithets": schema.mapping(schema.text),
    "commit": schema.nullable(schema.text),
    "reason": schema.nullable(schema.text),
    "suggestion": schema.nullable(
        schema.members(
            {
                "reason": schema.text,
                "triggers": _texts,
                "session": schema.text,
                "surfaced": schema.nullable(schema.text),
            }
        )
    ),
    "declined": _texts,
    "entries": schema.mapping(
        schema.members(
            {
                "born": _moment,
                "ruler": schema.count,
                "session": schema.count,
                "origin": schema.text,
                "shown": _texts,
                "paths": _texts,
                "referenced": _texts,
                "reigns": schema.count,
                "layer3_since": schema.nullable(schema.count),
                "vaulted": schema.truth,
                "drawn": schema.truth,
            }
        )
    ),
}
