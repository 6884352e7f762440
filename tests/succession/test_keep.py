"""Several files that change as one: faults at each step, edits between, what a savepoint holds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.capture import memory
from savepoint.core.errors import (
    BusyError,
    DiskError,
    MalformedError,
    OutputExistsError,
    UnsupportedFormatError,
)
from savepoint.store import durable
from savepoint.store.locks import Lock
from succession.dynasty import journal, whole
from succession.dynasty.joining import bundle
from succession.dynasty.journal import Change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.succession.scene import Scene

_BEFORE = {"a.md": b"old a", "b/c.md": b"old c", "log.jsonl": b"one\n"}
_AFTER = {"a.md": b"new a", "b/c.md": b"new c", "b/d.md": b"new d", "log.jsonl": b"one\ntwo\n"}
_CHANGE = Change(
    {"a.md": b"new a", "b/c.md": b"new c", "b/d.md": b"new d"}, {"log.jsonl": b"two\n"}
)
_CALLS = ("make_directories", "replace", "append", "set_aside", "link", "remove", "sync_directory")


class _Killed(BaseException):
    """The process dies here."""


def _files(folder: Path) -> dict[str, bytes]:
    found = (one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in found}


def _prepare(folder: Path) -> None:
    for path, data in _BEFORE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _commit(folder: Path) -> list[str]:
    return journal.commit(str(folder), {**_BEFORE, "b/d.md": None}, _CHANGE)


def _fail_at(monkeypatch: pytest.MonkeyPatch, step: int, failure: BaseException) -> list[str]:
    """Let the n-th call of a primitive fail; the list grows with each call."""
    called: list[str] = []

    def wrap(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            called.append(name)
            if len(called) == step + 1:
                raise failure
            return real(*args, **named)

        return call

    for name in _CALLS:
        monkeypatch.setattr(durable, name, wrap(name, getattr(durable, name)))
    return called


def _steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        called = _fail_at(patch, -1, _Killed())
        _commit(folder)
    return called


def test_all_of_it(tmp_path: Path) -> None:
    _prepare(tmp_path)
    assert _commit(tmp_path) == []
    assert _files(tmp_path) == _AFTER


@pytest.mark.parametrize("failure", [_Killed(), DiskError("full")])
def test_a_fault_at_any_step_leaves_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    (tmp_path / "trial").mkdir()
    _prepare(tmp_path / "trial")
    steps = _steps(tmp_path / "trial", monkeypatch)
    assert {"make_directories", "replace", "append", "set_aside"} <= set(steps)
    seen = set()
    for step in range(len(steps)):
        folder = tmp_path / f"step-{step}"
        folder.mkdir()
        _prepare(folder)
        with monkeypatch.context() as patch:
            _fail_at(patch, step, failure)
            with pytest.raises(type(failure)):
                _commit(folder)
        journal.recover(str(folder))
        journal.recover(str(folder))
        found = _files(folder)
        assert found in (_BEFORE, _AFTER), f"step {step}, {steps[step]}"
        seen.add(found == _AFTER)
    assert seen == {False, True}


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is met while staging or appending: what is renamed takes no space."""
    (tmp_path / "trial").mkdir()
    _prepare(tmp_path / "trial")
    steps = _steps(tmp_path / "trial", monkeypatch)
    writing = [
        n for n, name in enumerate(steps) if name in {"make_directories", "replace", "append"}
    ]
    for step in writing:
        folder = tmp_path / f"step-{step}"
        folder.mkdir()
        _prepare(folder)
        with monkeypatch.context() as patch:
            _fail_at(patch, step, DiskError("full"))
            with pytest.raises(DiskError):
                _commit(folder)
        assert _files(folder) == _BEFORE, steps[step]


@pytest.mark.parametrize("torn", [0, 1, 3, 4])
def test_a_torn_append_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: int
) -> None:
    _prepare(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(durable, "append", lambda *_, **__: (_ for _ in ()).throw(_Killed()))
        with pytest.raises(_Killed):
            _commit(tmp_path)
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b"two\n"[:torn])
    journal.recover(str(tmp_path))
    assert _files(tmp_path) == _AFTER


def test_an_edit_since_the_reading_is_refused(tmp_path: Path) -> None:
    _prepare(tmp_path)
    (tmp_path / "a.md").write_bytes(b"edited")
    with pytest.raises(BusyError):
        _commit(tmp_path)
    assert _files(tmp_path) == {**_BEFORE, "a.md": b"edited"}


