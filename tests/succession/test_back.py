"""A dynasty out of a savepoint, put back: checked before, and nothing that is there is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture import memory
from savepoint.core.errors import (
    DynastyError,
    OutputExistsError,
    UnsupportedFormatError,
    UsageError,
)
from succession.dynasty import journal, whole
from succession.dynasty.joining import bundle, merge
from tests.succession.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

    from succession.dynasty.joining.bundle import Back


def _saved(scene: Scene) -> bytes:
    """As a savepoint has it now."""
    held = memory.read(scene.store.path, time.monotonic() + 120)
    assert held.data is not None
    assert held.left_out == ""
    return held.data


def _put_back(scene: Scene, data: bytes, *, force: bool = True) -> Back:
    return bundle.put_back(scene.store, data, scene.branch.folder, force=force)


def _append(path: Path, text: str) -> bytes:
    with path.open("a") as file:
        file.write(text)
    return path.read_bytes()


def test_what_a_forced_import_replaces_is_kept(scene: Scene) -> None:
    """Edits by hand were nowhere afterwards, and no savepoint had them."""
    scene.record("A decision", "because")
    scene.record("Seen", "", "text")
    scene.run()
    for name in ("vault.md", "deviants.md"):
        _append(scene.folder / name, "- a line\n")
    data = _saved(scene)
    edited = {
        f"{scene.branch.folder}/day.md": "no entry\n\n### [ref:0] [decision] Late\nWhy: late why\n",
        "vault.md": "- by hand\n",
        "deviants.md": "by hand\n",
        "lineage.md": "\nby hand\n",
    }
    before = {path: _append(scene.folder / path, text) for path, text in edited.items()}
    back = _put_back(scene, data)
    lineage = before.pop("lineage.md")
    assert (scene.folder / "lineage.md").read_bytes() == lineage, "it only grows"
    kept = scene.project.home / back.kept
    assert {path: (kept / path).read_bytes() for path in before} == before
    assert scene.project.damage() == []


def test_archive_and_lineage_of_a_diverged_dynasty_are_joined(scene: Scene, tmp_path: Path) -> None:
    """A recorded reason was gone after an import from another project."""
    other = Scene(tmp_path / "other")
    for one, name in ((scene, "Here"), (other, "There")):
        one.record(f"Only {name}", f"precious {name} why")
        one.record(f"Seen {name}", "", "needle")
        one.run()
    ours = scene.files()
    back = _put_back(scene, _saved(other))
    state = scene.state
    assert state.archive == ours["archive.jsonl"] + other.files()["archive.jsonl"]
    for name in ("Here", "There"):
        assert state.lineage.count(f"[observation] Seen {name}\n".encode()) == 1
    assert {"archive.jsonl", "lineage.md"} <= set(back.changed)
    again = scene.files()
    assert not {"archive.jsonl", "lineage.md"} & set(_put_back(scene, _saved(other)).changed)
    assert scene.files() == again


def test_another_dynasty_is_asked_about(scene: Scene, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other")
    other.record("Theirs", "because")
    scene.record("Ours", "because")
    before = scene.files()
    with pytest.raises(OutputExistsError) as refused:
        _put_back(scene, _saved(other), force=False)
    assert "another dynasty, that of Claude 1 on main since 2026-03-08T" in refused.value.message
    assert scene.files() == before


def test_a_dynasty_that_is_gone_comes_back_without_force(scene: Scene, tmp_path: Path) -> None:
    scene.record("A decision", "because")
    before, data = scene.files(), _saved(scene)
    other = Scene(tmp_path / "other")
    assert _put_back(other, data, force=False).kept == ""
    assert other.files() == before


def test_a_broken_dynasty_is_not_put_back(scene: Scene) -> None:
    """`the dynasty is back`, with exit 0, and it was as broken as before."""
    scene.record("A decision", "because")
    (scene.own / "dynasty.json").write_bytes(b"{bad")
    data, before = _saved(scene), scene.files()
    with pytest.raises(DynastyError) as refused:
        _put_back(scene, data)
    assert "what is to be put back is damaged: dynasty/main/dynasty.json" in refused.value.message
    assert scene.files() == before


def test_a_branch_that_is_broken_in_it_stays_as_it_is(scene: Scene) -> None:
    scene.record("A decision", "because")
    scene.git("checkout", "-q", "-b", "dead")
    scene.record("Another", "because")
    (scene.own / "dynasty.json").write_bytes(b"{bad")
    scene.git("checkout", "-q", "main")
    data = _saved(scene)
    (scene.own / "dynasty.json").unlink()
    back = _put_back(scene, data)
    assert scene.state.meta.current == 1
    assert [one.partition(":")[0] for one in back.left] == ["dead is not put back"]


@pytest.mark.parametrize("path", ["vault.md~", "README.md", "main/notes/a.md", "Main Notes/ä"])
def test_files_beside_ours_come_back_with_them(scene: Scene, tmp_path: Path, path: str) -> None:
    """One backup of an editor, and no later savepoint's dynasty could be brought back."""
    scene.record("A decision", "because")
    extra = scene.folder / path
    extra.parent.mkdir(exist_ok=True, parents=True)
    extra.write_text("mine")
    data = _saved(scene)
    other = Scene(tmp_path / "other")
    _put_back(other, data)
    assert (other.folder / path).read_text() == "mine"
    (other.folder / path).write_text("changed since")
    back = _put_back(other, data)
    assert (other.folder / path).read_text() == "changed since", "it is no file of the dynasty"
    assert back.left == (f"{path} stays as it is: it is no file of the dynasty",)


