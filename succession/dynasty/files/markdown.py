"""The Markdown files as people edit them: parts in order, none of which is ever lost.

Parsing and joining the parts again gives the same text, whatever it was. What is no entry and no
line of ours is TEXT: carried along as it stands, and told of (carried.py). A heading of any other
kind ends the entry above it, so that a note below an entry is not taken for a piece of it
(openclaw#116057).
"""

from __future__ import annotations

import re
from functools import lru_cache

from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty.files import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from succession.dynasty.files.entry import Entry

TITLE, COMMENT, SECTION, SUGGESTION = "title", "comment", "section", "suggestion"
ENTRY, TEXT, BLANK = "entry", "text", "blank"
DAY, DUSK, DAWN = "day.md", "dusk.md", "dawn.md"  # which page: each has headings of its own
DAY_ICON, DUSK_ICON, DAWN_ICON, LINEAGE_ICON = "☀️", "🌙", "🌅", "📜"
LAYER_TITLES = ("Layer 1 (detailed)", "Layer 2 (compressed)", "Layer 3 (one-liners)")
GIT_STATE, DUSK_WISDOM = "Git State", "Dusk Wisdom"
SUGGESTED = "Succession suggested: "
_PAGES_KEPT = 8  # texts that were parsed last: one turn asks for the same page several times


class Part(NamedTuple):
    """Some lines of a file."""

    what: str
    raw: str
    section: str = ""  # of ours: `1`, `2`, `3`, GIT_STATE, DUSK_WISDOM
    entry: Entry | None = None

    @property
    def text(self) -> str:
        """Without empty lines around."""
        return entry.trimmed(self.raw.split("\n"))


class Page(NamedTuple):
    """A file."""

    parts: tuple[Part, ...]

    @property
    def raw(self) -> str:
        """Its text."""
        return "".join(part.raw for part in self.parts)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order."""
        return tuple(part.entry for part in self.parts if part.entry)

    def layer(self, number: int) -> tuple[Entry, ...]:
        """The entries of a layer of Dusk. What stands before the first layer is as new as any."""
        wanted = {str(number), *([""] if number == 1 else [])}
        return tuple(one.entry for one in self.parts if one.entry and one.section in wanted)

    def texts(self) -> tuple[str, ...]:
        """What people wrote and is no entry, without empty lines around."""
        return tuple(one.text for one in self.parts if one.what == TEXT)

    def with_refs(self, refs: dict[str, int]) -> Page:
        """The same with the scores of these entries, by id; only their headers change."""
        return Page(tuple(_scored(part, refs) for part in self.parts))


@lru_cache(maxsize=_PAGES_KEPT)
def parse(text: str, page: str) -> Page:
    """The parts of a file, their raw text joined is the text. page: DAY, DUSK or DAWN."""
    lines = text.split("\n")
    whole = lines[:-1] if lines[-1] == "" else lines
    parts = list(_merged(_parts(whole, page)))
    if parts and not text.endswith("\n"):
        parts[-1] = parts[-1]._replace(raw=parts[-1].raw.removesuffix("\n"))
    return Page(tuple(parts))


def appended(text: str, one: Entry) -> str:
    """A file of blocks with one more at its end, and not a byte of it changed."""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + one.block


def replaced(page: Page, one: Entry) -> Page:
    """The page with another text for an entry that it has by that id."""
    return Page(
        tuple(
            part._replace(raw=_with_gap(one.block, part.raw), entry=one)
            if part.entry and part.entry.id == one.id
            else part
            for part in page.parts
        )
    )


def without(page: Page, ids: Iterable[str]) -> Page:
    """The page without these entries."""
    gone = set(ids)
    return Page(tuple(one for one in page.parts if not one.entry or one.entry.id not in gone))


def day(title: str, branch: str, born: str, texts: Sequence[str], entries: Sequence[Entry]) -> str:
    """The text of a Day. title: `Claude 3`; born: its time."""
    head = f"# {DAY_ICON} Day — {title}\n<!-- Branch: {branch} | Born: {born} -->\n"
    return "\n".join([head, *(f"{text}\n" for text in texts), *(one.block for one in entries)])


def dusk(title: str, texts: Sequence[Sequence[str]], layers: Sequence[Sequence[Entry]]) -> str:
    """The text of a Dusk. texts: those before the first layer, then those of each layer."""
    lines = [f"# {DUSK_ICON} Dusk — {title}\n", *(f"{text}\n" for text in texts[0])]
    for number, name in enumerate(LAYER_TITLES):
        shown = [f"{text}\n" for text in texts[number + 1]]
        if number == 0:
            shown += [one.block for one in layers[0]]
        elif layers[number]:
            shown.append("".join(one.in_layer(number + 1) for one in layers[number]))
        lines.append(f"## {name}\n" + "\n".join(shown))
    return "\n".join(lines)


def dawn(title: str, git: str, wisdom: Sequence[Entry], suggestion: str = "") -> str:
    """The text of a Dawn. git: the lines of its state, each with its LF."""
    asked = f"{SUGGESTED}{suggestion}\n" if suggestion else ""
    taken = "".join(one.line for one in wisdom)
    return (
        f"# {DAWN_ICON} Dawn — {title}\n<!-- Staged for next succession -->\n{asked}\n"
        f"## {GIT_STATE}\n{git}\n## {DUSK_WISDOM}\n{_MATCHED}\n{taken}"
    )


def suggesting(dawn: str, before: str, reason: str) -> str:
    """A Dawn with that suggestion in the place of the one before it, either empty for none, and all
    else as it was. A line of a person that begins as ours do is no suggestion.
    """
    lines = dawn.split("\n")
    ours = [n for n, line in enumerate(lines) if before and line.rstrip() == SUGGESTED + before]
    for at in ours[:1]:
        del lines[at]
    if reason:
        heads = [n for n, line in enumerate(lines) if _what(line) in (TITLE, COMMENT)]
        at = next((n + 1 for n in heads[1:2] or heads), 0)
        lines.insert(at, SUGGESTED + reason)
    return "\n".join(lines)


def _parts(lines: Sequence[str], page: str) -> Iterator[Part]:
    section, at, begun = "", 0, set[str]()
    while at < len(lines):
        line = lines[at]
        end, what = at + 1, _what(line)
        found = None
        if what == SECTION:
            name = _section(line)
            is_ours = name in _SECTIONS.get(page, ())
            section = name if is_ours else section
            what = SECTION if is_ours and _is_bare(line) and name not in begun else TEXT
            begun |= {name} if what == SECTION else set()
        elif what == ENTRY:
            end = _end(lines, at)
            found = entry.parse(lines[at:end])
            what = ENTRY if found else TEXT
        raw = "".join(f"{one}\n" for one in lines[at:end])
        yield Part(what, raw, "" if what == TITLE else section, found)
        at = end


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Texts that follow each other are one, with the empty lines between them."""
    open_: Part | None = None
    for part in parts:
        if open_ is not None and part.what in (TEXT, BLANK) and part.section == open_.section:
            open_ = open_._replace(raw=open_.raw + part.raw)
            continue
        if open_ is not None:
            yield open_
        open_ = part if part.what == TEXT else None
        if open_ is None:
            yield part
    if open_ is not None:
        yield open_


