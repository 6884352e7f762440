"""A life of twelve successions with all that can happen in one, the same at each run.

.venv/bin/python -m tests.succession.scripted     writes golden/: read its diff
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.succession.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from succession.dynasty.running import Ran

GOLDEN = Path(__file__).with_name("golden")
SHOWN = (1, 4, 8, 12)  # successions after which all files are kept; the ceremonies are, of all
FILES = {
    "day.md": "main/day.md",
    "dusk.md": "main/dusk.md",
    "dawn.md": "main/dawn.md",
    "briefing.md": "main/day-briefing.md",
    "vault.md": "vault.md",
    "deviants.md": "deviants.md",
    "lineage.md": "lineage.md",
}
_AUTH, _FLAGS = "src/auth/auth.service.ts", "src/flags.py"
_JWT = f"{_AUTH} needs asymmetric verification.\nHS256 requires a shared secret."
_NOTE = "Not an entry\n============\n\n| a | table |\n|---|---|\n"


class Moment(NamedTuple):
    """After a succession."""

    number: int
    files: dict[str, str]  # by the names of FILES
    ceremony: str
    notes: tuple[str, ...]


def life(folder: Path) -> Iterator[Moment]:
    """All twelve."""
    scene = Scene(folder)
    for number, reign in enumerate(_REIGNS, 1):
        ran = reign(scene) or scene.run(scene.covering(number, changed=[_AUTH]))
        held = scene.files()
        files = {name: held.get(path, b"").decode() for name, path in FILES.items()}
        yield Moment(number, files, ran.succession.report, ran.succession.notes)


def golden(moments: Iterator[Moment]) -> dict[str, str]:
    """Name below golden/ → text."""
    found: dict[str, str] = {}
    for one in moments:
        noted = "".join(f"{note}\n" for note in one.notes)
        found["ceremonies.txt"] = found.get("ceremonies.txt", "") + one.ceremony + noted
        if one.number in SHOWN:
            found |= {f"{one.number:02}/{name}": text for name, text in one.files.items()}
    return found


def _beginning(scene: Scene) -> None:
    scene.record(
        "Chose JWT RS256 over HS256", _JWT, f"Implemented in {_AUTH} using jose library", 1
    )
    scene.record(
        "Fixed rate limiter gap on health endpoint", "", "It is applied globally now. More.", 1
    )
    scene.record("Used Prisma over TypeORM", "Type-safe queries with zero runtime overhead", "", 1)
    scene.session(1, _AUTH)
    scene.session(2, _AUTH, "src/health.ts")


def _second(scene: Scene) -> None:
    scene.record("REST over GraphQL for v1", "Team expertise and simpler debugging", "In api/", 3)
    scene.session(3, _AUTH)
    scene.session(4, "api/users.ts", "README.md")


def _third(scene: Scene) -> None:
    scene.commit("feat: password reset")
    scene.record(
        "Configured ESLint flat config", "", "Migrated from .eslintrc to eslint.config.js.", 5
    )
    scene.session(5, _AUTH, "eslint.config.js")


def _fourth(scene: Scene) -> None:
    why = "Revocable.\n### [ref:99] [decision] not an entry\n\n- [ref:9] [observation] nor this"
    scene.record(
        "Opaque tokens for the admin panel", why, f"{_AUTH} gets a second path. It grew.", 6
    )
    scene.session(6, "src/admin.ts")


def _fifth(scene: Scene) -> None:
    for number in range(12):
        why = "\n".join(f"reason {line} of number {number}" for line in range(1, 10))
        scene.record(f"Decision number {number}", why, f"src/part{number}.py", 7)
    scene.session(7, "src/part3.py", "src/part4.py", "src/part4_test.py")


def _sixth(scene: Scene) -> None:
    day = scene.own / "day.md"
    day.write_text(
        day.read_text() + f"\n{_NOTE}\n### [decision] By hand, 長い名前 with 🎉\nWhy: Because.\n"
    )
    scene.session(8)
    scene.session(9)
    scene.session(10)


def _seventh(scene: Scene) -> None:
    scene.session(11, _AUTH)
    long = "\n".join(f"line {line}" for line in range(130))
    scene.record("A Why that is longer than its layer", long, "x", 11)
    scene.record("Feature flags in a table", "No restart.\nNo deploy.\nAudited.", _FLAGS, 11)


def _eighth(scene: Scene) -> None:
    """The vault is filled by hand, without an LF at its end; six sessions pass."""
    vault = scene.folder / "vault.md"
    rows = "".join(f"- rule {number}\n" for number in range(46))
    vault.write_text(vault.read_text() + rows.removesuffix("\n"))
    for session in (12, 13, 14, 15, 16, 17):
        scene.session(session, *([_FLAGS] if session == 12 else []))


def _ninth(scene: Scene) -> None:
    scene.session(18, _FLAGS)


def _tenth(scene: Scene) -> None:
    """The flags qualify, and the vault has no room."""
    scene.record("Cache of sessions in Redis", "Latency.", "src/cache.ts: fast, lazy cache", 19)
    scene.session(19, _FLAGS, "src/cache.ts")


def _eleventh(scene: Scene) -> Ran:
    """Five sessions suggest it, the sixth is told, the seventh runs it; the vault has room."""
    vault = scene.folder / "vault.md"
    vault.write_text(vault.read_text().replace("- rule 7\n", ""))
    for session in range(20, 25):
        scene.session(session)
    scene.session(25)
    turn = scene.session(26)
    return scene.run(scene.covering(11, changed=["src/cache.ts"]), turn.due)


def _twelfth(scene: Scene) -> Ran:
    """A Day of which nothing is left."""
    day = scene.own / "day.md"
    day.write_text(day.read_text().partition("\n### ")[0])
    return scene.run()


_REIGNS: tuple[Callable[[Scene], Ran | None], ...] = (
    *(_beginning, _second, _third, _fourth, _fifth, _sixth),
    *(_seventh, _eighth, _ninth, _tenth, _eleventh, _twelfth),
)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name, text in golden(life(Path(made) / "scene")).items():
            target = GOLDEN / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