def test_an_edit_after_the_journal_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _prepare(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(durable, "set_aside", lambda *_, **__: (_ for _ in ()).throw(_Killed()))
        with pytest.raises(_Killed):
            _commit(tmp_path)
    (tmp_path / "a.md").write_bytes(b"edited")
    (aside,) = journal.recover(str(tmp_path))
    assert _files(tmp_path) == {**_AFTER, aside: b"edited"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"v":1,"files":[{"path":"../x","was":"","size":-1,"data":""}]}',
        b'{"v":1,"files":[{"path":"a/b/c","was":"","size":-1,"data":""}]}',
        b'{"v":1,"files":[{"path":"a","was":"nonsense","size":-1,"data":""}]}',
    ],
)
def test_a_journal_that_is_none_of_ours_is_refused(tmp_path: Path, data: bytes) -> None:
    _prepare(tmp_path)
    (tmp_path / ".journal").write_bytes(data)
    with pytest.raises(MalformedError):
        journal.recover(str(tmp_path))


def test_an_edit_during_a_run_changes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from succession.dynasty import steps

    scene.record("A decision", "because")
    day, real = scene.own / "day.md", steps.succeed

    def edited(*args: object) -> object:
        day.write_text(day.read_text() + "\nmine\n")
        return real(*args)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(steps, "succeed", edited)
    with pytest.raises(BusyError):
        scene.run()
    monkeypatch.undo()
    assert day.read_text().endswith("\nmine\n")
    assert scene.state.meta.current == 1
    scene.run()
    assert "mine" in day.read_text() + scene.state.archive.decode()


def test_a_failing_step_changes_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from succession.dynasty import steps

    scene.record("A decision", "because")
    before = scene.files()
    for name in ("freeze", "compress_dusk", "day_to_dusk", "dawn_to_day", "seed_dawn"):
        with monkeypatch.context() as patch:
            patch.setattr(steps, name, lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                scene.run()
        assert scene.files() == before


def test_a_held_lock_is_waited_for_and_then_told(scene: Scene) -> None:
    scene.record("A decision", "because")
    with Lock(str(scene.folder / ".lock"), time.monotonic()), pytest.raises(BusyError):
        memory.read(scene.store.path, time.monotonic())


def test_bundle_and_back(scene: Scene) -> None:
    scene.record("A decision", "because")
    scene.run()
    before = scene.files()
    data = memory.read(scene.store.path, time.monotonic() + 120).data
    assert data is not None
    assert whole.unpack(data) == before
    assert list(whole.unpack(data))[:1] == ["archive.jsonl"]
    scene.record("Another", "because")
    scene.run()
    after = scene.files()
    with pytest.raises(OutputExistsError):
        bundle.put_back(scene.store, data, scene.branch.folder, force=False)
    assert scene.files() == after
    bundle.put_back(scene.store, data, scene.branch.folder, force=True)
    assert scene.files()["archive.jsonl"] == after["archive.jsonl"]
    assert [one.title for one in scene.state.dusk_page.entries] == ["A decision"]
    assert [one.title for one in scene.state.day_page.entries] == ["Another"], "it stays"


def test_a_bundle_of_a_moment_between_is_that_of_after(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.record("A decision", "because")
    scene.record("Seen", "", "x")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_finish", lambda *_: (_ for _ in ()).throw(_Killed()))
        with pytest.raises(_Killed):
            scene.run()
    data = memory.read(scene.store.path, time.monotonic() + 120).data
    assert data is not None
    assert scene.state.meta.current == 2, "who reads finishes it"
    assert whole.unpack(data) == scene.files()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}\n",
        b'x\n{"v":1,"files":[]}\n',
        b'x\n{"v":1,"files":[{"path":"../a","bytes":1}]}\n',
        b'x\n{"v":1,"files":[{"path":"a.md","bytes":2}]}\n',
        b'xy\n{"v":1,"files":[{"path":"a.md","bytes":1},{"path":"a.md","bytes":1}]}\n',
        b'x\n{"v":1,"files":[{"path":"vault.md/x","bytes":1}]}\n',  # no import could put it right
        b'x\n{"v":1,"files":[{"path":"main/day.md/x","bytes":1}]}\n',
    ],
)
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        whole.unpack(data)


def test_a_bundle_of_a_newer_version_is_told() -> None:
    with pytest.raises(UnsupportedFormatError):
        whole.unpack(b'x\n{"v":2,"files":[{"path":"a.md","bytes":1}]}\n')


def test_a_newer_dynasty_json_is_not_touched(scene: Scene) -> None:
    scene.record("A decision", "because")
    path = scene.own / "dynasty.json"
    path.write_bytes(path.read_bytes().replace(b'{"v":1', b'{"v":2'))
    with pytest.raises(UnsupportedFormatError):
        scene.run()


def test_a_lost_sessions_json_begins_anew(scene: Scene) -> None:
    scene.record("A decision", "because", "src/a.py")
    scene.session(1, "src/a.py")
    (scene.folder / "sessions.json").write_bytes(b"rubbish")
    scene.session(2, "src/a.py")
    assert scene.state.meta.sessions == 2


def test_files_are_private(scene: Scene) -> None:
    scene.record("A decision", "because")
    scene.run()
    modes = {os.stat(one).st_mode & 0o077 for one in scene.folder.rglob("*")}
    assert modes == {0}
