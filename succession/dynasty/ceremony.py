"""The report of a succession, in a box whose sides are straight whatever stands in it."""

from __future__ import annotations

import unicodedata

from savepoint.core.named import NamedTuple
from succession.dynasty.constants import BAR_CELLS, DEVIANT_RESOLVE_SESSIONS, VAULT_MAX_LINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_INNER_CELLS = 53  # of the box; more where a line needs them


class Ceremony(NamedTuple):
    """What the report tells."""

    name: str  # of the rulers
    number: int  # of the outgoing one: N
    epithet: str
    branch: str
    dead: tuple[tuple[int, str], ...]  # number and epithet of whom entries went to the lineage
    vault_lines: int
    deviants: tuple[int, ...]  # sessions of the unresolved ones


def report(told: Ceremony) -> str:
    """The box, with its LF."""
    after = f"{told.name} {told.number + 1}"
    groups = [
        [
            f'⚔️  SUCCESSION OF {after.upper()} "{told.epithet.upper()}"',
            f"🌿 Branch: {told.branch}",
        ],
        _rulers(told),
        [f"🏛️  Vault:    {bar(told.vault_lines)}", f"⚡ Deviants: {_deviants(told.deviants)}"],
        [f"👑 Long live {after}. May they earn their name."],
    ]
    inner = max(_INNER_CELLS, *(2 + width(line) for group in groups for line in group))
    shown = [f"┌{'─' * inner}┐"]
    for number, group in enumerate(groups):
        shown += [f"├{'─' * inner}┤"] if number else []
        shown += [f"│  {line}{' ' * (inner - 2 - width(line))}│" for line in group]
    return "\n".join([*shown, f"└{'─' * inner}┘"]) + "\n"


def bar(lines: int) -> str:
    """How full the vault is: `[████████████░░░░] 38/50`."""
    filled = min(BAR_CELLS, round(lines / VAULT_MAX_LINES * BAR_CELLS))
    return f"[{'█' * filled}{'░' * (BAR_CELLS - filled)}] {lines}/{VAULT_MAX_LINES}"


def width(text: str) -> int:
    """Cells that a text takes on a terminal (UAX #11): wide letters and emoji two, marks none."""
    total, last = 0, 0
    for letter in text:
        if letter == _EMOJI_STYLE:
            total += 2 - last if last else 0
            last = 2
            continue
        cells = _cells(letter)
        total += cells
        last = cells or last
    return total


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in _WITHOUT_CELL or unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def _rulers(told: Ceremony) -> list[str]:
    name, number = told.name, told.number
    titles = [f"💀 {_title(name, dead, epithet)}" for dead, epithet in told.dead]
    titles += [
        f"🌙 {_title(name, number, told.epithet)}",
        f"☀️  {name} {number + 1}",
        f"🌅 {name} {number + 2}",
    ]
    ways = ["Dusk → lineage"] * len(told.dead)
    ways += ["Day  → Dusk", "Dawn → Day", "     → born as Dawn"]
    column = max(width(title) for title in titles) + 3
    return [
        title + " " * (column - width(title)) + way for title, way in zip(titles, ways, strict=True)
    ]


def _title(name: str, number: int, epithet: str) -> str:
    return f'{name} {number} "{epithet}"' if epithet else f"{name} {number}"


def _deviants(sessions: Sequence[int]) -> str:
    if not sessions:
        return "none"
    return f"{len(sessions)} unresolved (session {max(sessions)}/{DEVIANT_RESOLVE_SESSIONS})"


_EMOJI_STYLE = "\ufe0f"
_WIDE = ("W", "F")
_WITHOUT_CELL = ("Mn", "Me", "Cf", "Cc")
