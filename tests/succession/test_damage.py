"""Damage to the dynasty's files: what it is called, who names it, and what still works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.capture import memory
from savepoint.core.errors import DiskError, DynastyError, UnsupportedFormatError
from savepoint.store import durable
from succession import dynasty
from succession.dynasty import journal, whole
from tests.cli.scene import Scene as Cli
from tests.fault.disks import read_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.succession.scene import Scene


def _is_broken(folder: Path) -> None:
    (folder / "main/dynasty.json").write_bytes(b"{bad")


def _is_gone(folder: Path) -> None:
    (folder / "main/dynasty.json").unlink()


def _has_a_damaged_journal(folder: Path) -> None:
    (folder / ".journal").write_bytes(b"x")


def _has_a_linked_vault(folder: Path) -> None:
    (folder / "vault.md").unlink(missing_ok=True)
    (folder / "vault.md").symlink_to(folder / "lineage.md")


def _has_a_linked_branch(folder: Path) -> None:
    (folder / "main").rename(folder.parent / "elsewhere")
    (folder / "main").symlink_to(folder.parent / "elsewhere")


_SPOILT: list[tuple[Callable[[Path], None], str, str]] = [
    (_is_broken, "dynasty/main/dynasty.json: ", "no savepoint has it whole"),
    (_is_gone, "dynasty/main/dynasty.json: is missing beside", "no savepoint has it whole"),
    (_has_a_damaged_journal, "dynasty/.journal is damaged", "no savepoint has it whole"),
    (_has_a_linked_vault, "vault.md is a link", "move it away, or put a regular file"),
    (_has_a_linked_branch, "dynasty/main is a link", "put the folder itself there"),
]


@pytest.mark.parametrize(("spoil", "message", "hint"), _SPOILT)
def test_fsck_and_doctor_name_it(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    spoil: Callable[[Path], None],
    message: str,
    hint: str,
) -> None:
    """The hint of the commands that failed was fsck, which said that there is no damage."""
    (tmp_path / "project").mkdir()
    cli = Cli(tmp_path / "project", capsysbinary)
    cli.good("init", "--instance", "Gabriel #215")
    told = ("--title", "Chose tabs", "--why", "of width")
    cli.good("succession", "record", "decision", *told)
    folder = Path(cli.paths.store.path, "dynasty")
    (folder / "no-repository~").rename(folder / "main")
    cli.good("fsck")
    spoil(folder)
    ran = cli("fsck", "--json")
    assert ran.code == 20
    (one,) = [it for it in ran.json["findings"] if it["severity"] == "damage"]
    assert message in one["detail"]
    assert hint in one["hint"]
    checks = cli("doctor", "--json").json["checks"]
    (failed,) = [it for it in checks if it["name"] == "dynasty"]
    assert failed["result"] == "fail"
    assert message in failed["detail"]
    assert hint in failed["todo"]


def test_a_dynasty_that_is_whole_has_no_damage(scene: Scene) -> None:
    assert whole.damage(scene.store, float("inf")) == []
    scene.record("A decision", "because")
    scene.run()
    assert whole.damage(scene.store, float("inf")) == []


def test_a_journal_of_a_newer_version_is_no_damage(scene: Scene) -> None:
    scene.record("A decision", "because")
    (scene.folder / ".journal").write_bytes(b'{"v":2}\n')
    with pytest.raises(UnsupportedFormatError):
        scene.held()


def test_an_unreadable_file_is_damage_of_the_dynasty(scene: Scene, tmp_path: Path) -> None:
    scene.record("A decision", "because")
    (scene.folder / "vault.md").unlink(missing_ok=True)
    (scene.folder / "vault.md").symlink_to(tmp_path)
    with pytest.raises(DynastyError) as refused:
        scene.held()
    assert refused.value.hint.startswith("move it away, or put a regular file")


def test_it_is_read_on_a_read_only_disk(scene: Scene, loop_mount: None) -> None:
    """No command could read it without its lock, and no session was told a decision."""
    scene.record("A decision", "because")
    scene.run()
    before = scene.state
    with read_only(scene.folder):
        assert scene.state == before
        told = scene.start(7)
        assert "A decision — Why: because" in told
        assert "cannot be noted" in told
        assert memory.read(scene.store.path, float("inf")).data is not None
        with pytest.raises(DiskError):
            scene.record("Another", "because")
    assert scene.state == before


def test_a_change_that_was_cut_short_is_read_as_done_where_nobody_can_write(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.record("A decision", "because")
    scene.record("Seen", "", "text")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_finish", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            scene.run()
    files = scene.files()
    with monkeypatch.context() as patch:
        patch.setattr("succession.dynasty.keep.is_writable", lambda _: False)
        there = scene.state
    assert scene.files() == files, "nothing was written"
    assert there == scene.state
    assert there.meta.current == 2


def test_a_full_disk_keeps_no_session_from_what_was_learned(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.record("A decision", "because")

    def full(*_: object) -> None:
        raise DiskError("full")

    monkeypatch.setattr(durable, "replace_cache", full)
    told = dynasty.at_start(scene.request(3), "startup")
    assert "A decision" in told
    assert told.endswith("cannot be noted: full)")


@pytest.mark.parametrize("moment", ["set_aside", "link"])
@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_an_edit_at_the_very_moment_of_the_rename_stays(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, moment: str, how: str
) -> None:
    """It was overwritten, between a look at the file's digest and the rename over it."""
    scene.record("A decision", "because")
    dusk, real, edits = scene.own / "dusk.md", getattr(durable, moment), list[str]()

    def edited(source: str, target: str, **more: bool) -> object:
        if str(dusk) in {source, target} and not edits:
            edits.append(how)
            if how == "in place":
                dusk.write_text("my edit")
            else:
                (scene.own / "dusk.new").write_text("my edit")
                os.replace(scene.own / "dusk.new", dusk)
        return real(source, target, **more)

    scene.run()
    scene.record("Another", "because")
    monkeypatch.setattr(durable, moment, edited)
    ran = scene.run()
    assert edits
    (aside,) = ran.aside
    assert (scene.folder / aside).read_text() == "my edit"
    assert "Another" in dusk.read_text()
    assert scene.project.damage() == []


