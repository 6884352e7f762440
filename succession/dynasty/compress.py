"""Compression without a model: the same text gives the same one-liner. No Why comes here."""

from __future__ import annotations

from savepoint.core.patterns import late
from succession.dynasty.constants import COMPRESSED_CHARS, DETAILED_REF, ONE_LINE_CHARS
from succession.dynasty.files import entry
from succession.dynasty.files.entry import DECISION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from succession.dynasty.files.entry import Entry


def one_liner(text: str, limit: int) -> str:
    """The first sentence of a text on one line, cut at a word to at most `limit` characters."""
    line = " ".join(text.split())
    sentence = _SENTENCE.match(line)
    line = sentence[0] if sentence else line
    if len(line) <= limit:
        return line
    at = line.rfind(" ", 0, limit + 1)
    return line[: at if at > 0 else limit].rstrip()


def for_layer1(one: Entry) -> Entry:
    """An entry of Day as it enters Layer 1: what its score leaves of What or body.

    A decree, and a score of DETAILED_REF, leave all of it.
    """
    if one.decree or one.ref >= DETAILED_REF:
        return one
    limit = ONE_LINE_CHARS if one.ref else COMPRESSED_CHARS
    short = one_liner(one.body, limit)
    return one._replace(body=entry.guarded(short, is_what=one.kind == DECISION))


_SENTENCE = late(r".*?[.!?](?= |$)")
