"""What people wrote around the entries: a succession carries it along, word for word, and tells it.

A line of ours is what we would write: what only looks like one, as a title or a comment with other
words in it, is a person's, and is carried as any other.
"""

from __future__ import annotations

import re

from succession.dynasty.constants import EPITHET_KEYWORDS
from succession.dynasty.epithet import BRIEF, JOURNEYMAN
from succession.dynasty.files import entry, markdown, tiers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from succession.dynasty.files.markdown import Page, Part
    from succession.dynasty.files.meta import Meta

_QUOTED = 80  # characters of a text that is quoted
_HEADS = (markdown.TITLE, markdown.COMMENT, markdown.SUGGESTION)


def texts(page: Page, meta: Meta, *sections: str) -> tuple[str, ...]:
    """What is no entry and no line of ours, in these sections, without empty lines around."""
    found = (one for one in page.parts if one.section in sections)
    return tuple(one.text for one in found if _is_theirs(one, meta))


def notes(pages: Sequence[Page], meta: Meta) -> tuple[str, ...]:
    """What was not understood, quoted: it is carried along; and what of an entry the archive alone
    keeps. pages: Day, Dusk, Dawn.
    """
    found = []
    for name, page in zip((markdown.DAY, markdown.DUSK, markdown.DAWN), pages, strict=True):
        known: dict[str, str] = {}
        for part in page.parts:
            if part.section != markdown.GIT_STATE and _is_theirs(part, meta):
                found += _quoted(name, part.text)
            found += _unlabelled(name, part)
            found += _archived(name, part, known)
    return tuple(found)


def _is_theirs(part: Part, meta: Meta) -> bool:
    if part.what in _HEADS:
        return not any(pattern.fullmatch(part.raw.strip()) for pattern in _ours(meta))
    return part.what == markdown.TEXT


def _ours(meta: Meta) -> Iterator[re.Pattern[str]]:
    """The heads of the three pages, of any ruler and time."""
    epithets = {*EPITHET_KEYWORDS, BRIEF, JOURNEYMAN, *meta.epithets.values()}
    earned = "|".join(map(re.escape, epithets))
    icons = f"{markdown.DAY_ICON} Day|{markdown.DUSK_ICON} Dusk|{markdown.DAWN_ICON} Dawn"
    yield re.compile(rf'# (?:{icons}) — {re.escape(meta.name)} [0-9]+(?: "(?:{earned})")?')
    yield re.compile(rf"<!-- Branch: {re.escape(meta.branch)} \| Born: [0-9TZ:.+-]+ -->")
    yield re.compile("|".join(map(re.escape, markdown.DAWN_COMMENTS)))
    if meta.suggestion:
        yield re.compile(re.escape(markdown.SUGGESTED + meta.suggestion.reason))


def _quoted(name: str, text: str) -> list[str]:
    lines = [one for one in text.split("\n") if one and not one.startswith(tiers.POINTER)]
    if not lines:
        return []
    start = lines[0][:_QUOTED]
    told = "1 line is no entry and is kept as it is"
    if len(lines) > 1:
        told = f"{len(lines)} lines are no entry and are kept as they are"
    return [f"{name}: {told}: {start!r}"]


def _unlabelled(name: str, part: Part) -> list[str]:
    """An empty line ends a Why where no indented one follows; what stands behind is its What, as
    the format has it, and gets shorter with time, of which its author may not have thought.
    """
    lines = part.raw.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith("Why:")), None)
    if part.entry is None or part.entry.kind != entry.DECISION or start is None:
        return []
    behind = lines[entry.why_end(lines, start) :]
    first = next((line for line in behind if line.strip()), "What:")
    if first.startswith("What:"):
        return []
    told = "what follows the empty line in its Why counts as its What; indent it by five spaces"
    return [f"{name}: {part.entry.title}: {told}: {first[:_QUOTED]!r}"]


def _archived(name: str, part: Part, known: dict[str, str]) -> list[str]:
    """An entry that stands twice is one, and one below Layer 1 has no text. known: id → text."""
    one = part.entry
    if one is None or not one.body:
        return []
    is_low = name == markdown.DUSK and part.section in ("2", "3") and not one.decree
    if not is_low and known.setdefault(one.id, one.body) == one.body:
        return []
    why = "in this layer" if is_low else "beside the same one above"
    start = one.body.split("\n")[0][:_QUOTED]
    return [f"{name}: {one.title}: its text is kept in the archive alone, {why}: {start!r}"]
