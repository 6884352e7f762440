"""What a CLAUDE.md or a rule imports, as Claude Code reads it: `@path` at the start of a word, but
not in code.
"""

from __future__ import annotations

import os

from savepoint.core.patterns import late

_FENCE = late(rb" {0,3}(`{3,}|~{3,})")
_SPAN = late(rb"(`+)(?!`).*?(?<!`)\1(?!`)")
_IMPORT = late(rb"(?:^|\s)@((?:[^\s\\]|\\ )+)")


def imported(text: bytes, path: str) -> list[str]:
    """The paths that a file names so, in its order, whether there are such files or not. A relative
    one is of the file's own folder.
    """
    prose = b"\n".join(_SPAN.sub(b"", line) for line in _prose(text))
    folder = os.path.dirname(path)
    found = []
    for name in _IMPORT.findall(prose):
        told = name.partition(b"#")[0].replace(b"\\ ", b" ").decode("utf-8", "replace")
        if told and "\0" not in told and "\ufffd" not in told:
            found.append(os.path.normpath(os.path.join(folder, os.path.expanduser(told))))
    return found


def _prose(text: bytes) -> list[bytes]:
    """The lines outside of fenced blocks."""
    kept, fence = [], b""
    for line in text.split(b"\n"):
        mark = _FENCE.match(line)
        if not fence and mark is None:
            kept.append(line)
        elif not fence and mark is not None:
            fence = mark[1]
        elif mark is not None and mark[1].startswith(fence):
            fence = b""
    return kept
