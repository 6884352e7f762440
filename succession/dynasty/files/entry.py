"""Entries: how one is made, spelled as a block or as a line, and read back from either.

    ### [ref:5] [decision] Chose JWT          - [ref:2] [decision] Chose JWT — Why: Verification …
    Why: Verification is asymmetric.               HS256 shares a secret.
         HS256 shares a secret.
    What: In auth.service.ts.

The bytes behind `Why: `, with those of its further lines, are the Why, and nothing ever changes
them. A line ends at LF and nowhere else. `make` indents every further line of a Why, and each line
of another text that would be structure, by five spaces, which are part of it from then on: so a
heading or an entry inside a text is never taken for one (peers.md 3.3, defect 8).
"""

from __future__ import annotations

import re
from functools import lru_cache

from savepoint.core import limits
from savepoint.core.digest import sha256
from savepoint.core.errors import UsageError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty.constants import TITLE_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DECISION, OBSERVATION = "decision", "observation"
INDENT = "     "
WHY_MARK = " — Why: "
_KEPT = 512  # ids and headers that were asked for last: each is asked for some twenty times


class Entry(NamedTuple):
    """One item of the dynasty."""

    kind: str  # DECISION | OBSERVATION
    title: str
    why: str  # of a decision
    body: str  # its What, or what was observed
    ref: int = 0
    decree: bool = False
    candidate: bool = False  # for the vault, which is full

    @property
    def id(self) -> str:
        """SHA-256 of type, title and Why, in hex: what stays when all else is compressed."""
        return _id(self.kind, self.title, self.why)

    @property
    def text(self) -> str:
        """Title, Why and What or body: what words and paths are looked for in."""
        return "\n".join(filter(None, (self.title, self.why, self.body)))

    @property
    def block(self) -> str:
        """As a block, with the LF at its end."""
        lines = [f"### {self._tags}{self.title}"]
        if self.why:
            lines.append(f"Why: {self.why}")
        if self.body:
            lines.append(f"What: {self.body}" if self.kind == DECISION else self.body)
        return "\n".join(lines) + "\n"

    @property
    def line(self) -> str:
        """As an item, with the LF at its end: title and Why, without What or body."""
        why = WHY_MARK + self.why if self.why else ""
        return f"- {self._tags}{self.title}{why}\n"

    def in_layer(self, number: int) -> str:
        """As it stands in a layer of Dusk, with the LF at its end: below the first as an item. A
        decree keeps its What or body there as well, in a block where empty lines would end an item.
        """
        if number == 1:
            return self.block
        if not (self.decree and self.body):
            return self.line
        if not all(line.strip() for line in self.body.split("\n")):
            return self.block
        return self.line + (f"What: {self.body}\n" if self.kind == DECISION else f"{self.body}\n")

    @property
    def _tags(self) -> str:
        names = [f"ref:{self.ref}"]
        names += ["vault-candidate"] if self.candidate else []
        names += ["decree"] if self.decree else []
        return "".join(f"[{name}] " for name in [*names, self.kind])


def make(kind: str, title: str, why: str, body: str) -> Entry:
    """A new entry of texts that may hold anything. Raises UsageError for what cannot be one."""
    import unicodedata  # not for who only reads entries

    title = title.strip()
    if not title or len(title) > TITLE_CHARS:
        raise UsageError(f"a title has 1 to {TITLE_CHARS} characters", hint="say more in the text")
    if any(unicodedata.category(c) in _UNCLEAN for c in title):
        raise UsageError("a title is one line without control characters")
    if WHY_MARK in f" {title} " or _TAGS.match(title):
        raise UsageError(f"a title holds no {WHY_MARK.strip()!r} and begins with no tag")
    if any("\0" in text for text in (why, body)):
        raise UsageError("a text holds no NUL byte", hint="write it as an escape")
    if kind != DECISION and why.strip():
        raise UsageError("an observation has no Why", hint="give its text with --what")
    why = trimmed(why.split("\n"))
    if kind == DECISION and not why:
        raise UsageError("a decision has a Why", hint="give it with --why")
    one = Entry(kind, title, _further_indented(why), guarded(body, is_what=kind == DECISION))
    size = len(to_bytes(one.text))
    if size > limits.DYNASTY_ENTRY_BYTES:
        most = f"an entry has at most {limits.DYNASTY_ENTRY_BYTES} bytes"
        hint = "keep the text in a file, and name its path"
        raise UsageError(f"{most}, and this one has {size}", hint=hint)
    return one


def make_of(kind: str, title: str, text: str) -> Entry:
    """A new entry of one text: of a decision `Why: …`, up to a line `What: …` or its end, whatever
    lines there are; what stands before the Why belongs to the What. Raises UsageError.
    """
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith("Why:")), None)
    if kind != DECISION or start is None:
        return make(kind, title, "", text)
    rest = range(start + 1, len(lines))
    end = next((n for n in rest if lines[n].startswith("What:")), len(lines))
    why = [lines[start].removeprefix("Why:").removeprefix(" "), *lines[start + 1 : end]]
    return make(kind, title, "\n".join(why), _what(lines[:start] + lines[end:]))


def guarded(text: str, *, is_what: bool) -> str:
    """The text with each line indented that would be structure; `is_what`: its first line stands
    behind `What: `.
    """
    first, *more = trimmed(text.split("\n")).split("\n")
    shown = [first.lstrip()] if is_what else [_indented(first)]
    return "\n".join([*shown, *map(_indented, more)])


def is_header(line: str) -> bool:
    """Does an entry begin with this line?"""
    return _header(line) is not None


