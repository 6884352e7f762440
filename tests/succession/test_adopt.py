"""Taking over what another tool kept in the specification's layout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import OutputExistsError, UsageError
from succession.dynasty.joining import adopt

if TYPE_CHECKING:
    from pathlib import Path

    from succession.dynasty.record import Done
    from tests.succession.scene import Scene

_DUSK = """# 🌙 Dusk — Claude 6 "the Swift"

## Layer 1 (detailed)
### [ref:5] [decision] Chose it
Why: because
     of two lines
What: x

## Layer 2 (compressed)
- [ref:2] [decision] Older — Why: whatever
- not an entry

## Layer 3 (one-liners)
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Such a folder, with one dynasty."""
    folder = tmp_path / "empire"
    own = folder / "dynasty/main"
    own.mkdir(parents=True)
    (own / "day.md").write_text("# ☀️ Day — Claude 7\n\n### [ref:1] [observation] Seen\nbody\n")
    (own / "dusk.md").write_text(_DUSK)
    (own / "dawn.md").write_text("# 🌅 Dawn — Claude 8\n")
    told = {"current": 7, "epithets": {"Claude 6": "the Swift"}, "sessions_since_succession": 3}
    (own / "dynasty.json").write_text(json.dumps(told, indent=2))
    (folder / "deviants.md").write_text("### [deviant] old\nSession: 4\nStatus: unresolved\n")
    (folder / "lineage.md").write_text("# 📜 Lineage\n\n### [dynasty:1] [observation] Gone\nbody\n")
    (folder / "vault.md").write_text("- a rule\n")
    return folder


def _take(scene: Scene, folder: Path) -> Done:
    found = adopt.find(str(folder), str(scene.project.project), scene.branch)
    with scene.opened() as held:
        done, lines = adopt.take(held, found, scene.now)
        held.write(done.state, held.seen, lineage=lines, archive=done.archive)
    return done


@pytest.mark.parametrize("where", ["", "dynasty/main"])
def test_all_of_it_comes_along(scene: Scene, old: Path, where: str) -> None:
    _take(scene, old / where)
    state = scene.state
    assert state.meta.title() == "Claude 7"
    assert state.meta.epithets == {"Claude 6": "the Swift"}
    assert state.meta.sessions_since_succession == 3
    assert state.dusk == _DUSK
    assert state.vault == "- a rule\n"
    assert "[deviant] old" in state.deviants
    assert "[dynasty:1] [observation] Gone" in state.lineage.decode()
    assert state.archive.count(b'"source":"import"') == 3
    scene.run()
    assert "- not an entry" in (scene.own / "dusk.md").read_text()
    assert "because\n     of two lines" in (scene.own / "dusk.md").read_text()


def test_the_vault_of_the_project(scene: Scene, tmp_path: Path) -> None:
    own = scene.project.project / ".empire"
    own.mkdir()
    (own / "vault.md").write_text("- mine")
    _take(scene, own)
    assert scene.state.vault == "- mine"
    _take(scene, own)
    assert scene.state.vault == "- mine", "not a second time"


def test_a_dynasty_is_not_replaced(scene: Scene, old: Path) -> None:
    scene.record("A decision", "because")
    before = scene.files()
    with pytest.raises(OutputExistsError):
        _take(scene, old)
    assert scene.files() == before


@pytest.mark.parametrize("data", [b"", b"[]", b'{"current":"7"}', b'{"current":0}', b"\xff"])
def test_a_corrupt_dynasty_json_is_refused(scene: Scene, old: Path, data: bytes) -> None:
    (old / "dynasty/main/dynasty.json").write_bytes(data)
    with pytest.raises(UsageError):
        _take(scene, old)
    assert not scene.held().exists


def test_a_folder_without_one(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        _take(scene, tmp_path)
