"""archive.jsonl: the original of every entry, once; only ever appended to.

What the tiers compress is found here again: a line holds type, title, Why and What or body as they
were recorded, or as somebody edited them later.
"""

from __future__ import annotations

import binascii

from savepoint.core import spelling
from savepoint.core.digest import sha256
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump, parse
from succession.dynasty.constants import FILE_BYTES
from succession.dynasty.files import entry
from succession.dynasty.files.entry import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from savepoint.core.strict_json import Json

_ID_AT = len('{"id":"')
_ID_END = _ID_AT + 64
DUSK = "dusk"  # where an edit was found that is perhaps of a compressed text
GIT, SAVEPOINT = "git", "savepoint"  # drawn from there


class Kept(NamedTuple):
    """A line of the archive."""

    entry: Entry
    source: str  # record | day | dusk | dawn | import | git | savepoint
    branch: str
    ruler: str  # `Claude 3`, in whose Day it was found
    time: int  # Unix seconds

    @property
    def line(self) -> bytes:
        """With its LF."""
        one = self.entry
        members: dict[str, Json] = {
            "id": one.id,
            "type": one.kind,
            "title": _spell(one.title),
            "why": _spell(one.why),
            "body": _spell(one.body),
            "source": self.source,
            "branch": self.branch,
            "ruler": self.ruler,
            "time": spelling.time_text(self.time),
        }
        return dump(members) + b"\n"


def lines_of(parts: Iterable[bytes], ids: Collection[str]) -> dict[str, tuple[bytes, ...]]:
    """The lines of these entries, by id, oldest first. parts: of an archive, each of whole lines.
    Not parsed, nor copied: few of them are ever asked for, and a long archive is looked through at
    every succession.
    """
    wanted = {one.encode(): one for one in ids}
    found: dict[str, tuple[bytes, ...]] = {}
    for data in parts:
        start = 0
        while start < len(data):
            end = data.find(b"\n", start)
            end = end if end >= 0 else len(data)
            one = wanted.get(data[start + _ID_AT : start + _ID_END])
            if one is not None:
                found[one] = (*found.get(one, ()), data[start:end])
            start = end + 1
    return found


def original(lines: Sequence[bytes]) -> Entry | None:
    """The entry as recorded, or edited last in Day; None where no line tells. What was edited in
    Dusk counts only where nothing else is there: it may be a compressed text.
    """
    kept = list(_readable(lines))
    whole = [one for one in kept if one.source != DUSK]
    return (whole or kept)[-1].entry if kept else None


def is_latest(lines: Sequence[bytes], one: Entry, source: str) -> bool:
    """Is that, found in `source`, the text that `original` gives? In Dusk any may stand where a
    whole one is known.
    """
    if source == DUSK and any(kept.source != DUSK for kept in _readable(lines)):
        return True
    known = original(lines)
    return known is not None and known.body == one.body


def read(data: bytes) -> list[Kept]:
    """All lines that can be read, in order."""
    return list(_readable(data.split(b"\n")))


def digest(text: str) -> str:
    """By which it is told whether a What or body was edited: half of its SHA-256, in hex."""
    return sha256(entry.to_bytes(text)).hexdigest()[:32]


def _readable(lines: Sequence[bytes]) -> Iterator[Kept]:
    for line in lines:
        try:
            yield _parse(line)
        except (MalformedError, KeyError, ValueError):
            continue  # no line of ours; it stays where it is


def _parse(line: bytes) -> Kept:
    value = parse(line, FILE_BYTES)
    if not isinstance(value, dict):
        raise MalformedError("not an object")
    title, why, body = (_unspell(value[name]) for name in ("title", "why", "body"))
    one = Entry(str(value["type"]), title, why, body)
    return Kept(
        one,
        str(value["source"]),
        str(value["branch"]),
        str(value["ruler"]),
        spelling.time_seconds(str(value["time"])),
    )


def _spell(text: str) -> Json:
    """As it is; bytes that are no UTF-8 in base64."""
    data = entry.to_bytes(text)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": binascii.b2a_base64(data, newline=False).decode()}
    return text


def _unspell(value: Json) -> str:
    if isinstance(value, dict):
        return entry.to_text(binascii.a2b_base64(str(value["b64"])))
    return str(value)
