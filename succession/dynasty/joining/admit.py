"""Entries that are not known yet, or were edited by hand: each gets a life; its text is kept."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from succession.dynasty import words
from succession.dynasty.constants import PATHS_KEPT
from succession.dynasty.files import archive
from succession.dynasty.files.archive import GIT, SAVEPOINT, Kept
from succession.dynasty.files.meta import Life

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Meta

_DRAWN = {GIT, SAVEPOINT}
_DIGESTS_KEPT = 4  # texts of one entry that we wrote: full, one-liner, compressed, an edit


class Admitted(NamedTuple):
    """The dynasty's data with a life for each entry, and what is new for the archive."""

    meta: Meta
    kept: tuple[Kept, ...] = ()


def admit(
    before: Admitted, entries: Iterable[Entry], source: str, now: int, origin: str = ""
) -> Admitted:
    """With these entries, found in `source` (archive.Kept) now. origin: key of the session that
    recorded them; empty for people, who write with an editor.
    """
    meta, lives, kept = before.meta, dict(before.meta.lives), list(before.kept)
    for one in entries:
        digest, life = archive.digest(one.body), lives.get(one.id)
        if life is not None and (not one.body or digest in life.shown):
            continue
        if life is None:
            life = Life(now, meta.current, meta.sessions, origin, (), drawn=source in _DRAWN)
        paths = tuple(sorted(words.of(one, life.paths).paths))[:PATHS_KEPT]
        lives[one.id] = shown(life, one.body)._replace(paths=paths)
        kept.append(Kept(one, source, meta.branch, meta.title(), now))
    return Admitted(meta._replace(lives=lives), tuple(kept))


def shown(life: Life, body: str) -> Life:
    """The life of an entry whose What or body we write so."""
    digest = archive.digest(body)
    if digest in life.shown:
        return life
    return life._replace(shown=(*life.shown, digest)[-_DIGESTS_KEPT:])
