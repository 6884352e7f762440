"""vault.md: what holds for good. At most VAULT_MAX_LINES lines, all counted, none written twice."""

from __future__ import annotations

from succession.dynasty.constants import VAULT_MAX_LINES
from succession.dynasty.files.entry import WHY_MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from succession.dynasty.files.entry import Entry


_FURTHER = "  "  # so begins a line that belongs to the bullet above it


def bullet(one: Entry) -> str:
    """An entry as it stands in the vault, its Why verbatim, without an LF at the end."""
    return f"- {one.title}" + (WHY_MARK + one.why if one.why else "")


def line_count(text: str) -> int:
    """Lines of the file; the last one may lack its LF."""
    return text.count("\n") + bool(text and not text.endswith("\n"))


def holds(text: str, line: str) -> bool:
    """Does that bullet stand in it already, whole? What goes on is the start of another one."""
    behind = f"\n{text}\n".split(f"\n{line}\n")[1:]
    return any(not rest.startswith(_FURTHER) for rest in behind)


def has_room(text: str, line: str) -> bool:
    """Do the lines and the bullet fit together?"""
    return line_count(text) + line_count(line) <= VAULT_MAX_LINES


def added(text: str, line: str) -> str:
    """The vault with a bullet at its end. A person's last line may lack its LF: the bullet was
    glued to it once (peers.md 3.3, defect 6).
    """
    gap = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{gap}{line}\n"


def bullets(text: str) -> list[str]:
    """Each bullet or other line with the indented lines that follow it, without LF at the end."""
    found: list[str] = []
    for line in text.split("\n"):
        if found and line.startswith(_FURTHER):
            found[-1] += f"\n{line}"
        elif line.strip():
            found.append(line)
    return found
