"""Texts that a line of the log takes, counted as JSON spells them: six bytes for some letters."""

from __future__ import annotations

from savepoint.core.strict_json import dump

_CUT = "…"


def size(text: str) -> int:
    """Bytes of it in a line, without its quotes."""
    return len(dump(text)) - 2


def cut(text: str, most: int) -> str:
    """As much of its start as `most` bytes of a line hold; then dots say that there was more. What
    UTF-8 cannot spell becomes a question mark.
    """
    clean = text[: most + 1].encode("utf-8", "replace").decode()
    if size(clean) <= most:
        return clean
    low, high = 0, len(clean)
    while low < high:
        middle = (low + high + 1) // 2
        if size(clean[:middle] + _CUT) <= most:
            low = middle
        else:
            high = middle - 1
    return clean[:low] + _CUT