def _what(line: str) -> str:
    if not line.strip():
        return BLANK
    if not line.startswith(_FIRST_LETTERS):
        return TEXT
    if entry.is_header(line):
        return ENTRY
    for what, pattern in _OURS:
        if pattern.fullmatch(line):
            return what
    return TEXT


def _section(line: str) -> str:
    name = line.removeprefix("##").strip()
    return name.split()[1] if name.startswith("Layer") else name


def _is_bare(line: str) -> bool:
    """Is it a heading as we write it? Whatever else stands in it is a person's."""
    name = line.removeprefix("##").strip()
    return name in (GIT_STATE, DUSK_WISDOM, *LAYER_TITLES, *(one[:7] for one in LAYER_TITLES))


def _end(lines: Sequence[str], start: int) -> int:
    """Where the entry that begins there ends. An item has no empty line but within its Why."""
    is_item = lines[start].startswith("-")
    at = entry.why_end(lines, start) if is_item and entry.WHY_MARK in lines[start] else start + 1
    while at < len(lines) and not _begins_another(lines, at):
        if lines[at].startswith("Why:"):
            at = entry.why_end(lines, at)
        elif is_item and not lines[at].strip():
            break
        else:
            at += 1
    return at


def _begins_another(lines: Sequence[str], at: int) -> bool:
    """Is it the header of an entry, or a heading: marked, or a lone line underlined?"""
    if entry.is_header(lines[at]) or entry.is_heading(lines[at]):
        return True
    alone = bool(lines[at].strip()) and not lines[at - 1].strip()
    return alone and at + 1 < len(lines) and entry.is_underline(lines[at + 1])


def _scored(part: Part, refs: dict[str, int]) -> Part:
    one = part.entry
    if one is None or refs.get(one.id, one.ref) == one.ref:
        return part
    ref = refs[one.id]
    return part._replace(raw=entry.with_ref(part.raw, ref), entry=one._replace(ref=ref))


def _with_gap(block: str, raw: str) -> str:
    """The block, with the empty lines at the end of what it replaces."""
    return block + raw[len(raw.rstrip("\n")) + 1 :]


_FIRST_LETTERS = ("#", "-", "<", SUGGESTED[0])  # of what is not TEXT: most lines are told by them
_SECTIONS = {DUSK: ("1", "2", "3"), DAWN: (GIT_STATE, DUSK_WISDOM)}
_MATCHED = "<!-- Keyword-matched entries from Dusk relevant to current work -->"
_BRANCH = r"<!-- Branch: .* \| Born: .* -->"
_STAGED = "<!-- Staged for next succession -->"
DAWN_COMMENTS = (_STAGED, _MATCHED)
_OURS = tuple(
    (what, late(rf"(?:{pattern})[ \t\r]*", re.DOTALL))
    for what, pattern in (
        (TITLE, rf"# (?:{DAY_ICON} Day|{DUSK_ICON} Dusk|{DAWN_ICON} Dawn) — .*"),
        (COMMENT, rf"{_BRANCH}|{_STAGED}|{re.escape(_MATCHED)}"),
        (SECTION, rf"## (?:Layer [123](?: \(.*)?|{GIT_STATE}|{DUSK_WISDOM})"),
        (SUGGESTION, rf"{SUGGESTED}.*"),
    )
)
