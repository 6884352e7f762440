"""What is only ever appended to, of two dynasties: nothing of either is lost."""

from __future__ import annotations

import re

_CHUNK = re.compile(rb"(?m)^(?=### \[dynasty:|## Dynasty of )")
_SECTION = b"## Dynasty of "


def archive(ours: bytes, theirs: bytes) -> bytes:
    """What to append to ours: each line of theirs that is not in it, in their order."""
    held = set(ours.split(b"\n"))
    fresh = dict.fromkeys(line for line in theirs.split(b"\n") if line and line not in held)
    return _behind(ours, b"".join(line + b"\n" for line in fresh))


def lineage(ours: bytes, theirs: bytes) -> bytes:
    """What to append to ours: each entry of theirs that is not in its section, and whatever people
    wrote below it; sections as theirs has them.
    """
    if theirs.startswith(ours):
        return theirs[len(ours) :]
    held: dict[tuple[bytes, bytes], list[bytes]] = {}
    last = b""
    for last, text in _chunks(ours):
        held.setdefault((last, text.partition(b"\n")[0]), []).append(text + b"\n")
    out = b""
    for section, text in _chunks(theirs):
        same = held.get((section, text.partition(b"\n")[0]), ())
        if not any(one.startswith(text + b"\n") for one in same):  # there, and perhaps added to
            out += b"\n" + section + b"\n" if section != last else b""
            out += b"\n" + text + b"\n"
            last = section
    return _behind(ours, out)


def is_foreign(ours: bytes, theirs: bytes) -> bool:
    """Of two archives: do both hold something, and nothing in common?"""
    lines = [set(filter(None, one.split(b"\n"))) for one in (ours, theirs)]
    return all(lines) and lines[0].isdisjoint(lines[1])


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    """The line of its section and an entry's text, for each; also texts that are no entry."""
    found, section = [], b""
    for one in _CHUNK.split(data):
        text = one
        if one.startswith(_SECTION):
            section, _, text = one.partition(b"\n")
        if text.strip():
            found.append((section.strip(), text.strip(b"\n")))
    return found


def _behind(ours: bytes, more: bytes) -> bytes:
    gap = b"\n" if more and ours and not ours.endswith(b"\n") else b""
    return gap + more