def is_heading(line: str) -> bool:
    """Is it a heading, whatever it says? It ends an entry."""
    return line.startswith("#") and _HEADING.match(line) is not None


def is_underline(line: str) -> bool:
    """Does it make a heading of the line above?"""
    return _UNDERLINE.fullmatch(line) is not None


def parse(lines: Sequence[str]) -> Entry | None:
    """The entry of a header and its further lines; None if that is none that could be written."""
    found = _header(lines[0])
    if found is None:
        return None
    head, title, is_item = found
    rest = list(lines[1:])
    if head.kind == DECISION:
        split = title.find(WHY_MARK)
        has_line = any(line.startswith("Why:") for line in rest)
        if split >= 0 and not is_item and has_line:
            return None  # two of them: as an item it would get another Why
        if split >= 0:
            title, rest = title[:split], [f"Why: {title[split + len(WHY_MARK) :]}", *rest]
    why, body = _texts(rest) if head.kind == DECISION else ("", trimmed(rest))
    title = title.strip()
    return head._replace(title=title, why=why, body=body) if title else None


def with_ref(raw: str, ref: int) -> str:
    """The same text of an entry with another score in its header, and nothing else changed."""
    header, ended, rest = raw.partition("\n")
    if _REF.search(header):
        header = _REF.sub(f"[ref:{ref}]", header, count=1)
    else:
        header = re.sub(r"\[", f"[ref:{ref}] [", header, count=1)
    return header + ended + rest


def why_end(lines: Sequence[str], start: int) -> int:
    """Where the Why that begins at `start` ends: before `What:`, a heading, another entry, or an
    empty line behind which no indented one follows. People leave out the indent; such lines belong
    to it as well.
    """
    at = start + 1
    while at < len(lines) and not lines[at].startswith("What:"):
        if is_header(lines[at]) or is_heading(lines[at]):
            break
        if not lines[at].strip(" \t\r") and not lines[at].startswith(INDENT):
            following = next((line for line in lines[at:] if line.strip()), "")
            if not following.startswith(INDENT):
                break
        at += 1
    return at


def to_bytes(text: str) -> bytes:
    """As it stands in a file: bytes that are no UTF-8 were read as surrogates."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The inverse of `to_bytes`, for any bytes."""
    return data.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=_KEPT)
def _id(kind: str, title: str, why: str) -> str:
    return sha256(b"\0".join(map(to_bytes, (kind, title, why)))).hexdigest()


@lru_cache(maxsize=_KEPT)
def _header(line: str) -> tuple[Entry, str, bool] | None:
    """What the tags say, the title as written, and whether it is an item; None if no header."""
    match = _HEADER.fullmatch(line) if line.startswith(("#", "-")) else None
    if match is None:
        return None
    tags = _TAG.findall(match[2])
    kinds = [tag for tag in tags if tag in (DECISION, OBSERVATION)]
    kinds = kinds or [DECISION for tag in tags if tag == "decree"]
    if not kinds:
        return None
    refs = [int(tag[4:]) for tag in tags if tag.startswith("ref:")]
    head = Entry(
        kinds[0],
        "",
        "",
        "",
        refs[0] if refs else 0,
        "decree" in tags,
        "vault-candidate" in tags,
    )
    return head, match[3], match[1].startswith("-")


def _texts(lines: list[str]) -> tuple[str, str]:
    """Why and What of the lines behind a decision's header; what is neither counts as What."""
    start = next((n for n, line in enumerate(lines) if line.startswith("Why:")), None)
    if start is None:
        return "", _what(lines)
    end = why_end(lines, start)
    first = lines[start].removeprefix("Why:").removeprefix(" ")
    return "\n".join([first, *lines[start + 1 : end]]), _what(lines[:start] + lines[end:])


def _what(lines: list[str]) -> str:
    kept = list(lines)
    for n, line in enumerate(kept):
        if line.startswith("What:"):
            kept[n] = line.removeprefix("What:").removeprefix(" ")
            break
        if line.strip():
            break
    return trimmed(kept)


def trimmed(lines: Sequence[str]) -> str:
    """One text of the lines, without the empty ones at both ends."""
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    last = next((n for n in range(len(lines), first, -1) if lines[n - 1].strip()), first)
    return "\n".join(lines[first:last])


def _further_indented(why: str) -> str:
    """A Why with its further lines indented, once: as it is pasted from a Day they are so."""
    first, *more = why.split("\n")
    is_done = all(line.startswith(INDENT) for line in more if line.strip())
    shown = (line if is_done and line.startswith(INDENT) else INDENT + line for line in more)
    return "\n".join([first, *shown])


def _indented(line: str) -> str:
    is_label = line.startswith(("Why:", "What:"))
    is_structure = is_label or is_header(line) or is_heading(line) or is_underline(line)
    return INDENT + line if is_structure else line


_UNCLEAN = {"Cc", "Cs", "Zl", "Zp"}
_KNOWN_TAG = r"\[(?:ref:[0-9]{1,9}|vault-candidate|decree|decision|observation)\]"
_TAGS = late(_KNOWN_TAG)
_HEADER = late(rf"(###[ \t]+|-[ \t]+)((?:{_KNOWN_TAG}[ \t]*)+)(.*)", re.DOTALL)
_TAG = late(r"\[([^\]]+)\]")
_REF = late(r"\[ref:[0-9]{1,9}\]")
_HEADING = late(r"#{1,6}(?:[ \t\r]|$)")
_UNDERLINE = late(r"(?:=+|-{3,})[ \t\r]*")