def test_what_a_savepoint_cannot_hold_is_told(scene: Scene, tmp_path: Path) -> None:
    scene.record("A decision", "because")
    (tmp_path / "vault.md").write_text("- a line\n")
    (scene.folder / "vault.md").unlink(missing_ok=True)
    (scene.folder / "vault.md").symlink_to(tmp_path / "vault.md")
    (scene.folder / "a/b/c").mkdir(parents=True)
    held = memory.read(scene.store.path, time.monotonic() + 120)
    assert held.left_out == "without a/b/c: it lies too deep, and 1 more"
    scene.project.say(3)
    assert scene.project.fire().is_quiet
    assert "dynasty" in str(scene.project.document()["omitted"])


@pytest.mark.parametrize(
    "data", [b"root:x:0:0\n", b'x\n{"v":1,"files":[{"path":"a","bytes":1}]}\n']
)
def test_what_is_no_memory_file_is_wrong_use(scene: Scene, data: bytes) -> None:
    with pytest.raises(UsageError):
        _put_back(scene, data)


def test_a_damaged_journal_gives_way_to_a_forced_import(scene: Scene) -> None:
    scene.record("A decision", "because")
    data = _saved(scene)
    (scene.folder / ".journal").write_bytes(b"x")
    (scene.own / ".next-day.md").write_bytes(b"was to come")
    with pytest.raises(DynastyError):
        _put_back(scene, data, force=False)
    back = _put_back(scene, data)
    kept = scene.project.home / back.kept
    assert (kept / ".journal").read_bytes() == b"x"
    assert (kept / "main/.next-day.md").read_bytes() == b"was to come"
    assert [one.title for one in scene.state.day_page.entries] == ["A decision"]
    assert not list(scene.folder.rglob(".next-*"))


def test_an_edit_that_a_cut_short_change_met_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.record("A decision", "because")
    data = _saved(scene)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_finish", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            scene.run()
    (scene.own / "day.md").write_text("my edit")
    (aside,) = _put_back(scene, data).aside
    assert (scene.folder / aside).read_text() == "my edit"
    assert "A decision" in scene.state.day


def test_a_newer_version_is_not_called_damage(scene: Scene) -> None:
    scene.record("A decision", "because")
    path = scene.own / "dynasty.json"
    path.write_bytes(path.read_bytes().replace(b'{"v":1', b'{"v":2'))
    with pytest.raises(UnsupportedFormatError):
        _put_back(scene, _saved(scene))


def test_the_newest_savepoint_that_is_whole_is_named(scene: Scene) -> None:
    """Of those that were made since it broke, none can bring it back."""
    scene.record("A decision", "because")
    seqs = []
    for data in (None, b"{bad", b"{worse"):
        if data:
            (scene.own / "dynasty.json").write_bytes(data)
        scene.project.say(2)
        assert scene.project.fire().is_quiet
        seqs.append(scene.project.saves()[-1].seq)
    found = whole.newest(scene.store, scene.branch.folder)
    assert found is not None
    assert found.record.seq == seqs[0]
    assert whole.newest(scene.store, "no-such-branch") is None


def test_lineage_entries_are_told_apart_by_section_and_text() -> None:
    one = b"# L\n\n## Dynasty of Claude \xe2\x80\x94 main\n\n### [dynasty:1] [observation] A\nx\n"
    other = one.replace(b"main", b"dev")
    assert merge.lineage(one, one + b"\nby hand\n") == b"\nby hand\n"
    assert merge.lineage(one + b"\nby hand\n", one) == b""
    added = merge.lineage(one, other)
    assert added.startswith(b"\n## Dynasty of Claude \xe2\x80\x94 dev\n\n### [dynasty:1]")
    assert merge.lineage(one + added, other) == b""
    assert merge.lineage(one + added, one) == b""


def test_an_archive_that_ends_in_mid_line_is_joined_behind_it() -> None:
    assert merge.archive(b'{"a":1}\n{"b"', b'{"a":1}\n{"c":1}\n') == b'\n{"c":1}\n'
    assert merge.archive(b'{"a":1}\n', b'{"a":1}\n') == b""
