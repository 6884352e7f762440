"""What a dynasty is, as a value, and the briefing that it gives."""

from __future__ import annotations

from savepoint.core import spelling
from savepoint.core.named import NamedTuple
from succession.dynasty.files import deviants, markdown
from succession.dynasty.files.meta import Meta
from succession.dynasty.session import briefing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from succession.dynasty.files.markdown import Page


class State(NamedTuple):
    """Everything that is read. Texts of files; empty where there is none."""

    meta: Meta
    day: str = ""
    dusk: str = ""
    dawn: str = ""
    vault: str = ""
    deviants: str = ""
    briefing: str = ""
    lineage: bytes = b""
    archive: bytes = b""

    @property
    def dusk_page(self) -> Page:
        """Dusk, parsed."""
        return markdown.parse(self.dusk, markdown.DUSK)

    @property
    def day_page(self) -> Page:
        """Day, parsed."""
        return markdown.parse(self.day, markdown.DAY)

    @property
    def dawn_page(self) -> Page:
        """Dawn, parsed."""
        return markdown.parse(self.dawn, markdown.DAWN)


def begun(branch: str, now: int, commit: str | None = None) -> State:
    """A dynasty with its first ruler, who knows nothing yet. now: Unix seconds; commit: of HEAD."""
    meta = Meta(branch, now, commit=commit)
    return State(
        meta,
        day=markdown.day(meta.title(), branch, spelling.time_text(now), (), ()),
        dawn=markdown.dawn(meta.title(meta.current + 1), "", ()),
    )


def brief(state: State, session: str = "") -> str:
    """The briefing; empty where there is nothing to tell. session: key of the one it is told to,
    whose first turn runs a succession that was suggested to another before.
    """
    dusk, meta = state.dusk_page, state.meta
    asked = meta.suggestion
    given = briefing.Briefing(
        meta.title(),
        meta.branch,
        state.vault,
        state.day_page.entries,
        tuple(dusk.layer(number) for number in (1, 2, 3)),
        sum(one.is_open for one in deviants.parse(state.deviants)),
        asked.reason if asked else "",
        told=asked is not None and asked.surfaced not in (None, session),
    )
    return "" if given.is_empty else briefing.text(given)


def briefed(state: State) -> State:
    """With the briefing that it has now."""
    return state._replace(briefing=brief(state))
