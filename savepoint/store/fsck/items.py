"""What fsck lists: damage, which sets its exit code, and warnings and notes, which do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Verdict

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import Finding

_CODES = {Verdict.TAMPERED: 20, Verdict.ROLLED_BACK: 22, Verdict.UNVERIFIABLE: 21}
_UNSUPPORTED = 23


class Item(NamedTuple):
    """One thing that is not as it must be, or that a crash left."""

    severity: str  # damage | warning | note
    detail: (
        str  # starts with a path: of the store, or below keys/, trusted/, stores.json of its home
    )
    exit_code: int = 0  # 20 to 23 or 40 for damage
    rule: str = ""  # VERIFY-n where a rule found it
    hint: str = ""  # what to do about it, where that is not the same for all

    def to_json(self) -> Json:
        """As in `fsck --json`; `rule` is null for what no rule of verification says."""
        return {
            "severity": self.severity,
            "rule": self.rule or None,
            "detail": self.detail,
            "hint": self.hint or None,
        }


def damage(detail: str, exit_code: int = 20, hint: str = "") -> Item:
    """Something that was there is lost, changed or cannot be looked at."""
    return Item("damage", detail, exit_code, hint=hint)


def warning(detail: str, hint: str = "") -> Item:
    """Somebody should do something; no savepoint is touched by it."""
    return Item("warning", detail, hint=hint)


def note(detail: str) -> Item:
    """Harmless: what a crash leaves, or what is rebuilt."""
    return Item("note", detail)


def judged(one: Finding) -> Item:
    """What a rule of verification found."""
    code = _UNSUPPORTED if one.unsupported else _CODES[one.verdict]
    return Item("damage", one.detail, code, one.rule)
