"""The briefing of a session that starts: within its budget, each Why whole or not at all."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from succession.dynasty.constants import BRIEFING_CHARS
from succession.dynasty.files import vault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from succession.dynasty.files.entry import Entry


class Briefing(NamedTuple):
    """What it is made of."""

    title: str  # `Claude 3`
    branch: str
    vault: str  # the file
    day: tuple[Entry, ...]
    layers: tuple[tuple[Entry, ...], ...]
    unresolved: int  # deviants
    suggestion: str = ""
    told: bool = False  # a session was told of it: the next one's first turn runs it

    @property
    def is_empty(self) -> bool:
        """Is there nothing to tell?"""
        held = self.vault.strip() or self.day or any(self.layers) or self.unresolved
        return not (held or self.suggestion)


def text(given: Briefing, limit: int = BRIEFING_CHARS) -> str:
    """The briefing in at most `limit` characters. What does not fit is counted, and where it is
    found is said.
    """
    day = [one for one in reversed(given.day) if not _is_in(given.vault, one)]
    copied = {one.id for one in day}  # from Dusk, and told once
    dusk = [one for layer in given.layers for one in layer if one.id not in copied]
    dusk = [one for one in dusk if not _is_in(given.vault, one)]
    decrees = [one for one in dusk if one.decree]
    rest = [one for one in dusk if not one.decree]
    groups = (
        ("Vault", vault.bullets(given.vault)),
        ("Decrees", [_item(one) for one in decrees]),
        (f"Day of {given.title}", [_item(one) for one in day]),
        ("Dusk", [_item(one) for one in rest]),
    )
    head = [f"# Briefing — {given.title}, branch {given.branch}", *_asked(given)]
    if given.unresolved:
        head.append(f"⚡ {given.unresolved} unresolved deviants: `savepoint succession deviants`")
    return _filled("\n".join(head) + "\n", groups, limit)


def _filled(shown: str, groups: Iterable[tuple[str, Sequence[str]]], limit: int) -> str:
    left_out = 0
    room = limit - len(_left_out(10**6))
    for name, items in groups:
        heading = f"\n## {name}\n"
        for item in items:
            piece = f"{heading}{item}\n"
            if len(shown) + len(piece) > room:
                left_out += 1
                continue
            shown += piece
            heading = ""
    return shown + (_left_out(left_out) if left_out else "")


def _left_out(count: int) -> str:
    return f"\n{count} more: `savepoint succession day`, `dusk`, `vault`, `lineage --search TERM`\n"


def _is_in(text: str, one: Entry) -> bool:
    return vault.holds(text, vault.bullet(one))


def _item(one: Entry) -> str:
    """An entry as one item: its title and its whole Why."""
    return vault.bullet(one)


def _asked(given: Briefing) -> list[str]:
    if not given.suggestion:
        return []
    when = (
        "It runs at the end of this session's first turn"
        if given.told
        else "It runs in the session after this one"
    )
    ways = "now: `savepoint succession run`; not at all: `savepoint succession decline`"
    return [f"Succession suggested: {given.suggestion}. {when}; {ways}"]
