"""lineage.md: what has left the tiers, with its full text; only ever appended to."""

from __future__ import annotations

from savepoint.core import spelling
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty.files import entry, markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from succession.dynasty.files.entry import Entry

_SECTION = "## Dynasty of "
_FACTS = 2  # lines below a header; what follows is text, whatever it looks like


class Ancestor(NamedTuple):
    """An entry of the lineage."""

    entry: Entry  # with its full text; `ref` is the score that it had at the end
    ruler: int  # in whose Day it was recorded
    demoted: str  # when
    section: str = ""  # `Claude — main`; filled in by `parse`

    @property
    def block(self) -> str:
        """As it stands in the file."""
        one = self.entry
        head, _, rest = one.block.partition("\n")
        tags = "[decree] " if one.decree else ""
        head = f"### [dynasty:{self.ruler}] {tags}[{one.kind}] {one.title}"
        return f"{head}\nDemoted: {self.demoted}\nOriginal ref: {one.ref}\n{rest}"


def ancestor(one: Entry, ruler: int, now: int) -> Ancestor:
    """An entry that leaves the tiers now (Unix seconds)."""
    return Ancestor(one._replace(candidate=False), ruler, spelling.time_text(now))


def addition(data: bytes, section: str, gone: Sequence[Ancestor]) -> bytes:
    """What to append to a lineage so that it holds these as well. section: `Claude — main`."""
    if not gone:
        return b""
    text = "" if data else f"# {markdown.LINEAGE_ICON} Lineage\n"
    if data and not data.endswith(b"\n"):
        text = "\n"
    heading = f"{_SECTION}{section}"
    if _last_heading(data) != heading:
        text += f"\n{heading}\n"
    return entry.to_bytes(text + "".join(f"\n{one.block}" for one in gone))


def parse(text: str) -> Iterator[Ancestor]:
    """All entries of a lineage. What is none of ours is passed over; it stays in the file."""
    section, block = "", list[str]()
    for line in [*text.split("\n"), _SECTION]:
        if block and (_HEADER.match(line) or entry.is_heading(line)):
            found = _ancestor(block, section)
            if found:
                yield found
            block = []
        if line.startswith(_SECTION):
            section = line.removeprefix(_SECTION).strip()
        if block or _HEADER.match(line):
            block.append(line)


def _ancestor(lines: list[str], section: str) -> Ancestor | None:
    match = _HEADER.match(lines[0])
    if match is None:
        return None
    facts: dict[str, str] = {}
    at = 1
    while at < min(len(lines), 1 + _FACTS) and (fact := _FACT.fullmatch(lines[at])):
        facts[fact[1]] = fact[2]
        at += 1
    ref = facts.get("Original ref", "0")
    header = f"### [ref:{ref if ref.isdigit() else 0}] {lines[0][match.end() :]}"
    found = entry.parse([header, *lines[at:]])
    return found and Ancestor(found, int(match[1]), facts.get("Demoted", ""), section)


def _last_heading(data: bytes) -> str:
    """Of a text that may be long: nothing of it but that line is copied."""
    start = _SECTION.encode()
    at = data.rfind(b"\n" + start) + 1
    if not data.startswith(start, at):
        return ""
    end = data.find(b"\n", at)
    return entry.to_text(data[at : end if end >= 0 else len(data)]).strip()


_HEADER = late(r"### \[dynasty:([0-9]{1,9})\][ \t]+")
_FACT = late(r"(Demoted|Original ref): (.*)")
