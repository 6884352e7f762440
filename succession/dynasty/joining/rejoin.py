"""Entries of the dynasty that is here and that one out of a savepoint does not know: they stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from succession.dynasty import keep, record
from succession.dynasty.files import archive, markdown, meta
from succession.dynasty.files.entry import to_bytes, to_text
from succession.dynasty.joining import admit
from succession.dynasty.joining.admit import Admitted
from succession.dynasty.state import State, brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Life


class Joined(NamedTuple):
    """A branch of a dynasty that is put back, with what was recorded here since."""

    files: dict[str, bytes]  # of the branch: those that differ from what is put back
    archive: bytes  # lines of entries that had none
    stays: tuple[Entry, ...]  # in Day now


def joined(
    here: Mapping[str, bytes | None], back: Mapping[str, bytes], folder: str, now: int
) -> Joined:
    """The branch of that folder as it is to be: each entry of a tier here that `back` has in none,
    nor in its lineage, stands behind its Day, as it was recorded, unless it was drawn from git or a
    savepoint. here, back: path → bytes; back has the branch whole. now: Unix seconds. The same
    again, once that is here, gives the same.
    """
    vault = back[_VAULT] if _VAULT in back else here.get(_VAULT)
    state = _state(back, folder, to_text(vault or b""))
    ours = _lives(here, folder)
    stays = [
        one
        for one in _unknown(here, state, folder)
        if one.id not in ours or not ours[one.id].drawn  # else it is drawn again
    ]
    if not stays:
        return Joined({}, b"", ())
    ruler, session = state.meta.current, state.meta.sessions
    own = {
        one.id: ours[one.id]._replace(ruler=ruler, session=session, layer3_since=None)
        for one in stays
        if one.id in ours
    }
    known = state.meta._replace(lives={**state.meta.lives, **own})
    admitted = admit.admit(Admitted(known), stays, "day", now)
    day = state.day
    for one in stays:
        day = markdown.appended(day, one)
    lives = {one.id: admitted.meta.lives[one.id] for one in stays}  # in this order also next time
    known = known._replace(lives={**state.meta.lives, **lives})
    state = state._replace(meta=known, day=day)
    files = {
        f"{folder}/{keep.META}": state.meta.to_bytes(),
        f"{folder}/{keep.PAGES['day']}": to_bytes(day),
        f"{folder}/{keep.PAGES['briefing']}": to_bytes(brief(state)),
    }
    return Joined(files, b"".join(one.line for one in admitted.kept), tuple(stays))


def _unknown(here: Mapping[str, bytes | None], state: State, folder: str) -> list[Entry]:
    """What Dusk has made shorter is as it was recorded again: Day has whole texts."""
    day, dusk = (to_text(here.get(f"{folder}/{keep.PAGES[one]}") or b"") for one in ("day", "dusk"))
    ours = {one.id: one for one in markdown.parse(dusk, markdown.DUSK).entries}
    originals = archive.lines_of((here.get(keep.ARCHIVE) or b"",), ours)
    for one, lines in originals.items():
        whole = archive.original(lines)
        ours[one] = ours[one]._replace(body=whole.body if whole else ours[one].body)
    entries = (*markdown.parse(day, markdown.DAY).entries, *ours.values())
    known = {one.id for one in (*state.day_page.entries, *state.dusk_page.entries)}
    fresh = {one.id: one for one in entries if one.id not in known}  # of a copy in Day its original
    return [
        one._replace(candidate=False) for one in fresh.values() if not record.is_buried(state, one)
    ]


def _lives(here: Mapping[str, bytes | None], folder: str) -> dict[str, Life]:
    path = f"{folder}/{keep.META}"
    try:
        return meta.load(here.get(path) or b"", path).lives
    except SavepointError:  # it is damaged, which is why another is put back
        return {}


def _state(files: Mapping[str, bytes], folder: str, vault: str) -> State:
    path = f"{folder}/{keep.META}"
    texts = {
        field: to_text(files.get(f"{folder}/{name}", b"")) for field, name in keep.PAGES.items()
    }
    return State(
        meta.load(files[path], path),
        texts["day"],
        texts["dusk"],
        texts["dawn"],
        vault,
        to_text(files.get(keep.SHARED["deviants"], b"")),
        lineage=files.get(keep.LINEAGE, b""),
    )


_VAULT = keep.SHARED["vault"]
