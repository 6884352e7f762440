"""deviants.md: where the vault and a new entry of Dusk speak of the same file.

Only the lines of ours change, and only in place; whatever else people write there stays.
"""

from __future__ import annotations

from savepoint.core import spelling
from savepoint.core.errors import SelectorError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty.constants import DEVIANT_NUDGE_SESSIONS, DEVIANT_RESOLVE_SESSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Life

UNRESOLVED = "unresolved"
NUDGE = f"⚠️ Deviant unresolved for {DEVIANT_NUDGE_SESSIONS}+ sessions"
ASK = f"🚨 Deviant unresolved for {DEVIANT_RESOLVE_SESSIONS}+ sessions — consider resolving"


class Deviant(NamedTuple):
    """A conflict, as filed."""

    number: int  # from 1, in the order of the file
    description: str
    filed: str  # ISO time
    session: int  # 1, and one more for each session counted since
    vault_ref: str
    dusk_ref: str
    status: str

    @property
    def is_open(self) -> bool:
        """Is it still to be resolved?"""
        return self.status == UNRESOLVED


def parse(text: str) -> list[Deviant]:
    """All deviants of the file."""
    found = []
    for number, block in enumerate(_blocks(text.split("\n")), 1):
        facts = dict(filter(None, map(_fact, block)))
        session = facts.get("Session", "")
        found.append(
            Deviant(
                number,
                block[0].removeprefix(_HEADER).strip(),
                facts.get("Filed", ""),
                int(session) if session.isdecimal() else 1,
                facts.get("Vault ref", ""),
                facts.get("Dusk ref", ""),
                facts.get("Status", UNRESOLVED),
            )
        )
    return found


def conflicts(
    vault_text: str, fresh: Iterable[Entry], lives: Mapping[str, Life]
) -> list[tuple[str, str, str]]:
    """Path, vault line and entry of each pair that names the same file; a line that came from the
    entry itself is no conflict. Meaning is not looked at.
    """
    from succession.dynasty import words  # a briefing, which counts deviants, needs neither
    from succession.dynasty.files import vault

    lines = [(one, words.paths(one)) for one in vault.bullets(vault_text)]
    found = []
    for one in fresh:
        if lives[one.id].drawn:
            continue
        own, paths = vault.bullet(one), words.of(one, lives[one.id].paths).paths
        for line, named in lines:
            shared = sorted(paths & named)
            if shared and line != own:
                first = line.split("\n")[0].removeprefix("- ")
                found.append((shared[0], first, f"[{one.kind}] {one.title}"))
    return found


def filed(text: str, description: str, refs: tuple[str, str], now: int) -> str:
    """The file with one more, unless one of that pair was ever filed. refs: vault's and Dusk's."""
    refs = (_one_line(refs[0]), _one_line(refs[1]))
    if any((one.vault_ref, one.dusk_ref) == refs for one in parse(text)):
        return text
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    head = "" if text else "# ⚡ Deviants\n\n"
    return (
        f"{text}{gap}{head}{_HEADER}{_one_line(description)}\nFiled: {spelling.time_text(now)}\n"
        f"Session: 1\nVault ref: {refs[0]}\nDusk ref: {refs[1]}\nStatus: {UNRESOLVED}\n"
    )


def counted(text: str) -> str:
    """The file after one more session."""
    found = {one.number: one for one in parse(text) if one.is_open}
    return _edited(text, found, "Session", lambda one: f"Session: {one.session + 1}")


def nudged(text: str) -> str:
    """The file with the reminders that are due; each deviant has at most one."""
    lines = [line for line in text.split("\n") if line.strip() not in (NUDGE, ASK)]
    found = {}
    for one in parse("\n".join(lines)):
        if one.is_open and one.session >= DEVIANT_NUDGE_SESSIONS:
            found[one.number] = one
    return _edited(
        "\n".join(lines),
        found,
        "Status",
        lambda one: f"Status: {UNRESOLVED}\n" + (ASK if _is_old(one) else NUDGE),
    )


def resolved(text: str, number: int, resolution: str) -> str:
    """The file with one of them resolved. Raises SelectorError."""
    found = {one.number: one for one in parse(text) if one.number == number}
    if not found:
        raise SelectorError(
            f"there is no deviant {number}", hint="`savepoint succession deviants` lists them"
        )
    return nudged(_edited(text, found, "Status", lambda _: f"Status: {resolution}"))


def _is_old(one: Deviant) -> bool:
    return one.session >= DEVIANT_RESOLVE_SESSIONS


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    blocks: list[list[str]] = []
    inside = False
    for line in lines:
        if line.startswith(_HEADER):
            blocks.append([])
            inside = True
        elif line.startswith("#"):
            inside = False
        if inside:
            blocks[-1].append(line)
    return blocks


def _edited(text: str, chosen: dict[int, Deviant], name: str, line_of: Edit) -> str:
    """The text with the line `name: …` of each chosen deviant replaced; added where it lacks."""
    number, pending, shown = 0, False, list[str]()
    for line in text.split("\n"):
        if line.startswith(_HEADER):
            number += 1
            pending = number in chosen
            has_line = any(
                one.startswith(f"{name}:") for one in _blocks(text.split("\n"))[number - 1]
            )
            shown.append(line)
            if pending and not has_line:
                shown.append(line_of(chosen[number]))
                pending = False
        elif pending and line.startswith(f"{name}:"):
            shown.append(line_of(chosen[number]))
            pending = False
        else:
            shown.append(line)
    return "\n".join(shown)


def _fact(line: str) -> tuple[str, str] | None:
    match = _FACT.fullmatch(line)
    return (match[1], match[2].strip()) if match else None


def _one_line(text: str) -> str:
    return " ".join(text.split())


_HEADER = "### [deviant] "
_FACT = late(r"(Filed|Session|Vault ref|Dusk ref|Status): ?(.*)")

if TYPE_CHECKING:
    from collections.abc import Callable

    Edit = Callable[[Deviant], str]