def test_a_file_that_was_removed_meanwhile_keeps_no_change_from_its_end(scene: Scene) -> None:
    """Each command failed from then on: there was nothing to be set aside."""
    scene.record("A decision", "because")
    before = scene.files()
    was = '{"path":"main/day.md","was":"' + "0" * 64 + '","size":-1,"data":""}'
    (scene.own / ".next-day.md").write_bytes(before["main/day.md"])
    (scene.own / "day.md").unlink()
    (scene.folder / ".journal").write_text('{"v":1,"files":[' + was + "]}\n")
    assert journal.recover(str(scene.folder)) == []
    assert scene.files() == before


@pytest.mark.parametrize(
    "name", [".tmp-0123456789abcdef", "main/.tmp-0123456789abcdef", "sessions.json.tmp-" + "a" * 16]
)
def test_a_temporary_of_a_process_that_died_is_cleared(scene: Scene, name: str) -> None:
    scene.record("A decision", "because")
    (scene.folder / name).write_bytes(b"half")
    (scene.folder / "mine.tmp-1").write_bytes(b"mine")
    scene.held()
    assert not (scene.folder / name).exists()
    assert (scene.folder / "mine.tmp-1").exists()


def test_a_clock_out_of_range_is_no_damage(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("savepoint.cli.succession.dynasty.time.time", lambda: 2.0**40)
    ran = cli("succession", "status")
    assert ran.code == 1
    assert "the clock of this machine" in ran.err


@pytest.fixture
def cli(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A project with a store."""
    (tmp_path / "project").mkdir()
    made = Cli(tmp_path / "project", capsysbinary)
    made.good("init", "--instance", "Gabriel #215")
    return made


def test_a_wrong_argument_of_import_is_wrong_use(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    for name in ("linked", "piped", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked/day.md").symlink_to("/etc/passwd")
    (tmp_path / "piped/day.md").write_text("# Day\n")
    os.mkfifo(tmp_path / "piped/vault.md")
    (tmp_path / "broken/day.md").write_text("# Day\n")
    (tmp_path / "broken/dynasty.json").write_text("{bad")
    for path in ("/etc/passwd", *(str(one) for one in tmp_path.iterdir() if one.name != "project")):
        ran = cli("succession", "import", path)
        assert ran.code in {1, 2}, path
        assert "fsck" not in ran.err
