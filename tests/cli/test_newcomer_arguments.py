"""Arguments and variables that a slip of the hand makes: wrong use, told with what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store.session import pending
from savepoint.store.session.pending import Note
from tests.cli.scene import SESSION
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from tests.cli.scene import Scene

_NO_TEXT = os.fsdecode(b"\xff")


def _everything_in(folder: Path) -> list[str]:
    return sorted(map(str, folder.rglob("*")))


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "exclude", _NO_TEXT],
        ["config", "instance", _NO_TEXT],
        ["config", "remote", _NO_TEXT],
        ["create", "--session", _NO_TEXT],
        ["create", "--transcript", _NO_TEXT],
        ["list", "--instance", _NO_TEXT],
        ["verify", "--instance", _NO_TEXT],
        ["init", "--instance", _NO_TEXT + " #1"],
        ["show", _NO_TEXT],
        ["keys", "add-recipient", _NO_TEXT],
    ],
)
def test_an_argument_that_is_no_text_is_2(cli: Scene, arguments: list[str]) -> None:
    cli.created()
    ran = cli(*arguments)
    assert ran.code == 2, ran.err
    assert "fsck" not in ran.err
    cli.good("verify", "--all")


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "--session", ""],
        ["create", "--session="],
        ["create", "--transcript", ""],
        ["list", "--instance", ""],
        ["list", "-C", ""],
        ["list", "--project="],
        ["init", "--adopt", ""],
        ["init", "--instance", ""],
        ["config", "exclude", ""],
        ["config", "exclude", "--", ""],
        ["show", ""],
        ["export", "latest", "-o", ""],
        ["keys", "backup", "-o", "k", "--passphrase-file", ""],
    ],
)
def test_an_empty_value_is_2_and_not_the_default(cli: Scene, arguments: list[str]) -> None:
    cli.created()
    before = Path(cli.paths.index_file).read_bytes()
    ran = cli(*arguments)
    assert ran.code == 2, ran.err
    assert "is empty" in ran.err
    words = arguments[: 2 if arguments[0] == "keys" else 1]
    assert f"see `savepoint {' '.join(words)} --help`" in ran.err
    assert Path(cli.paths.index_file).read_bytes() == before
    assert cli.good("config", "exclude").text == ""


def test_a_glob_may_end_as_an_option_does(cli: Scene) -> None:
    assert cli.good("config", "exclude", "--", "--x=").text == "--x=\n"


def test_the_hint_of_wrong_use_names_the_command(cli: Scene) -> None:
    assert "see `savepoint verify --help`" in cli("verify", "latest", "--all").err


def test_digits_in_upper_case_are_told_apart_from_what_is_no_selector(cli: Scene) -> None:
    ran = cli("show", "DEADBEEF")
    assert ran.code == 2
    assert "lower case" in ran.err


def test_a_folder_that_cannot_be_looked_at_is_not_gone(cli: Scene) -> None:
    ran = cli("list", "-C", "x" * 300)
    assert ran.code == 2
    assert "file name too long" in ran.err


@pytest.mark.parametrize("home", ["~/saves", "saves", "./saves", "../saves"])
def test_a_home_that_is_not_absolute_is_2(
    bare: Scene, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("SAVEPOINT_HOME", home)
    before = _everything_in(bare.project.parent)
    for command in ["init", "list", "doctor"]:
        ran = bare(command)
        assert ran.code == 2
        assert "absolute" in ran.err
    ran_hook = subprocess.run(
        [sys.executable, "-c", "from savepoint.hook import main; main()", "Stop"],
        cwd=bare.project,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        input=b"{}",
        capture_output=True,
        check=True,
        timeout=180,
    )
    assert (ran_hook.stdout, ran_hook.stderr.count(b"\n")) == (b"", 1)
    assert home.encode() in ran_hook.stderr
    assert _everything_in(bare.project.parent) == before


def test_doctor_warns_of_a_home_inside_the_project(
    bare: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAVEPOINT_HOME", str(bare.project / ".savepoint"))
    bare.good("init")
    assert "lies in the project" in bare("doctor").text


def test_doctor_and_status_name_the_same_unfinished_saves(cli: Scene) -> None:
    store = cli.paths.store
    now = int(Path(store.config).stat().st_mtime)
    note = Note(SESSION, str(cli.transcript), str(cli.project), str(cli.project), "auto", now, "x")
    note.save(store, SESSION)
    assert pending.keys(store) == [SESSION]
    for command in ["status", "doctor"]:
        assert f"session {SESSION}" in cli(command).text


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_commands_are_imported_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        f"import os, signal; os.kill(os.getpid(), signal.Signals({signal.SIGINT}))\n", "utf-8"
    )
    ran = subprocess.run(
        [sys.executable, "-c", "from savepoint.cli.entry import main; main()", "list"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{PROJECT}"},
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", b"")
